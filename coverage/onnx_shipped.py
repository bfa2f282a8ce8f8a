"""What the session that ships executes: optimised as in production, so its nodes are not those of the graph."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from crashpath.coverage.onnx_trace import read_profile
from crashpath.coverage.onnx_units import present
from crashpath.coverage.units import Shipped
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.values import Arrays


def shipped(folder: ModelFolder, providers: Sequence[str], feeds: Sequence[Arrays]) -> Shipped:
    """Run feeds on an optimised session and return which of its nodes ran, by operator. Raises as the session does."""
    import onnx
    import onnxruntime as ort

    with tempfile.TemporaryDirectory(prefix="crashpath-shipped-") as scratch:
        options = ort.SessionOptions()
        options.intra_op_num_threads = folder.limits.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(scratch, "profile"))
        options.optimized_model_filepath = str(Path(scratch, "session.onnx"))
        there = [one for one in providers if one in ort.get_available_providers()]
        session = ort.InferenceSession(str(folder.main), options, providers=there or ["CPUExecutionProvider"])
        for feed in feeds:
            session.run(None, dict(feed))
        ran = {event.node for event in read_profile(Path(session.end_profiling()))}
        nodes = present(onnx.load(str(Path(scratch, "session.onnx")), load_external_data=False))
    left = tuple(sorted(f"{name} ({operator})" for name, operator in nodes.items() if name not in ran))
    return Shipped(len(nodes) - len(left), len(nodes), left)
