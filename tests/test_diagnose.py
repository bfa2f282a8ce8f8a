"""`diagnose` on a good folder and on folders that are really broken, each in one way: what it says, and only that."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from crashpath.dashboard import cli
from crashpath.ingest.classes import CLASSES
from crashpath.runtime.checks_device import parse_gpus
from crashpath.runtime.diagnose import CHECKS, Diagnosis, diagnose
from crashpath.runtime.export import export_module
from crashpath.runtime.finding import Check, Finding, Status
from crashpath.runtime.folder import TokenizerSpec, file_hash
from crashpath.runtime.look import Wanted
from crashpath.runtime.testing import ENDLESS, tiny_folder


def with_needs(*ids: str) -> tuple[Check, ...]:
    """Return the checks of these ids and all that they need, in their order. Raises ``KeyError`` for an unknown id."""
    known = {one.id: one for one in CHECKS}
    wanted: set[str] = set()
    waiting = list(ids)
    while waiting:
        check = known[waiting.pop()]
        wanted.add(check.id)
        waiting += [one for one in check.needs if one not in wanted]
    return tuple(one for one in CHECKS if one.id in wanted)


FALLBACK_FREE = tuple(one for one in CHECKS if "fallback.library" not in {n.id for n in with_needs(one.id)})
"""Checks for which no child has to import torch: enough for what is broken on the main path alone."""
SEGFAULT = """
import ctypes, sys
def hook(event, arguments):
    if event == "open" and str(arguments[0]).endswith("golden.npz") and "onnx" not in sys.modules:
        ctypes.string_at(0)
sys.addaudithook(hook)
"""


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good folders, by kind: to be copied, never changed."""
    place = tmp_path_factory.mktemp("kinds")
    tiny_folder(place / "affine")
    tiny_folder(place / "external", external="model.onnx.data", fallback=False)
    tiny_folder(place / "gather", kind="gather")
    tiny_folder(place / "loop", kind="loop", fallback=False)
    tiny_folder(place / "wide", kind="wide")
    return place


@pytest.fixture
def good(kinds: Path, tmp_path: Path) -> Path:
    """A folder of one's own that can be served."""
    return Path(shutil.copytree(kinds / "affine", tmp_path / "model"))


def seal(folder: Path) -> None:
    """Write the files' hashes into model.toml, as if they had been exported so."""
    path = folder / "model.toml"
    text = path.read_text()
    for name in re.findall(r'^"(.+)" = "[0-9a-f]{64}"$', text, re.MULTILINE):
        if (folder / name).is_file():
            text = re.sub(rf'^"{re.escape(name)}" = .*$', f'"{name}" = "{file_hash(folder / name)}"', text, flags=re.M)
    path.write_text(text)


def edit(change: Callable[[onnx.ModelProto], object]) -> Callable[[Path], None]:
    """Change the graph of a folder."""

    def spoil(folder: Path) -> None:
        model = onnx.load(str(folder / "model.onnx"))
        change(model)
        onnx.save(model, str(folder / "model.onnx"))

    return spoil


def cut(name: str) -> Callable[[Path], None]:
    """Cut a file in half."""
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size // 2)


def gone(name: str) -> Callable[[Path], None]:
    """Remove a file."""
    return lambda folder: (folder / name).unlink()


def pointer(folder: Path) -> None:
    """Leave what Git LFS leaves where nothing was pulled."""
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 90000000\n"
    (folder / "model.onnx").write_text(text)


def instead(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Put something else in place of a file."""

    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return spoil


def other_golden(change: Callable[[dict[str, np.ndarray]], object]) -> Callable[[Path], None]:
    """Change the arrays of golden.npz."""

    def spoil(folder: Path) -> None:
        with np.load(folder / "golden.npz") as stored:
            arrays = dict(stored)
        change(arrays)
        np.savez(folder / "golden.npz", **arrays)  # type: ignore[arg-type]  # its stubs know allow_pickle only

    return spoil


def spec(old: str, new: str) -> Callable[[Path], None]:
    """Change the text of model.toml, in one place."""

    def spoil(folder: Path) -> None:
        text = (folder / "model.toml").read_text()
        assert old in text
        (folder / "model.toml").write_text(text.replace(old, new, 1))

    return spoil


def undeclare(name: str) -> Callable[[Path], None]:
    """Take a file out of [files]: then the graph alone names it."""

    def spoil(folder: Path) -> None:
        text = (folder / "model.toml").read_text()
        (folder / "model.toml").write_text(re.sub(rf'^"{re.escape(name)}" = .*\n', "", text, flags=re.MULTILINE))

    return spoil


def device(path: Path) -> None:
    """A link to a device that is empty when it is read."""
    path.symlink_to("/dev/null")


def one_array(path: Path) -> None:
    """One array, where an archive of arrays belongs."""
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def huge_array(path: Path) -> None:
    """An archive whose arrays announce 16 TiB each."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40, 4)})
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("in.x.npy", "out.y.npy"):
            archive.writestr(name, out.getvalue())


def other_signature(folder: Path) -> None:
    """Put the TorchScript of another model beside this graph: ``folder`` has it at hand as ``other``."""
    os.replace(folder / "other", folder / "model.ts.pt")


def limits(name: str, value: object) -> Callable[[Path], None]:
    """Set one of the folder's limits."""

    def spoil(folder: Path) -> None:
        path = folder / "model.toml"
        path.write_text(re.sub(rf"^{name} = .*$", f"{name} = {value}", path.read_text(), flags=re.MULTILINE))

    return spoil


def no_kernel(model: onnx.ModelProto) -> None:
    """Apply an operator to doubles, which it allows, and for which ONNX Runtime has no kernel on the processor."""
    graph = model.graph
    graph.node.insert(0, helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.DOUBLE))
    graph.node.insert(1, helper.make_node("Elu", ["wide"], ["bent"]))
    graph.node.insert(2, helper.make_node("Cast", ["bent"], ["back"], to=TensorProto.FLOAT))
    graph.node[3].input[0] = "back"


def wrong_shape(model: onnx.ModelProto) -> None:
    """Give the first weight a shape that cannot be multiplied with the input."""
    weight = model.graph.initializer[0]
    weight.CopyFrom(helper.make_tensor(weight.name, TensorProto.FLOAT, [5, 3], np.ones(15)))


@dataclass(frozen=True)
class Broken:
    """One way to break a folder, and what has to be found: the checks that fail, and words of their fixes."""

    name: str
    spoil: Callable[[Path], object]
    fails: tuple[str, ...]
    fix: str
    kind: str = "affine"
    sealed: bool = True
    checks: tuple[Check, ...] = FALLBACK_FREE
    wanted: Wanted = field(default_factory=Wanted)


BROKEN = (
    Broken("main cut", cut("model.onnx"), ("files.hash", "graph.parses"), r"Copy model\.onnx again", sealed=False),
    Broken("main missing", gone("model.onnx"), ("main.file",), r"Copy model\.onnx of this model into"),
    Broken("main empty", lambda f: os.truncate(f / "model.onnx", 0), ("main.file",), r"Copy model\.onnx again"),
    Broken(
        "external data missing",
        gone("model.onnx.data"),
        ("files.hash", "fallback.file", "graph.external"),
        r"Copy model\.onnx\.data into",
        kind="external",
    ),
    Broken(
        "external data cut",
        cut("model.onnx.data"),
        ("fallback.file", "graph.external"),
        r"Copy model\.onnx\.data again",
        kind="external",
    ),
    Broken(
        "opset from the future",
        edit(lambda model: setattr(model.opset_import[0], "version", 99)),
        ("graph.opset",),
        r"Export with opset \d+ or older",
    ),
    Broken(
        "IR version from the future",
        edit(lambda model: setattr(model, "ir_version", 99)),
        ("graph.ir",),
        r"Export with IR version \d+ or older",
    ),
    Broken(
        "shapes that do not fit", edit(wrong_shape), ("graph.shapes", "main.shapes"), r"Export again; look at the node"
    ),
    Broken("fallback missing", gone("model.ts.pt"), ("fallback.file",), r"Copy model\.ts\.pt of this model into"),
    Broken("fallback cut", cut("model.ts.pt"), ("fallback.load",), r"Copy model\.ts\.pt again", checks=CHECKS),
    Broken("another signature", other_signature, ("signature",), r"Export both .* from one module", checks=CHECKS),
    Broken(
        "golden answer differs",
        other_golden(lambda arrays: arrays["out.y"].__iadd__(1)),
        ("main.golden", "fallback.golden"),
        r"Serve the model\.onnx that golden\.npz was made with",
        checks=CHECKS,
    ),
    Broken("golden file damaged", cut("golden.npz"), ("golden.file",), r"Copy golden\.npz again"),
    Broken(
        "golden feed of another type",
        other_golden(lambda arrays: arrays.update({"in.x": arrays["in.x"].astype("int64")})),
        ("golden.file",),
        r"crashpath export",
    ),
    Broken(
        "changed after export",
        edit(lambda model: setattr(model, "doc_string", "changed")),
        ("files.hash",),
        r"Copy model\.onnx again",
        sealed=False,
    ),
    Broken("pointer of Git LFS", pointer, ("files.content",), r"git lfs pull --include 'model\.onnx'", sealed=False),
    Broken(
        "folder in place of a file", instead("model.ts.pt", os.mkdir), ("files.readable",), r"Remove .*model\.ts\.pt"
    ),
    Broken("pipe in place of a file", instead("model.onnx", os.mkfifo), ("files.readable",), r"Remove .*model\.onnx"),
    Broken("pipe for the feed", instead("golden.npz", os.mkfifo), ("files.readable",), r"Remove .*golden\.npz"),
    Broken("pipe for model.toml", instead("model.toml", os.mkfifo), ("folder.spec",), "export", sealed=False),
    Broken("device for model.toml", instead("model.toml", device), ("folder.spec",), "export", sealed=False),
    Broken("device for the fallback", instead("model.ts.pt", device), ("files.readable",), r"Remove .*model\.ts\.pt"),
    Broken(
        "pipe for external data",
        lambda folder: (undeclare("model.onnx.data")(folder), instead("model.onnx.data", os.mkfifo)(folder)),
        ("files.readable", "fallback.file"),
        r"Remove .*model\.onnx\.data",
        kind="external",
    ),
    Broken("golden file with one array alone", instead("golden.npz", one_array), ("golden.file",), r"Copy golden\.npz"),
    Broken("golden file beyond all memory", instead("golden.npz", huge_array), ("golden.file",), r"Copy golden\.npz"),
    Broken("size that the feed has not", spec('"batch", 4', '"batch", 7'), ("golden.file",), r"crashpath export"),
    Broken("size that the answer has not", spec('"batch", 3', '"batch", 7'), ("golden.file",), r"crashpath export"),
    Broken("size below zero", spec('"batch", 4', '"batch", -4'), ("folder.spec",), r"Mend model\.toml"),
    Broken("limit that is no number", limits("deadline_ms", "nan"), ("folder.spec",), r"Mend model\.toml"),
    Broken("limit in words", limits("load_s", '"60"'), ("folder.spec",), r"Mend model\.toml"),
    Broken("limit beyond all memory", limits("memory_mib", 99999999999999), ("folder.spec",), r"Mend model\.toml"),
    Broken("files that are no table", spec("[files]", "[[files]]"), ("folder.spec",), r"Mend model\.toml"),
    Broken(
        "file name too long", spec("[files]", f'[files]\n"{"x" * 5000}" = "0"'), ("folder.spec",), r"Mend model\.toml"
    ),
    Broken(
        "unknown operator",
        edit(lambda model: setattr(model.graph.node[0], "op_type", "Wonder")),
        ("graph.operators",),
        r"Export with another opset or decomposition",
    ),
    Broken("no kernel for a type", edit(no_kernel), ("main.kernels",), r"Export with another opset, type"),
    Broken(
        "provider that is not there",
        lambda folder: None,
        ("device.provider",),
        r"pip install onnxruntime-openvino .*--provider CPUExecutionProvider",
        wanted=Wanted(providers=("OpenVINOExecutionProvider", "CPUExecutionProvider")),
    ),
    Broken(
        "run that does not end",
        other_golden(lambda arrays: arrays.update({"in.steps": np.array([ENDLESS])})),
        ("fallback.file", "main.time"),
        r"Raise limits\.deadline_ms",
        kind="loop",
        wanted=Wanted(run_s=3.0),
    ),
    Broken("load too slow", limits("load_s", 0.0001), ("main.load_time",), r"Raise limits\.load_s"),
    Broken(
        "memory that no shape tells",
        lambda folder: (
            limits("memory_mib", 100)(folder),
            other_golden(
                lambda arrays: arrays.update(
                    {"in.shape": np.array([4096, 8192]), "out.y": np.array(2.0**25, dtype=np.float32)}
                )
            )(folder),
        ),
        ("memory.proof",),
        r"Raise limits\.memory_mib in model\.toml to \d+ or more",
        kind="wide",
        checks=CHECKS,
    ),
    Broken(
        "model.toml that is none",
        lambda folder: (folder / "model.toml").write_text("schema = 1\nname = "),
        ("folder.spec",),
        r"crashpath export",
    ),
)


def failed(found: Diagnosis) -> tuple[str, ...]:
    """Ids of the checks that failed."""
    return tuple(one.check for one in found.findings if one.status is Status.FAIL)


def finding(found: Diagnosis, check: str) -> Finding:
    """The finding of one check."""
    return next(one for one in found.findings if one.check == check)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.name.replace(" ", "-"))
def test_each_breakage_fails_its_own_check_with_its_fix(broken: Broken, kinds: Path, tmp_path: Path) -> None:
    """What is really broken fails the check that asks for it, no other check, and the fix says what to do."""
    folder = tmp_path / "model"
    shutil.copytree(kinds / broken.kind, folder)
    shutil.copy(kinds / "gather" / "model.ts.pt", folder / "other")
    broken.spoil(folder)
    if broken.sealed:
        seal(folder)
    found = diagnose(folder, broken.wanted, checks=broken.checks)
    assert failed(found) == broken.fails, [(one.check, one.evidence) for one in found.findings]
    own = [finding(found, check) for check in broken.fails]
    assert any(re.search(broken.fix, one.fix) for one in own), [one.fix for one in own]
    assert all(one.evidence and one.fix for one in own)
    assert found.status is Status.FAIL
    assert found.verdict.startswith("FAIL: do not serve")
    assert broken.fails[0] in found.verdict


def test_a_good_folder_has_no_complaint(good: Path) -> None:
    """Nothing fails or warns; what has no answer says why; every check is asked once, in its order."""
    seen: list[Finding] = []
    found = diagnose(good, progress=seen.append)
    assert [one.check for one in found.findings] == [one.id for one in CHECKS]
    assert tuple(seen) == found.findings
    complaints = [one for one in found.findings if one.status in (Status.FAIL, Status.WARN)]
    assert complaints == []
    skipped = {one.check for one in found.findings if one.status is Status.SKIP}
    assert skipped == {
        "device.driver", "device.memory", "device.computes", "memory.limit", "tokenizer.main", "tokenizer.fallback"
    }  # fmt: skip
    assert found.verdict.startswith("OK: tiny-affine")


def test_checks_prevent_known_classes_and_need_earlier_checks() -> None:
    """Every class of classes.toml is prevented by a check; needs stand before; ids are unique."""
    assert {one.prevents for one in CHECKS} == {one.id for one in CLASSES}
    before: set[str] = set()
    for check in CHECKS:
        assert set(check.needs) <= before, check.id
        assert check.id not in before
        before.add(check.id)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good folder of a text model with a tokenizer and its fallback, and weights of 24 MiB."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from torch import Tensor, nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(64, 2048)
            self.dense = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1024))

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            mask = attention_mask.unsqueeze(-1)
            rows: Tensor = self.dense((self.table(input_ids) * mask).sum(1) / mask.sum(1))
            return rows

    folder = tmp_path_factory.mktemp("texts") / "model"
    ids = np.array([[2, 5, 3], [2, 6, 3]])
    axes = {0: "batch", 1: "sequence"}
    export_module(
        Net().eval(),
        {"input_ids": ids, "attention_mask": np.ones_like(ids)},
        folder,
        name="texts",
        output_names=["y"],
        dynamic_axes={"input_ids": axes, "attention_mask": axes, "y": {0: "batch"}},
    )
    words = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "plain", "text")
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    made = Tokenizer(WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    made.save(str(folder / "tokenizer.json"))
    step = TokenizerSpec("tokenizer.json", "vocab.txt", 16)
    told = f'file = "{step.file}"\nfallback = "{step.fallback}"\nmax_tokens = {step.max_tokens}\n'
    text = (folder / "model.toml").read_text()
    (folder / "model.toml").write_text(text.replace("[files]\n", f"[tokenizer]\n{told}\n[files]\n", 1))
    return folder


@pytest.mark.parametrize(("name", "check"), [("tokenizer.json", "tokenizer.main"), ("vocab.txt", "tokenizer.fallback")])
def test_a_tokenizer_cut_in_half_is_found(texts: Path, tmp_path: Path, name: str, check: str) -> None:
    """Of the two ways of the prepare step, the broken one fails and the other stays well."""
    folder = Path(shutil.copytree(texts, tmp_path / "model"))
    cut(name)(folder)
    found = diagnose(folder, checks=with_needs("tokenizer.main", "tokenizer.fallback"))
    assert failed(found) == (check,)
    assert finding(found, check).prevents == "tokenizer"
    assert finding(found, check).fix == f"Copy {name} again from the model's source."


def test_a_memory_limit_too_low_is_predicted_and_proven(texts: Path, tmp_path: Path) -> None:
    """A limit under what the model takes fails before and in the capped child; the limit that the fix names holds."""
    folder = Path(shutil.copytree(texts, tmp_path / "model"))
    limits("memory_mib", 12)(folder)
    asked = with_needs("memory.limit", "memory.proof")
    low = diagnose(folder, checks=asked)
    assert failed(low) == ("memory.limit", "memory.proof")
    fixed = re.search(r"memory_mib in model.toml to (\d+)", finding(low, "memory.limit").fix)
    assert fixed
    limits("memory_mib", fixed[1])(folder)
    high = diagnose(folder, checks=asked)
    assert failed(high) == (), [one.evidence for one in high.findings]


def test_a_segfault_in_the_child_is_a_finding(good: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A native crash while loading ends the child, not the diagnosis, and is named."""
    (tmp_path / "sitecustomize.py").write_text(SEGFAULT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = diagnose(good, checks=with_needs("main.stays_up", "main.load"))
    assert failed(found) == ("main.stays_up",)
    assert "SIGSEGV" in finding(found, "main.stays_up").evidence


def test_a_library_that_cannot_be_imported_is_found(
    good: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A broken onnxruntime is a dependency, not a corrupt model."""
    (tmp_path / "onnxruntime.py").write_text("import _no_such_library\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = diagnose(good, checks=with_needs("device.provider", "fallback.library"))
    assert "_no_such_library" in finding(found, "device.provider").evidence
    assert finding(found, "fallback.library").status is Status.OK


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user to run as")
def test_a_file_without_permission_is_found_by_who_lacks_it(kinds: Path) -> None:
    """Whoever may not read a file is told which, as which user, and the command that mends it."""
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        folder = Path(shutil.copytree(kinds / "affine", Path(place) / "model"))
        folder.chmod(0o755)
        for file in folder.iterdir():
            file.chmod(0o644)
        (folder / "model.ts.pt").chmod(stat.S_IRUSR)
        child = os.fork()
        if not child:
            os.setuid(65534)
            found = diagnose(folder, checks=with_needs("files.readable")).findings[-1]
            os.write(writer, f"{found.status}|{found.evidence}|{found.fix}".encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as told:
            answer = told.read()
        os.waitpid(child, 0)
    assert answer.split("|") == [
        "fail",
        "model.ts.pt cannot be read by user 65534",
        f"chmod a+r {folder}/model.ts.pt",
    ]


def test_what_a_device_tool_prints_is_understood() -> None:
    """Names with commas aside, a line is a device; a figure that is not told counts nothing."""
    (first, second) = parse_gpus("NVIDIA H200, 570.133.20, 143771, 143000\nTegra, 36.4, [N/A], [N/A]\nrubbish\n")
    assert (first.name, first.driver, first.free >> 20, first.total >> 20) == (
        "NVIDIA H200",
        "570.133.20",
        143000,
        143771,
    )
    assert (second.total, second.free) == (0, 0)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """Run ``crashpath diagnose``; return exit code, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.run(["diagnose", *map(str, arguments)])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_command_on_a_broken_folder_exits_6_and_fits_80_columns(
    good: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    """The text says what fails, why and the fix within 80 columns, and ends with one line of verdict."""
    gone("model.onnx")(good)
    code, out, _ = command("--model", good)
    lines = out.rstrip().splitlines()
    assert code == 6
    assert max(len(line) for line in lines[:-1] if "/" not in line) <= 80
    assert "FAIL main.file             model.onnx is not there" in lines
    assert lines[-1].startswith("FAIL: do not serve tiny-affine")
    assert any("fix: Copy model.onnx" in line for line in lines)
    assert f"crashpath export MODEL {good} --force" in re.sub(r"\s+", " ", out)
    assert re.search(r"skip needs main\.file: \d+ checks of graph, main, signature", out)
    assert "graph.parses" not in out
    assert "ok   folder.spec           tiny-affine, 1 input, 1 output, 3 files" in lines
    assert "ok   files.readable        model.toml and 2 files can be read" in lines
    assert re.search(r"^ok   fallback\.file +model\.ts\.pt, \d\.\d KiB$", out, re.MULTILINE)


def test_command_json_and_strict(good: Path, command: Callable[..., tuple[int, str, str]]) -> None:
    """A warning exits 0, and 6 with --strict; the JSON is one document with every check, its class and its fix."""
    spec = good / "model.toml"
    spec.write_text(re.sub(r'^"golden.npz".*\n', "", spec.read_text(), flags=re.MULTILINE))
    code, out, err = command("--model", good, "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["verdict"], document["exit"], document["strict"]) == ("warn", 0, False)
    assert [one["check"] for one in document["findings"]] == [one.id for one in CHECKS]
    (warned,) = [one for one in document["findings"] if one["status"] == "warn"]
    assert warned["check"] == "files.hash"
    assert set(warned) == {"check", "prevents", "status", "evidence", "fix"}
    assert document["line"].startswith("WARN: tiny-affine")
    code, out, _ = command("--model", good, "--json", "--strict")
    assert (code, json.loads(out)["exit"]) == (6, 6)


def test_command_without_such_a_folder_is_wrong_usage(
    tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    """No such folder: exit 2 and one sentence."""
    code, out, err = command("--model", tmp_path / "nowhere")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "is no folder" in err
