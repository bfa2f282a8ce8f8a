"""Make exported artefacts fit to be served, observed and compared.

Every ONNX node has a name of its own, the weights lie where they were asked to, and neither artefact holds a path of
this machine: the same model exported with the same versions is the same bytes, so evidence for its hash holds.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crashpath.runtime.folder import MAIN_FILE

WEIGHTS_FILE = f"{MAIN_FILE}.data"
_INLINE = 1_500_000_000
"""Bytes above which weights are external in any case: a protobuf message ends at 2 GiB."""


def tidy(source: Path, target: Path, *, external_data: bool) -> int:
    """Write the graph of ``source`` to ``target`` with named nodes; returns its opset.

    With ``external_data``, or above 1.5 GB, all weights go to `WEIGHTS_FILE` beside ``target``.
    """
    import onnx

    model = onnx.load(str(source))
    _name(model.graph)
    model.doc_string = ""
    if external_data or model.ByteSize() > _INLINE:
        onnx.save_model(
            model,
            str(target),
            save_as_external_data=True,
            all_tensors_to_one_file=True,
            location=WEIGHTS_FILE,
            size_threshold=0 if external_data else 1024,
        )
    else:
        onnx.save_model(model, str(target))
    return next(int(one.version) for one in model.opset_import if one.domain in ("", "ai.onnx"))


def tidy_script(path: Path) -> None:
    """Take the source lines and their files out of a saved TorchScript archive; its code and tensors stay."""
    part = path.with_name(f"{path.name}.part")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as new:
        for record in old.infolist():
            if not record.filename.endswith((".debug_pkl", "/.data/serialization_id")):
                new.writestr(zipfile.ZipInfo(record.filename), old.read(record))
    os.replace(part, path)


def _name(graph: Any) -> None:
    taken: set[str] = set()
    for node in _nodes(graph):
        node.doc_string = ""  # the exporter writes the source lines of the module there
        wanted = node.name or f"/{node.op_type}"
        name, count = wanted, 1
        while name in taken:
            name, count = f"{wanted}_{count}", count + 1
        node.name = name
        taken.add(name)


def _nodes(graph: Any) -> Iterator[Any]:
    """Every node, the bodies of ``If`` and ``Loop`` included, in the order of the file."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _nodes(body)
