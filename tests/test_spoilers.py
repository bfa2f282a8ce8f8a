"""Spoilers: a copy of a model folder is really broken, and whole again afterwards."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from crashpath.coverage.drillfolder import exam_of
from crashpath.coverage.modelapps import write_tokenizer
from crashpath.coverage.spoilers import (
    FIFO_WAITS,
    HELD_WAITS,
    SPOILERS,
    Spoiler,
    can_hold,
    file_of,
    spoiled,
    spoiler,
)
from crashpath.runtime.testing import tiny_folder

ROOT_READS_ALL = ("closed", "weights-closed", "tokenizer-closed")
OF_THE_GRAPH = [
    one for one in SPOILERS if one.file in ("{main}", "{external}") and one.name != "never-delivered" and not one.held
]


def _bytes(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("how", OF_THE_GRAPH, ids=lambda one: one.name)
@pytest.mark.parametrize("kind", ["affine", "gather"])
def test_a_spoiled_model_fails_and_is_mended(how: Spoiler, kind: str, tmp_path: Path) -> None:
    """A spoiled model cannot be opened, a poisonous one cannot run one row more; afterwards every byte is as before."""
    folder = tiny_folder(tmp_path / "model", kind=kind, external="model.onnx.data", fallback=False)
    exam = exam_of(folder)
    before = _bytes(folder.path)
    file = file_of(how, folder.path, None)
    assert file is not None
    with spoiled(how, file):
        if how.name in ROOT_READS_ALL and os.geteuid() == 0:
            assert file.stat().st_mode & 0o777 == 0
        elif how.poisons:
            session = ort.InferenceSession(str(folder.main))
            assert np.allclose(session.run(None, dict(exam.feed))[0], exam.answer["y"])
            assert exam.poison_feed is not None
            options = ort.RunOptions()
            watchdog = threading.Timer(0.5, setattr, (options, "terminate", True))
            watchdog.start()
            with pytest.raises(Exception, match=r"terminate flag|allocate memory|cannot be reshaped"):
                session.run(None, dict(exam.poison_feed), options)
            watchdog.cancel()
        else:
            with pytest.raises(Exception, match="ONNXRuntimeError"):
                ort.InferenceSession(str(folder.main))
    assert _bytes(folder.path) == before
    assert np.allclose(ort.InferenceSession(str(folder.main)).run(None, dict(exam.feed))[0], exam.answer["y"])


@pytest.mark.parametrize("how", [one for one in SPOILERS if one.file == "{tokenizer}"], ids=lambda one: one.name)
def test_a_spoiled_tokenizer_cannot_be_built(how: Spoiler, tmp_path: Path) -> None:
    """A spoiled tokenizer file cannot be read, and can again afterwards."""
    from tokenizers import Tokenizer

    file = write_tokenizer(tmp_path / "tokenizer.json")
    with spoiled(how, file):
        if how.name in ROOT_READS_ALL and os.geteuid() == 0:
            assert file.stat().st_mode & 0o777 == 0
        else:
            with pytest.raises(Exception, match=r"EOF|expected|No such file|did not match|denied"):
                Tokenizer.from_file(str(file))
    assert Tokenizer.from_file(str(file)).encode("load run").ids == [1, 2]


def test_a_fifo_is_seen_to_be_read_and_lets_go(tmp_path: Path) -> None:
    """Whether somebody waits at the FIFO is observed, and mending the folder lets whoever waits go on."""
    file = tmp_path / "model.onnx"
    file.write_bytes(b"model")
    read: list[bytes] = []
    with spoiled(spoiler("never-delivered"), file) as broken:
        assert broken.observe() == "nobody reads"
        reader = threading.Thread(target=lambda: read.append(file.read_bytes()))
        reader.start()
        while broken.observe() != FIFO_WAITS:
            time.sleep(0.01)
        reader.join(0.2)
        assert reader.is_alive()
    reader.join(30)
    assert read == [b""]
    assert file.read_bytes() == b"model"


def test_a_held_file_is_a_file_that_nobody_gets(tmp_path: Path) -> None:
    """A held file looks whole, whoever opens it waits, which is observed, and gets all of it when it is let go."""
    if not can_hold(tmp_path):
        pytest.skip("this file system knows no leases")
    file = tmp_path / "model.onnx"
    file.write_bytes(b"model")
    read: list[bytes] = []
    with spoiled(spoiler("held"), file) as broken:
        assert file.is_file()
        assert file.stat().st_size == 5
        assert broken.observe() == "nobody opens"
        reader = threading.Thread(target=lambda: read.append(file.read_bytes()))
        reader.start()
        while broken.observe() != HELD_WAITS:
            time.sleep(0.01)
        reader.join(0.2)
        assert reader.is_alive()
    reader.join(30)
    assert read == [b"model"]
    assert file.read_bytes() == b"model"
