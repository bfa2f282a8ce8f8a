"""The backends themselves, on real artefacts; and the strikes that a lane counts."""

from __future__ import annotations

import re
import threading
from pathlib import Path as FilePath

import numpy as np
import pytest

from crashpath.runtime.backends import OrtBackend, TorchScriptBackend, open_backend
from crashpath.runtime.errors import DeviceInit, LoadCorrupt, ModelFolderError
from crashpath.runtime.reasons import recognise
from crashpath.runtime.strikes import Armed, call
from crashpath.runtime.testing import ENDLESS, KINDS, tiny_folder
from crashpath.runtime.values import Path, Phase, Strike


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_both_answer_alike(tmp_path: FilePath, kind: str) -> None:
    """Rule: both backends answer the golden feed with the folder's names, dtypes and values."""
    folder = tiny_folder(tmp_path, kind=kind)
    feed, answer = folder.golden()
    for backend in (OrtBackend(folder), TorchScriptBackend(folder)):
        given = backend.run(feed)
        assert given.keys() == answer.keys()
        for name, array in answer.items():
            assert given[name].dtype == array.dtype
            np.testing.assert_allclose(given[name], array, rtol=1e-5)
        assert backend.signature().inputs == tuple(spec.name for spec in folder.inputs)
        assert backend.versions()
        backend.close()


def test_torchscript_takes_arrays_as_they_come(tmp_path: FilePath) -> None:
    """Rule: read-only and strided feeds are answered; the answer is the caller's own."""
    folder = tiny_folder(tmp_path)
    backend = TorchScriptBackend(folder)
    feed = np.arange(16, dtype=np.float32).reshape(4, 4)[::-1, ::-1]
    feed.flags.writeable = False
    given = backend.run({"x": feed})["y"]
    np.testing.assert_allclose(given, KINDS["affine"].answer({"x": feed}), rtol=1e-5)
    given[:] = 0
    np.testing.assert_allclose(backend.run({"x": feed})["y"], KINDS["affine"].answer({"x": feed}), rtol=1e-5)


def test_a_provider_is_never_replaced_in_silence(tmp_path: FilePath) -> None:
    """Rule: a provider that cannot be used is `DeviceInit`, where onnxruntime warns and computes on the processor."""
    folder = tiny_folder(tmp_path, fallback=False)
    for provider in ("CUDAExecutionProvider", "NoSuchExecutionProvider"):
        with pytest.raises(DeviceInit, match=provider):
            OrtBackend(folder, providers=(provider, "CPUExecutionProvider"))


def test_a_file_that_does_not_load_is_named(tmp_path: FilePath) -> None:
    """Rule: what either library says of an artefact that was cut names the file, and is known as a corrupt artefact."""
    folder = tiny_folder(tmp_path)
    for file, backend, path in (
        (folder.main, OrtBackend, Path.MAIN),
        (folder.fallback, TorchScriptBackend, Path.FALLBACK),
    ):
        content = file.read_bytes()
        for kept in (content[:100], content[: len(content) // 2], b"no artefact at all"):
            file.write_bytes(kept)
            with pytest.raises(Exception, match=re.escape(file.name)) as caught:
                backend(folder)
            failure = recognise(caught.value, Phase.LOAD, path)
            assert isinstance(failure, LoadCorrupt)
            assert file.name in str(failure)


def test_missing_files_are_named(tmp_path: FilePath) -> None:
    """Rule: an artefact or external data that is not there is one sentence that names it."""
    folder = tiny_folder(tmp_path, external="model.onnx.data")
    (tmp_path / "model.onnx.data").unlink()
    with pytest.raises(ModelFolderError, match=r"model\.onnx\.data"):
        OrtBackend(folder)
    folder.fallback.unlink()
    with pytest.raises(ModelFolderError, match=r"model\.ts\.pt"):
        TorchScriptBackend(folder)
    with pytest.raises(ValueError, match="not known"):
        open_backend("tflite", folder, threads=1, providers=())


def test_cancel_stops_the_run_of_one_thread(tmp_path: FilePath) -> None:
    """Rule: a run is cancelled by its thread; another that goes on is answered."""
    folder = tiny_folder(tmp_path, kind="loop", fallback=False)
    backend = OrtBackend(folder)
    feed = folder.golden()[0]
    failed = threading.Event()

    def endless() -> None:
        with pytest.raises(Exception, match="terminate flag"):
            backend.run({"x": feed["x"], "steps": np.array([ENDLESS])})
        failed.set()

    thread = threading.Thread(target=endless)
    thread.start()
    assert not failed.wait(0.2)
    backend.cancel(-1)
    assert not failed.wait(0.2)
    backend.cancel(thread.ident)
    assert failed.wait(60)
    thread.join()
    backend.run(feed)


def test_a_strike_hits_as_told() -> None:
    """Rule: from the nth call of its phase on, so many times, then it is disarmed; other phases do not count."""
    armed = Armed(Strike("m:f", Phase.INFER, nth=2, times=2))
    hits = [armed.due(phase) is not None for phase in (Phase.INFER, Phase.LOAD, *[Phase.INFER] * 4)]
    assert hits == [False, False, True, True, False, False]
    assert armed.strike is None


def test_a_strike_by_chance_is_repeatable() -> None:
    """Rule: the same seed hits the same calls; about as many as its probability says."""
    drawn = []
    for _ in range(2):
        armed = Armed(Strike("m:f", Phase.INFER, times=10_000, probability=0.3, seed=5))
        drawn.append([armed.due(Phase.INFER) is not None for _ in range(1000)])
    assert drawn[0] == drawn[1]
    assert 200 < sum(drawn[0]) < 400


def test_a_strike_that_is_no_function() -> None:
    """Rule: what cannot be resolved says so and how it is written."""
    for function in ("nowhere:f", "os:no_such", "os"):
        with pytest.raises(ValueError, match="module:function"):
            call(function, "")
