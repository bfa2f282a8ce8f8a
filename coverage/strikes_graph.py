"""Strikes in which a library refuses a graph: a real session on a real file. ``argument``: the file."""

from __future__ import annotations


def opens(argument: str) -> None:
    """Open a session of ONNX Runtime."""
    import onnxruntime as ort

    ort.InferenceSession(argument, providers=["CPUExecutionProvider"])


def runs(argument: str) -> None:
    """Open a session of ONNX Runtime and run it on ones of the declared shapes, 2 for each free dimension."""
    import numpy as np
    import onnxruntime as ort

    session = ort.InferenceSession(argument, providers=["CPUExecutionProvider"])
    types = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(double)": np.float64}
    feed = {
        one.name: np.ones([size if isinstance(size, int) else 2 for size in one.shape], dtype=types[one.type])
        for one in session.get_inputs()
    }
    session.run(None, feed)


def refuses(argument: str) -> None:
    """Run ONNX Runtime on a feed whose sizes are not those that the graph declares: it refuses the feed."""
    import numpy as np
    import onnxruntime as ort

    session = ort.InferenceSession(argument, providers=["CPUExecutionProvider"])
    session.run(None, {one.name: np.ones([7] * len(one.shape), np.float32) for one in session.get_inputs()})
