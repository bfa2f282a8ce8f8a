"""The tree of a signature as JSON, and back."""

from __future__ import annotations

from crashpath.ingest.model import Part
from crashpath.ingest.schema import Json


def tree_json(part: Part) -> Json:
    """Return a signature's tree as JSON."""
    return {"name": part.name, "value": part.value, "parts": [tree_json(p) for p in part.parts]}


def tree_of(stored: Json) -> Part:
    """Return the tree that ``tree_json`` stored."""
    return Part(stored["name"], stored["value"], tuple(tree_of(p) for p in stored["parts"]))
