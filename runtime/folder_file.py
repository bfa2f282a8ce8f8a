"""Write ``model.toml``: what `folder.open_folder` reads, and where the model came from."""

from __future__ import annotations

import json
from collections.abc import Sequence

from crashpath.runtime.folder import SCHEMA, ModelFolder, TensorSpec

Provenance = Sequence[tuple[str, str]]
"""Facts for people, in order: versions of the libraries that wrote the artefacts, opset, where the weights are from."""


def told(folder: ModelFolder, provenance: Provenance = ()) -> str:
    """Return the text of ``model.toml`` for a folder; the same folder always gives the same text."""
    lines = [f"schema = {SCHEMA}", f"name = {_text(folder.name)}"]
    for table, tensors in (("inputs", folder.inputs), ("outputs", folder.outputs)):
        for tensor in tensors:
            lines += ["", f"[[{table}]]", *_tensor(tensor)]
    tolerance, limits = folder.tolerance, folder.limits
    lines += ["", "[tolerance]", f"atol = {tolerance.atol!r}", f"rtol = {tolerance.rtol!r}"]
    lines += [f"top1 = {_flag(tolerance.top1)}", "", "[limits]", f"deadline_ms = {limits.deadline_ms!r}"]
    lines += [f"load_s = {limits.load_s!r}", f"memory_mib = {limits.memory_mib}", f"threads = {limits.threads}"]
    if folder.tokenizer is not None:
        lines += ["", "[tokenizer]", f"file = {_text(folder.tokenizer.file)}"]
        if folder.tokenizer.fallback is not None:
            lines.append(f"fallback = {_text(folder.tokenizer.fallback)}")
        lines.append(f"max_tokens = {folder.tokenizer.max_tokens}")
        lines.append(f"lowercase = {_flag(folder.tokenizer.lowercase)}")
    lines += ["", "[files]", *(f"{_text(name)} = {_text(digest)}" for name, digest in folder.files)]
    if provenance:
        lines += ["", "[provenance]", *(f"{_text(name)} = {_text(value)}" for name, value in provenance)]
    return "\n".join(lines) + "\n"


def _tensor(tensor: TensorSpec) -> tuple[str, str, str]:
    shape = ", ".join(_text(one) if isinstance(one, str) else str(one) for one in tensor.shape)
    return f"name = {_text(tensor.name)}", f"dtype = {_text(tensor.dtype)}", f"shape = [{shape}]"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)  # a JSON string is a basic string of TOML


def _flag(value: bool) -> str:
    return "true" if value else "false"
