"""``model.toml`` and ``golden.npz`` as hostile as they come: understood, or refused in one sentence."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import socket
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crashpath.runtime.errors import ModelFolderError
from crashpath.runtime.folder import Limits, ModelFolder, Tolerance, file_hash, open_folder, read_folder
from crashpath.runtime.folder_check import DTYPES

GOOD: dict[str, Any] = {
    "schema": 1,
    "name": "tiny",
    "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 4]}],
    "outputs": [{"name": "y", "dtype": "float32", "shape": ["batch", 3]}],
    "tolerance": {"atol": 1e-4, "rtol": 1e-3, "top1": False},
    "limits": {"deadline_ms": 2000.0, "load_s": 60.0, "memory_mib": 0, "threads": 1},
    "tokenizer": {"file": "tokenizer.json", "fallback": "vocab.txt", "max_tokens": 256, "lowercase": True},
    "files": {"model.onnx": "0" * 64},
}
PLACES = (
    *((key,) for key in GOOD),
    *((key, inner) for key in ("tolerance", "limits", "tokenizer", "files") for inner in GOOD[key]),
    *(("inputs", 0, key) for key in ("name", "dtype", "shape")),
    *(("outputs", 0, key) for key in ("name", "dtype", "shape")),
)
FEED = {"in.x": np.ones((2, 4), np.float32), "out.y": np.ones((2, 3), np.float32)}
VALUES = st.recursive(
    st.booleans()
    | st.integers()
    | st.integers(-(1 << 70), 1 << 70)
    | st.sampled_from((10**4000, -(1 << 63), 1 << 63, 0, -1))
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(("60", "nan", "-4", "..", "/etc/passwd", "a/../b", "x" * 5000, "é" * 200, "a\n", "\x00", " "))
    | st.sampled_from(DTYPES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)


def toml(value: object) -> str:
    """A value as TOML writes it inline."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return hex(value) if value > 10**300 else str(value)
        case float():
            return str(value) if math.isfinite(value) else str(value).replace("Infinity", "inf")
        case str():
            return json.dumps(value).replace("\x7f", "\\u007f")
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{toml(str(key))} = {toml(one)}" for key, one in value.items()) + "}"
    raise TypeError(value)


def changed(place: tuple[Any, ...], value: object) -> dict[str, Any]:
    """The good document with another value at a place; ``...`` leaves the key out."""
    document = json.loads(json.dumps(GOOD))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return dict(document)


def write(folder: Path, document: dict[str, Any] = GOOD) -> Path:
    """Write ``model.toml`` and the golden arrays; no artefact."""
    folder.mkdir(exist_ok=True)
    text = "".join(f"{key} = {toml(value)}\n" for key, value in document.items())
    (folder / "model.toml").write_text(text, encoding="utf-8", errors="surrogatepass")
    np.savez(folder / "golden.npz", **FEED)  # type: ignore[arg-type]  # its stubs know allow_pickle only
    return folder


def refused(act: Callable[[], object]) -> str:
    """What the one sentence says."""
    with pytest.raises(ModelFolderError) as raised:
        act()
    text = str(raised.value)
    assert len(text.splitlines()) == 1
    assert len(text) < 1000
    return text


def serves(folder: ModelFolder) -> None:
    """Every figure is one that the runtime can count with."""
    told = folder.limits
    assert 0 < told.deadline_ms < math.inf
    assert 0 < told.load_s < threading.TIMEOUT_MAX
    assert isinstance(told.memory_mib, int)
    assert 0 <= told.memory_mib << 20 < 1 << 62
    assert 1 <= told.threads < 1 << 31
    assert 0 <= folder.tolerance.atol < math.inf
    assert 0 <= folder.tolerance.rtol < math.inf
    for spec in (*folder.inputs, *folder.outputs):
        assert np.dtype(spec.dtype).name == spec.dtype
        assert all(isinstance(one, str) or 0 <= one < 1 << 62 for one in spec.shape)
    for name in folder.named:
        assert (folder.path / name).resolve().is_relative_to(folder.path.resolve())
    assert len(folder.hash) == 12


def test_a_good_folder(tmp_path: Path) -> None:
    """All that is written is read; what may be left out has its usual value."""
    folder = open_folder(write(tmp_path / "m"))
    serves(folder)
    assert (folder.name, folder.limits, folder.tolerance) == ("tiny", Limits(), Tolerance())
    assert folder.golden()[0]["x"].shape == (2, 4)
    bare = {key: value for key, value in GOOD.items() if key in ("schema", "name", "inputs", "outputs")}
    few = open_folder(write(tmp_path / "few", bare))
    assert (few.limits, few.tolerance, few.tokenizer, few.files) == (Limits(), Tolerance(), None, ())
    whole = open_folder(write(tmp_path / "whole", changed(("limits", "deadline_ms"), 5)))
    assert whole.limits.deadline_ms == 5.0


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("schema",), True, "schema True where 1 is known"),
        (("schema",), 1.0, "schema 1.0 where 1 is known"),
        (("name",), ..., "does not say name"),
        (("name",), "", "name is '', and has to be a text of 1 to 255"),
        (("name",), 7, "name is 7, and has to be a text"),
        (("inputs",), [], r"inputs is \[\], and has to be a list of at least one table"),
        (("inputs",), {"name": "x"}, "inputs is .*, and has to be a list"),
        (("inputs",), [4], r"inputs\[0\] is 4, and has to be a table"),
        (("inputs",), [GOOD["inputs"][0]] * 2, r"inputs\[1\]\.name is 'x', and has to be another name"),
        (("inputs", 0, "dtype"), ..., r"does not say inputs\[0\]\.dtype"),
        (("inputs", 0, "dtype"), "float", r"inputs\[0\]\.dtype is 'float', and has to be one of bool, int8"),
        (("inputs", 0, "dtype"), "object", r"dtype is 'object'"),
        (("inputs", 0, "shape"), ["batch", -4], r"inputs\[0\]\.shape is \['batch', -4\].*\(-4 is neither\)"),
        (("inputs", 0, "shape"), [1.5, 4], r"1\.5 is neither"),
        (("outputs", 0, "shape"), [True, 4], r"outputs\[0\]\.shape .*True is neither"),
        (("outputs", 0, "shape"), ["4", 3], r"'4' is neither"),
        (("inputs", 0, "shape"), "batch", r"shape is 'batch', and has to be a list"),
        (("limits",), [1], r"limits is \[1\], and has to be a table"),
        (("limits", "deadlin_ms"), 5, r"limits\.deadlin_ms is 5, and has to be left out \(limits has deadline_ms"),
        (("limits", "deadline_ms"), math.nan, r"limits\.deadline_ms is nan, and has to be a number above 0 up to 604"),
        (("limits", "deadline_ms"), 0, r"deadline_ms is 0, "),
        (("limits", "deadline_ms"), -5.0, r"deadline_ms is -5\.0, "),
        (("limits", "deadline_ms"), "2 s", r"deadline_ms is '2 s', "),
        (("limits", "load_s"), 1e300, r"limits\.load_s is 1e\+300, and has to be a number above 0"),
        (("limits", "load_s"), math.inf, r"load_s is inf, "),
        (("limits", "load_s"), "60", r"load_s is '60', "),
        (("limits", "load_s"), True, r"load_s is True, "),
        (("limits", "load_s"), 10**400, r"load_s is 1000.*…, "),
        (("limits", "memory_mib"), 99999999999999, r"memory_mib is 99999999999999, and has to be a whole number"),
        (("limits", "memory_mib"), 512.5, r"memory_mib is 512\.5, "),
        (("limits", "memory_mib"), -1, r"memory_mib is -1, "),
        pytest.param(("limits", "memory_mib"), 10**5000, r"memory_mib is a int too large to show, ", id="huge"),
        (("limits", "threads"), 0, r"threads is 0, and has to be a whole number from 1"),
        (("tolerance", "atol"), -1e-4, r"tolerance\.atol is -0\.0001, and has to be a number from 0"),
        (("tolerance", "rtol"), math.inf, r"rtol is inf, "),
        (("tolerance", "top1"), "no", r"top1 is 'no', and has to be true or false"),
        (("tokenizer",), "tokenizer.json", r"tokenizer is 'tokenizer\.json', and has to be a table"),
        (("tokenizer", "file"), "/etc/passwd", r"tokenizer\.file is '/etc/passwd', and has to be the path of a file"),
        (("tokenizer", "fallback"), "../vocab.txt", r"tokenizer\.fallback is '\.\./vocab\.txt'"),
        (("tokenizer", "max_tokens"), 0, r"tokenizer\.max_tokens is 0, "),
        (("tokenizer", "lowercase"), 1, r"tokenizer\.lowercase is 1, and has to be true or false"),
        (("files",), [1], r"files is \[1\], and has to be a table"),
        (("files", "model.onnx"), 5, r"files\.'model\.onnx' is 5, and has to be a sha256"),
        (("files", "model.onnx"), "F" * 64, r"files\.'model\.onnx' is 'F+'?…?, and has to be a sha256"),
        (("files", "a" * 5000), "0" * 64, r"a key of files is 'a+…, and has to be a text of 1 to 255"),
        (("files", "../model.onnx"), "0" * 64, r"a key of files is '\.\./model\.onnx', and has to be the path"),
        (("files", "é" * 200), "0" * 64, r"and has to be the path of a file inside"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named(place: tuple[Any, ...], value: object, says: str, tmp_path: Path) -> None:
    """The sentence has the key, the value and what is allowed."""
    folder = write(tmp_path / "m", changed(place, value))
    assert re.search(says, refused(lambda: open_folder(folder)))


@pytest.mark.parametrize(
    "text", ["schema = 1\nname = ", "a = " + "9" * 5000, "a = " + "[" * 20_000, "\x00", "schema = 1\nschema = 1"]
)
def test_text_that_is_no_model_toml(text: str, tmp_path: Path) -> None:
    """What the parser itself does not take, whatever it raises, is a file that cannot be read."""
    folder = write(tmp_path / "m")
    (folder / "model.toml").write_text(text)
    assert "model.toml cannot be read" in refused(lambda: open_folder(folder))
    (folder / "model.toml").write_bytes(b"\xff\xfe")
    assert "model.toml cannot be read" in refused(lambda: open_folder(folder))
    (folder / "model.toml").write_bytes(b"#" * (5 << 20))
    assert "more than 4,194,304 bytes" in refused(lambda: open_folder(folder))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES), value=st.just(...) | VALUES)
def test_any_value_opens_or_is_refused(place: tuple[Any, ...], value: object, tmp_path: Path) -> None:
    """Whatever stands at a key, the folder opens with figures that can be served, or the one error says why not."""
    folder = write(tmp_path / "m", changed(place, value))
    try:
        opened = open_folder(folder)
    except ModelFolderError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017  either way is good, so neither is expected
        return
    serves(opened)
    with contextlib.suppress(ModelFolderError):
        opened.golden()


def within(seconds: float, act: Callable[[], object], pipe: Path | None = None) -> object:
    """Return what ``act`` returns or raised; whatever waits for a pipe is let go at the end."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(act())
        except Exception as error:  # noqa: BLE001  handed to the test
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive() and pipe is not None:
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))
        thread.join(seconds)
        pytest.fail(f"waited for somebody to write to {pipe.name}")
    return found[0]


@pytest.mark.parametrize(
    "name", ["model.toml", "golden.npz", "model.onnx", "model.ts.pt", "tokenizer.json", "vocab.txt", "weights.bin"]
)
def test_a_pipe_among_the_files_is_refused_and_not_waited_for(name: str, tmp_path: Path) -> None:
    """Each file that somebody would open may be a pipe that nobody writes to: declared, or named by the graph alone."""
    folder = write(tmp_path / "m")
    path = folder / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    found = within(20, lambda: open_folder(folder), path)
    assert isinstance(found, ModelFolderError)
    assert name in str(found)
    assert "is a named pipe where" in str(found)


def test_a_pipe_in_place_of_what_is_read_later_is_not_waited_for(tmp_path: Path) -> None:
    """A folder that was opened is read without waiting, too: the golden arrays, and what a hash is taken of."""
    folder = open_folder(write(tmp_path / "m"))
    path = folder.path / "golden.npz"
    path.unlink()
    os.mkfifo(path)
    found = within(20, folder.golden, path)
    assert isinstance(found, ModelFolderError)
    assert "golden.npz cannot be read (it is a named pipe where a file belongs)" in str(found)
    assert isinstance(within(20, lambda: file_hash(path), path), OSError)


def test_devices_sockets_and_folders_are_no_files(tmp_path: Path) -> None:
    """A link to a device, which may have no end, and a socket are refused by what they are; so is a folder."""
    folder = write(tmp_path / "m")
    for name in ("model.toml", "golden.npz", "model.onnx"):
        write(tmp_path / "m")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to("/dev/null")
        assert re.search(rf"{name} .*is a device where", refused(lambda: open_folder(folder)))
        (folder / name).unlink()
    write(tmp_path / "m")
    with socket.socket(socket.AF_UNIX) as one:
        here = os.open(folder, os.O_RDONLY)  # the path itself may be too long for a socket
        try:
            one.bind(f"/proc/self/fd/{here}/weights.bin")
        finally:
            os.close(here)
        assert "weights.bin is a socket where" in refused(lambda: open_folder(folder))
    (folder / "weights.bin").unlink()
    (folder / "golden.npz").unlink()
    (folder / "golden.npz").mkdir()
    assert "it is a folder where a file belongs" in refused(lambda: open_folder(folder).golden())


def test_a_folder_is_read_without_a_look_at_its_files(tmp_path: Path) -> None:
    """Who has words of its own for what lies in the folder reads model.toml alone."""
    folder = write(tmp_path / "m")
    os.mkfifo(folder / "model.onnx")
    assert read_folder(folder).name == "tiny"
    assert "is no folder" in refused(lambda: open_folder(tmp_path / "nowhere"))
    assert "cannot be read" in refused(lambda: open_folder(tmp_path / ("x" * 300)))
    assert "cannot be read" in refused(lambda: open_folder("a\x00b"))


def announcing(shape: tuple[int, ...], dtype: str = "<f4", content: bytes = b"\x00" * 32) -> bytes:
    """An array whose header says what it likes."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    return out.getvalue() + content


def golden(folder: Path, x: bytes, name: str = "in.x.npy") -> ModelFolder:
    """Put an entry of bytes into golden.npz, in place of the feed."""
    with np.load(folder / "golden.npz") as stored:
        y = announcing((2, 3), content=stored["out.y"].tobytes())
    with zipfile.ZipFile(folder / "golden.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, x)
        archive.writestr("out.y.npy", y)
    return open_folder(folder)


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (announcing((1 << 42,)), r"in\.x announces 17,592,186,044,416 bytes, \d+ bytes are there"),
        (announcing((1 << 40, 1 << 40)), r"announces [\d,]+ bytes"),
        (announcing((-1, 4)), r"an array has the shape \(-1, 4\)"),
        (announcing((2, 4), dtype="|O"), "an array holds Python objects"),
        (announcing((2, 4), content=b"\x00" * 31), "announces|cannot be read"),
        (announcing((0, 1 << 62)), "cannot be read|does not fit"),
        (b"\x93NUMPY\x03\x00", r"unknown format \(3, 0\)"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "cannot be read"),
        (b"", "cannot be read"),
        (b"(" * 9000, "cannot be read"),
    ],
)
def test_an_array_that_cannot_be_loaded_is_not(x: bytes, says: str, tmp_path: Path) -> None:
    """What a header announces is held against what is there before memory is asked for; all damage is one error."""
    folder = golden(write(tmp_path / "m"), x)
    assert re.search(says, refused(folder.golden))


def test_arrays_beyond_all_measure_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    """An archive can say that it holds what its headers announce; still no more is read than a feed may have."""
    folder = golden(write(tmp_path / "m"), announcing((1 << 40,)))
    path = folder.path / "golden.npz"
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02")  # the directory's entry: its size of 32 bits becomes one of 64 bits
    content[at + 24 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    path.write_bytes(content)
    text = refused(folder.golden)
    assert re.search(r"announces 4,398,046,511,104 bytes", text)
    small = golden(write(tmp_path / "n"), announcing(((1 << 30) + 1,)))
    content = bytearray((small.path / "golden.npz").read_bytes())
    at = content.index(b"PK\x01\x02")
    content[at + 24 : at + 28] = (0xFFFFFFFF - 1).to_bytes(4, "little")
    (small.path / "golden.npz").write_bytes(content)
    assert "4,294,967,300 bytes" in refused(small.golden)


@pytest.mark.parametrize("content", [announcing((2, 4)), b"", b"PK\x03\x04", b"no archive at all" * 100])
def test_a_golden_file_that_is_no_archive(content: bytes, tmp_path: Path) -> None:
    """One array alone, an empty file, and what is no archive."""
    folder = open_folder(write(tmp_path / "m"))
    (folder.path / "golden.npz").write_bytes(content)
    assert "golden.npz cannot be read" in refused(folder.golden)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_golden_file_loads_or_is_refused(changes: list[tuple[int, int]], tmp_path: Path) -> None:
    """Any byte may be another one: the arrays come as declared, or the one error says that they do not."""
    folder = open_folder(write(tmp_path / "m"))
    path = folder.path / "golden.npz"
    content = bytearray(path.read_bytes())
    for place, value in changes:
        content[place % len(content)] = value
    path.write_bytes(content)
    try:
        feed, answer = folder.golden()
    except ModelFolderError:
        return
    assert (feed["x"].shape, answer["y"].shape[1:]) == ((2, 4), (3,))


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"in.x": np.ones((2, 7), np.float32)}, r"input 'x' has shape \(2, 7\) where the model takes \[batch, 4\]"),
        ({"in.x": np.ones((2, 4))}, "input 'x' is float64 where the model takes float32"),
        ({"in.x": np.ones((0, 4), np.float32)}, "input 'x' is empty"),
        ({"out.y": np.ones((2, 4), np.float32)}, r"output 'y' is float32 \[2, 4\] where float32 \['batch', 3\]"),
        ({"out.y": np.ones((2, 3))}, "output 'y' is float64"),
        ({"out.y": np.ones(3, np.float32)}, r"output 'y' is float32 \[3\]"),
    ],
)
def test_golden_arrays_are_those_declared(arrays: dict[str, Any], says: str, tmp_path: Path) -> None:
    """A golden feed that a request would be refused with, or an answer of another form, is not what is served."""
    folder = open_folder(write(tmp_path / "m"))
    np.savez(folder.path / "golden.npz", **(FEED | arrays))
    text = refused(folder.golden)
    assert "does not fit model.toml" in text
    assert re.search(says, text)
    np.savez(folder.path / "golden.npz", **{"in.x": FEED["in.x"]})
    assert "has no array out.y" in refused(folder.golden)
