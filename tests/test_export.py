"""Exported model folders: both artefacts answer as the module, whole or not there, the same bytes each time."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from crashpath.dashboard import cli
from crashpath.runtime.errors import ExportError
from crashpath.runtime.export import export_module
from crashpath.runtime.export_check import probes
from crashpath.runtime.folder import Limits, ModelFolder, Tolerance, file_hash, open_folder

FREE = {"x": {0: "batch"}, "y": {0: "batch"}}


class Affine(torch.nn.Module):
    """y = x @ w + b, with weights that are always the same."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        with torch.no_grad():
            self.linear.weight.copy_(torch.arange(12.0).reshape(3, 4) / 7)
            self.linear.bias.fill_(0.25)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 [batch, 4] to [batch, 3]."""
        return self.linear(x)


class Repeated(torch.nn.Module):
    """A loop whose length is a value."""

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Add 1 as often as ``steps`` says."""
        for _ in range(int(steps)):
            x = x + 1.0
        return x


class Frozen(torch.nn.Module):
    """Looks at a shape as a Python number: a trace keeps the example's."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply by the batch size."""
        return x * float(len(x.tolist()))


class Named(torch.nn.Module):
    """Answers a dictionary, which TorchScript and ONNX order in ways of their own."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """One tensor by name."""
        return {"y": x}


class Two(torch.nn.Module):
    """Two answers."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The input and its sums."""
        return x * 2.0, x.sum(1)


EXAMPLE = np.arange(8, dtype=np.float32).reshape(2, 4)


def _export(folder: Path, module: torch.nn.Module | None = None, **options: Any) -> ModelFolder:
    given: dict[str, Any] = {"name": "net", "output_names": ["y"], "dynamic_axes": FREE} | options
    return export_module(module or Affine(), given.pop("feed", {"x": EXAMPLE}), folder, **given)


def _main(folder: ModelFolder) -> Callable[[dict[str, Any]], list[Any]]:
    session = onnxruntime.InferenceSession(str(folder.main), providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed)


def test_both_artefacts_answer_as_the_module(tmp_path: Path) -> None:
    """ONNX and TorchScript give the module's answer, also for a batch that the example did not have."""
    folder, module = _export(tmp_path / "net"), Affine()
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    expected = module(torch.from_numpy(x)).detach().numpy()
    assert np.allclose(_main(folder)({"x": x})[0], expected, atol=1e-6)
    assert np.allclose(torch.jit.load(str(folder.fallback))(torch.from_numpy(x)).detach().numpy(), expected, atol=1e-6)


def test_folder_says_what_is_in_it(tmp_path: Path) -> None:
    """Shapes, tolerances, limits and hashes that were given come back from the folder; the golden answer is right."""
    _export(tmp_path / "net", tolerance=Tolerance(1e-6, 1e-5, True), limits=Limits(500.0, 9.0, 256, 2))
    folder = open_folder(tmp_path / "net")
    assert [(one.name, one.dtype, one.shape) for one in folder.inputs] == [("x", "float32", ("batch", 4))]
    assert [(one.name, one.dtype, one.shape) for one in folder.outputs] == [("y", "float32", ("batch", 3))]
    assert (folder.tolerance, folder.limits) == (Tolerance(1e-6, 1e-5, True), Limits(500.0, 9.0, 256, 2))
    assert {name for name, _ in folder.files} == {"model.onnx", "model.ts.pt", "golden.npz"}
    assert all(file_hash(folder.path / name) == digest for name, digest in folder.files)
    feed, answer = folder.golden()
    assert np.array_equal(feed["x"], EXAMPLE)
    assert np.allclose(_main(folder)(dict(feed))[0], answer["y"], atol=1e-6)


def test_provenance_names_versions_and_opset(tmp_path: Path) -> None:
    """model.toml tells which versions wrote the artefacts, and the opset that the graph really has."""
    folder = _export(tmp_path / "net", opset=16)
    told = tomllib.loads((folder.path / "model.toml").read_text())["provenance"]
    assert told["torch"] == torch.__version__
    assert (told["onnx"], told["onnxruntime"]) == (onnx.__version__, onnxruntime.__version__)
    assert told["opset"] == str(onnx.load(str(folder.main)).opset_import[0].version) == "16"


def test_every_node_has_a_name_of_its_own(tmp_path: Path) -> None:
    """Nodes are told apart by name, those in the body of a loop too."""
    feed = {"x": EXAMPLE, "steps": np.array(3, np.int64)}
    folder = _export(tmp_path / "net", torch.jit.script(Repeated()), feed=feed, script=True)
    names: list[str] = []

    def collect(graph: Any) -> None:
        for node in graph.node:
            names.append(node.name)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    collect(attribute.g)

    collect(onnx.load(str(folder.main)).graph)
    assert len(names) > 3
    assert all(names)
    assert len(set(names)) == len(names)


def test_a_scripted_module_keeps_its_loop(tmp_path: Path) -> None:
    """script=True keeps a loop whose length is a value: another value, another answer, on both paths."""
    feed = {"x": EXAMPLE, "steps": np.array(3, np.int64)}
    folder = _export(tmp_path / "net", Repeated(), feed=feed, script=True)
    steps = np.array(7, np.int64)
    assert np.allclose(_main(folder)({"x": EXAMPLE, "steps": steps})[0], EXAMPLE + 7)
    assert np.allclose(torch.jit.load(str(folder.fallback))(torch.from_numpy(EXAMPLE), torch.tensor(7)), EXAMPLE + 7)


def test_a_shape_that_the_trace_froze_is_found(tmp_path: Path) -> None:
    """A dimension declared free that an artefact does not follow is an error that names it, and no folder is left."""
    with pytest.raises(ExportError, match=r"model\.(onnx|ts\.pt) answers y with values .* batch = 1"):
        _export(tmp_path / "net", Frozen())
    assert list(tmp_path.iterdir()) == []


def test_names_of_the_example_are_those_of_the_arguments(tmp_path: Path) -> None:
    """Both artefacts must take the same names, so the example's have to be forward()'s."""
    with pytest.raises(ExportError, match=r"forward\(\) takes x where the example has z"):
        _export(tmp_path / "net", feed={"z": EXAMPLE}, dynamic_axes={})


def test_only_tensors_are_answers(tmp_path: Path) -> None:
    """A module that gives a dictionary is refused in one sentence with advice."""
    with pytest.raises(ExportError, match="answers a dict; wrap it"):
        _export(tmp_path / "net", Named())


def test_the_module_has_to_take_its_example(tmp_path: Path) -> None:
    """An example that the module itself refuses is said in one sentence."""
    with pytest.raises(ExportError, match="does not answer its example"):
        _export(tmp_path / "net", feed={"x": EXAMPLE[:, :3]})


def test_outputs_are_counted(tmp_path: Path) -> None:
    """Too few output names are an error; the right number gives both tensors in order."""
    with pytest.raises(ExportError, match="gives 2 tensors where 1 output names"):
        _export(tmp_path / "net", Two())
    free = {"x": {0: "batch"}, "double": {0: "batch"}, "sum": {0: "batch"}}
    folder = _export(tmp_path / "net", Two(), output_names=["double", "sum"], dynamic_axes=free)
    assert [(one.name, one.shape) for one in folder.outputs] == [("double", ("batch", 4)), ("sum", ("batch",))]


def test_an_opset_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """What the exporter refuses is an ExportError that names the opset."""
    with pytest.raises(ExportError, match="opset 99"):
        _export(tmp_path / "net", opset=99)
    assert list(tmp_path.iterdir()) == []


def test_external_data_is_a_file_of_the_folder(tmp_path: Path) -> None:
    """Weights in a file of their own are hashed with the rest, and the graph loads them from there."""
    folder = _export(tmp_path / "net", external_data=True)
    assert "model.onnx.data" in dict(folder.files)
    assert np.allclose(_main(folder)({"x": EXAMPLE})[0], folder.golden()[1]["y"], atol=1e-6)
    (folder.path / "model.onnx.data").unlink()
    with pytest.raises(Exception, match=r"model\.onnx\.data"):
        _main(folder)


def test_a_folder_is_replaced_only_when_told(tmp_path: Path) -> None:
    """What is there stays, unless it may be replaced; then the new one is there and nothing is left beside it."""
    first = _export(tmp_path / "net")
    with pytest.raises(ExportError, match="is there already"):
        _export(tmp_path / "net", name="other")
    assert open_folder(tmp_path / "net") == first
    assert _export(tmp_path / "net", name="other", replace=True).name == "other"
    assert [one.name for one in tmp_path.iterdir()] == ["net"]


@pytest.mark.timeout(900)
def test_the_same_model_is_the_same_bytes(tmp_path: Path) -> None:
    """Two exports in two processes, started from different places, have one hash, and hold no path of the machine."""
    code = "import sys, test_export as t; from pathlib import Path; print(t._export(Path(sys.argv[1])).hash)"
    hashes = []
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        starter = tmp_path / place / f"{place}.py"
        starter.write_text(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{code}\n")
        run = [sys.executable, str(starter), str(tmp_path / place / "net")]
        hashes.append(subprocess.run(run, check=True, capture_output=True, text=True, cwd=tmp_path / place).stdout)
    assert hashes[0] == hashes[1]
    told = b"".join(one.read_bytes() for one in (tmp_path / "one" / "net").iterdir())
    assert str(tmp_path).encode() not in told
    assert str(Path(__file__).parent).encode() not in told


def test_probes_leave_fixed_dimensions_alone() -> None:
    """Each free dimension becomes 1 and larger, the same wherever its word stands; fixed ones stay."""
    feed = {"a": np.zeros((2, 3)), "b": np.zeros((2, 5))}
    shapes = [
        tuple(array.shape for array in probe.values())
        for _, probe in probes(feed, {"a": {0: "n"}, "b": {0: "n", 1: "m"}})
    ]
    assert shapes[0] == ((2, 3), (2, 5))
    assert set(shapes[1:]) == {
        ((2, 3), (2, 1)), ((2, 3), (2, 11)), ((1, 3), (1, 5)), ((5, 3), (5, 5)), ((1, 3), (1, 1)), ((5, 3), (5, 11)),
    }  # fmt: skip


@pytest.mark.timeout(900)
def test_command_writes_a_module_and_says_so(tmp_path: Path) -> None:
    """``crashpath export module:function DIR`` writes the folder; a second time it fails in one sentence."""
    (tmp_path / "net_for_export.py").write_text(
        "import numpy as np, torch\n"
        "def make():\n"
        "    feed = {'input': np.ones((2, 4), np.float32)}\n"
        "    free = {'input': {0: 'batch'}, 'y': {0: 'batch'}}\n"
        "    return dict(module=torch.nn.Linear(4, 3), feed=feed, output_names=['y'], dynamic_axes=free)\n"
    )
    run = [sys.executable, "-m", "crashpath.dashboard.cli", "export", "net_for_export:make", "out", "--threads", "3"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert open_folder(tmp_path / "out").limits.threads == 3
    assert "crashpath diagnose --model out" in done.stdout
    assert open_folder(tmp_path / "out").name == "out"  # the function gives no name
    again = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 4
    assert "out is there already; give another folder, or replace it: --force, or replace=True" in again.stderr


def _refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.run(["export", *arguments]) == 4
    assert not (tmp_path / "out").exists()
    return capsys.readouterr().err


def test_a_folder_that_is_there_is_refused_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be written is said at once: not after a model was loaded, not after a function was called."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept").touch()
    (tmp_path / "file").touch()
    for model in ("minilm", str(tmp_path / "no-model"), "no_module:make"):
        assert "is there already" in _refused(tmp_path, capsys, model, str(tmp_path / "full"))
        assert "is a file" in _refused(tmp_path, capsys, model, str(tmp_path / "file"), "--force")


def test_a_model_that_is_not_there_is_named_and_nothing_is_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a folder nor a cached name: said without the network, with what can be given instead."""
    said = _refused(tmp_path, capsys, "no-such-model", str(tmp_path / "out"))
    assert said.startswith("crashpath: no-such-model is no folder, and no model of this name is in the local cache")
    assert "package.module:function" in said


def test_a_function_that_does_not_fit_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a function raises, or gives that is no description of an export, is one sentence about that function."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd_for_export.py").write_text("def divide():\n    return 1 / 0\n")
    for target, words in (
        ("odd_for_export:divide", "cannot be called (ZeroDivisionError"),
        ("odd_for_export:absent", "cannot be called (AttributeError"),
        ("no_module_of_this_name:make", "cannot be called (ModuleNotFoundError"),
        ("os:getcwd", "gives a str; return a dict with the arguments of"),
        ("builtins:dict", "missing a required argument: 'module'"),
    ):
        said = _refused(tmp_path, capsys, target, "out")
        assert said.startswith(f"crashpath: {target} ")
        assert words in said
