"""The encoder on the runtime: the plain encoder's vectors, its export whole or not there, its twin only when needed."""

from __future__ import annotations

import logging
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from crashpath.clustering.encoder import SentenceEncoder, WeightsMissingError, minilm_folder
from crashpath.clustering.exports import cache_folder, exported
from crashpath.clustering.runtime_encoder import RuntimeEncoder, serve
from crashpath.runtime.errors import ExportError
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.values import Path as Way
from crashpath.runtime.values import Phase, Strike

TEXTS = ["CUDA out of memory", "killed", "Protobuf parsing failed: modèle 模", "a much longer text " * 40, ""]
ID = "tiny-1"
PATIENCE = 240.0
_FULL = Strike("builtins:exec", Phase.INFER, "raise MemoryError('std::bad_alloc')", times=99)
_EXPORT = (
    "import sys; from pathlib import Path; from crashpath.clustering.exports import exported;"
    f"exported(lambda: Path(sys.argv[1]), {ID!r}, Path(sys.argv[2]))"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real sentence-transformers model of two small layers with seeded weights."""
    import torch
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel, BertTokenizerFast

    place = tmp_path_factory.mktemp("model")
    letters = [*"abcdefghijklmnopqrstuvwxyz:0123456789", "模"]
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *letters,
        *(f"##{one}" for one in letters),
        "memory",
        "killed",
    ]
    (place / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
    )
    BertModel(config).save_pretrained(str(place / "bert"))
    BertTokenizerFast(str(place / "vocab.txt")).save_pretrained(str(place / "bert"))
    bert = models.Transformer(str(place / "bert"), max_seq_length=256)
    pooling = models.Pooling(32, pooling_mode="mean")
    SentenceTransformer(modules=[bert, pooling, models.Normalize()], device="cpu").save(str(place / "whole"))
    return place / "whole"


@pytest.fixture(scope="module")
def cache(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the export in it; tests that change it copy it."""
    place = tmp_path_factory.mktemp("cache")
    exported(lambda: model, ID, place)
    return place


def _encoder(model: Path, cache: Path) -> RuntimeEncoder:
    return RuntimeEncoder(SentenceEncoder(model, id=ID), cache=cache, threads=1)


def _folder(cache: Path) -> ModelFolder:
    return exported(_no_source, ID, cache)


def _no_source() -> Path:
    raise AssertionError("the export was there and whole: nothing had to be exported")


def test_vectors_are_the_plain_encoders(model: Path, cache: Path) -> None:
    """Same id, same length, and the same vectors to the last decimal that is kept, in the order of the texts."""
    ours, plain = _encoder(model, cache), SentenceEncoder(model, id=ID)
    assert (ours.id, ours.dim) == (plain.id, plain.dim) == (ID, 32)
    assert np.abs(ours.encode(TEXTS) - plain.encode(TEXTS)).max() <= 1.01e-5
    assert np.array_equal(ours.encode([*TEXTS[::-1], TEXTS[0]])[:-1], ours.encode(TEXTS)[::-1])
    assert ours.encode([]).shape == (0, 32)
    ours.close()


def test_half_a_surrogate_pair_has_a_vector(model: Path, cache: Path) -> None:
    """A text that cannot be UTF-8 does not end a night."""
    ours = _encoder(model, cache)
    assert np.isfinite(ours.encode(["killed \ud800"])).all()
    ours.close()


def test_torch_is_not_imported_where_the_export_is_there(cache: Path) -> None:
    """With the export in the cache a text gets its vector without torch and without sentence-transformers."""
    code = (
        "import sys; from pathlib import Path; from crashpath.clustering.encoder import SentenceEncoder;"
        "from crashpath.clustering.runtime_encoder import RuntimeEncoder;"
        f"e = RuntimeEncoder(SentenceEncoder('/nowhere', id={ID!r}), cache=Path(sys.argv[1]));"
        "assert e.encode(['killed']).shape == (1, 32);"
        "sys.exit(bool({'torch', 'sentence_transformers', 'transformers', 'onnx'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(cache)], check=False, capture_output=True, text=True, cwd="/"
    )
    assert done.returncode == 0, done.stderr


def test_the_twin_answers_when_the_main_path_fails(cache: Path) -> None:
    """The TorchScript twin sleeps until the main path fails, then gives the same vectors."""
    with serve(_folder(cache), 1) as session:
        right = session.run_raw(TEXTS)
        assert (right.path, session.facts().fallback.loads) == (Way.MAIN, 0)
        with session.armed(Way.MAIN, _FULL):
            answer = session.run_raw(TEXTS)
        assert answer.path is Way.FALLBACK
        assert answer.cause is not None
        assert answer.cause.failure_class == "oom_host"
        assert session.facts().fallback.loads == 1
        assert np.allclose(answer.outputs["embedding"], right.outputs["embedding"], atol=1e-6)


def test_a_tokenizer_that_is_lost_is_replaced_by_its_vocabulary(cache: Path, tmp_path: Path) -> None:
    """Without tokenizer.json the bare vocabulary gives the same vectors."""
    folder = _folder(_copy(cache, tmp_path))
    with serve(folder, 1) as session:
        (folder.path / "tokenizer.json").unlink()
        answer = session.run_raw(TEXTS)
    with serve(_folder(cache), 1) as session:
        assert np.allclose(answer.outputs["embedding"], session.run_raw(TEXTS).outputs["embedding"], atol=1e-6)
    assert answer.cause is not None
    assert answer.cause.failure_class == "tokenizer"


def test_a_damaged_twin_is_not_trusted(
    model: Path, cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the twin is not what was written and is needed, sentence-transformers encodes, and a warning says why."""
    folder = _folder(_copy(cache, tmp_path))
    with folder.fallback.open("r+b") as file:
        file.seek(folder.fallback.stat().st_size // 2)
        file.write(b"damage")
    ours = _encoder(model, tmp_path / "copy")
    right = ours.encode(TEXTS)
    session = ours._session
    assert session is not None
    with session.armed(Way.MAIN, _FULL), caplog.at_level(logging.WARNING):
        assert np.abs(ours.encode(TEXTS) - right).max() <= 1.01e-5
    assert "model.ts.pt has sha256" in caplog.text
    assert ours._session is None, "what was given up is not kept in memory"
    with caplog.at_level(logging.WARNING):
        ours.encode(TEXTS)
    assert ours._session is None


def test_a_reroute_is_told(model: Path, cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A batch that the twin had to answer is counted and warned of, with the class of the failure's route."""
    ours = _encoder(model, cache)
    right = ours.encode(TEXTS)
    session = ours._session
    assert session is not None
    assert ours.rerouted == 0
    with session.armed(Way.MAIN, _FULL), caplog.at_level(logging.WARNING):
        assert np.abs(ours.encode(TEXTS) - right).max() <= 1.01e-5
    assert ours.rerouted == 1
    assert "infer:oom_host" in caplog.text
    ours.close()


def test_a_damaged_export_is_made_again(model: Path, cache: Path, tmp_path: Path) -> None:
    """An artefact with another hash is exported again, and what a killed export left beside it is swept away."""
    damaged = _copy(cache, tmp_path)
    folder = _folder(damaged)
    left = folder.path.with_name(f".{folder.path.name}.abc.part")
    left.mkdir()
    with folder.main.open("r+b") as file:
        file.write(b"damage")
    again = exported(lambda: model, ID, damaged)
    assert dict(again.files)["model.onnx"] == dict(folder.files)["model.onnx"]
    assert _folder(damaged) == again
    assert not left.exists()


@pytest.mark.timeout(900)
def test_a_kill_in_the_middle_leaves_nothing_that_is_taken_for_an_export(model: Path, tmp_path: Path) -> None:
    """A killed export is no export; of two processes that come next one makes it, the other waits and takes it."""
    run = [sys.executable, "-c", _EXPORT, str(model), str(tmp_path)]
    victim = subprocess.Popen(run, cwd="/")
    place = tmp_path / "encoders"
    _wait(lambda: any(place.glob(".*.part/model.*")), victim)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert not [one for one in place.iterdir() if not one.name.startswith(".") and one.suffix != ".lock"]
    other = subprocess.Popen(run, cwd="/")
    ours = exported(lambda: model, ID, tmp_path)
    assert other.wait(PATIENCE) == 0
    made = _folder(tmp_path)
    assert made == ours
    assert sorted(one.name for one in place.iterdir()) == [made.path.name, f"{made.path.name}.lock"]


def test_without_a_cache_sentence_transformers_encodes(
    model: Path, cache: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the cache folder cannot be written the vectors are the same, and one warning says why."""
    (tmp_path / "file").write_text("in the way")
    ours = _encoder(model, tmp_path / "file")
    with caplog.at_level(logging.WARNING):
        vectors = [ours.encode(TEXTS), ours.encode(TEXTS)]
    assert caplog.text.count("cannot be used") == 1
    good = _encoder(model, cache)
    assert max(np.abs(one - good.encode(TEXTS)).max() for one in vectors) <= 1.01e-5
    good.close()


def test_a_model_that_cannot_be_exported_is_tried_once(model: Path, tmp_path: Path) -> None:
    """A refusal is kept with its reason and how to try again; the next process does not load the model for it."""
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "modules.json").write_text("[]")
    with pytest.raises(ExportError):
        exported(lambda: empty, ID, tmp_path)
    with pytest.raises(ExportError, match=r"delete .*\.refused to try again"):
        exported(lambda: model, ID, tmp_path)
    next((tmp_path / "encoders").glob("*.refused")).unlink()
    assert exported(lambda: model, ID, tmp_path).inputs


def test_missing_weights_stay_an_error_with_advice(tmp_path: Path) -> None:
    """Without weights there is nothing to fall back to: the plain encoder's sentence is what is said."""
    ours = RuntimeEncoder(SentenceEncoder(tmp_path, id="x", dim=384, sha256="0" * 64), cache=tmp_path / "cache")
    with pytest.raises(WeightsMissingError, match=r"model\.safetensors is missing"):
        ours.encode(["killed"])


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """XDG_CACHE_HOME where it is absolute, else ~/.cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "crashpath"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "crashpath"


def test_the_installed_weights_are_found() -> None:
    """The encoder that comes with the program is a folder with weights and a tokenizer."""
    assert {"model.safetensors", "tokenizer.json"} <= {one.name for one in minilm_folder().iterdir()}


def _copy(cache: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(cache, tmp_path / "copy"))


def _wait(done: Callable[[], bool], child: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert child.poll() is None, "the export ended before it could be killed"
        assert time.monotonic() < end
        time.sleep(0.005)
