"""The encoder: checked weights, unit vectors, the same whatever the company and the order."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crashpath.clustering.encoder import (
    FakeEncoder,
    SentenceEncoder,
    WeightsChangedError,
    WeightsMissingError,
    minilm,
    open_encoder,
)
from crashpath.clustering.vectors import MemoryCache, embed

TEXTS = ["CUDA out of memory", "cannot import name 'x' from 'y'", "Protobuf parsing failed"]


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    """The real encoder, loaded once."""
    return minilm()


def test_importing_clustering_does_not_import_torch() -> None:
    """torch costs seconds: none of the clustering modules imports it, nor UMAP, before a text needs a vector."""
    code = (
        "import sys, crashpath.clustering.group, crashpath.clustering.classifier, crashpath.clustering.registry;"
        "sys.exit(bool({'torch', 'umap', 'hdbscan', 'sentence_transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd="/").returncode == 0


def test_vectors_are_unit_and_tell_meaning(encoder: SentenceEncoder) -> None:
    """Rows have length 1 within rounding, and a paraphrase is nearer than another failure."""
    vectors = encoder.encode([*TEXTS, "out of memory on the GPU"])
    assert vectors.shape == (4, encoder.dim)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-3)
    assert vectors[3] @ vectors[0] > max(vectors[3] @ vectors[1], vectors[3] @ vectors[2])


def test_order_does_not_matter(encoder: SentenceEncoder) -> None:
    """The same texts in another order give the same bits, row for row."""
    forwards, backwards = encoder.encode(TEXTS), encoder.encode(TEXTS[::-1])
    assert np.array_equal(forwards, backwards[::-1])


def test_company_moves_less_than_a_decision_sees(encoder: SentenceEncoder) -> None:
    """A text alone and in a batch of longer ones has the same vector to the last decimal that is kept."""
    alone = encoder.encode(TEXTS[:1])
    among = encoder.encode([*TEXTS, "a much longer text " * 40])[:1]
    assert np.abs(alone - among).max() <= 1.01e-5


def test_changed_weights_are_refused(tmp_path: Path) -> None:
    """Weights with another hash are named in one sentence with advice, before anything is loaded."""
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(WeightsChangedError, match="reinstall with: pip install"):
        SentenceEncoder(tmp_path, id="x", dim=384, sha256="0" * 64).encode(["text"])


def test_missing_weights_are_named(tmp_path: Path) -> None:
    """A folder without weights is named in one sentence."""
    with pytest.raises(WeightsMissingError, match=r"model\.safetensors is missing"):
        SentenceEncoder(tmp_path, id="x", dim=384, sha256="0" * 64).encode(["text"])


def test_another_model_is_named_by_all_its_weights(tmp_path: Path) -> None:
    """The id changes with every weight file of whatever kind, also one of a module's folder, and with nothing else."""
    folder = tmp_path / "bert"
    (folder / "2_Dense").mkdir(parents=True)
    (folder / "pytorch_model.bin").write_bytes(b"one")
    ids = [open_encoder(str(folder)).id]
    (folder / "README.md").write_text("no weights")
    assert open_encoder(str(folder)).id == ids[0]
    for name in ("2_Dense/model.safetensors", "2_Dense/pytorch_model.bin", "pytorch_model.bin"):
        (folder / name).write_bytes(b"more")
        ids.append(open_encoder(str(folder)).id)
    assert len(set(ids)) == 4
    assert all(one.startswith("bert-") for one in ids)


def test_a_model_without_weights_is_refused(tmp_path: Path) -> None:
    """A folder without weights, and a name that is neither a folder nor in the cache, are one sentence with advice."""
    (tmp_path / "config.json").write_text("{}")
    for name in (str(tmp_path), "no-such/model", "no such model"):
        with pytest.raises(WeightsMissingError, match=r"give .*the folder of a sentence-transformers model"):
            open_encoder(name)


def test_a_cached_model_is_found_by_name(tmp_path: Path) -> None:
    """A model that the hub's client has fetched before is found by its name, and has the id of its weights."""
    home = tmp_path / "hub" / "models--sentence-transformers--small"
    (home / "snapshots" / "abc").mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("abc")
    (home / "snapshots" / "abc" / "model.safetensors").write_bytes(b"weights")
    code = "from crashpath.clustering.encoder import open_encoder; print(open_encoder('small').id)"
    env = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_CACHE": str(tmp_path / "hub")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env, cwd="/")
    assert done.stdout.strip() == f"small-{hashlib.sha256(b'weights').hexdigest()[:8]}", done.stderr


def test_dimension_is_asked_of_the_model() -> None:
    """Where the length of a vector is not given, the model says it."""
    folder = Path(str(minilm()._model))
    assert open_encoder(str(folder)).dim == 384


def test_a_text_is_encoded_once() -> None:
    """Only texts without a vector are encoded, each once, and the count says so."""
    encoder, cache = FakeEncoder(), MemoryCache()
    assert embed(["a", "b", "a"], encoder, cache)[1] == 2
    vectors, missing = embed(["b", "c"], encoder, cache)
    assert missing == 1
    assert encoder.seen == ["a", "b", "c"]
    assert np.array_equal(vectors[0], encoder.encode(["b"])[0])


def test_first_vector_of_a_text_stays() -> None:
    """What was decided on one vector must not move because a later run computed another."""
    cache = MemoryCache()
    cache.put_many("e", {"t": np.ones(2, dtype=np.float32)})
    cache.put_many("e", {"t": np.zeros(2, dtype=np.float32)})
    assert cache.get_many("e", ["t"])["t"].tolist() == [1.0, 1.0]


def test_no_texts_no_vectors() -> None:
    """An empty input gives an empty array of the right width."""
    assert embed([], FakeEncoder(8), MemoryCache())[0].shape == (0, 8)
