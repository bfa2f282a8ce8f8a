"""The tiny model folders that other tests stand on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from crashpath.runtime.testing import KINDS, tiny_folder


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_both_artefacts_give_the_golden_answer(tmp_path: Path, kind: str) -> None:
    """Rule: each kind's two artefacts answer the golden feed as numpy does."""
    import torch

    folder = tiny_folder(tmp_path, kind=kind)
    feed, answer = folder.golden()
    (name,) = answer
    session = ort.InferenceSession(str(folder.main), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run([name], dict(feed))[0], answer[name], rtol=1e-5)
    module = torch.jit.load(str(folder.fallback))
    tensors = [torch.from_numpy(feed[spec.name]) for spec in folder.inputs]
    np.testing.assert_allclose(module(*tensors).numpy(), answer[name], rtol=1e-5)


def test_weights_can_lie_beside_the_graph(tmp_path: Path) -> None:
    """Rule: external data is a file of the folder with its hash."""
    folder = tiny_folder(tmp_path, external="model.onnx.data", fallback=False)
    assert (tmp_path / "model.onnx.data").stat().st_size > 0
    assert "model.onnx.data" in dict(folder.files)
