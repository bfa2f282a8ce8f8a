"""What clustering sees of a failure: one ``Item`` a signature (or a record, in ``group``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crashpath.ingest.model import Analysis, Frame

MAX_FRAMES = 6

_GENERIC_KINDS = frozenset(
    re.findall(
        r"\w+",
        """
        exception error runtimeerror valueerror oserror ioerror systemerror assertionerror fail runtimeexception
        invalidargument argumenterror illegalargumentexception illegalstateexception onnxruntimeexception epfail
        throwable fatal log plain nativeerror baseexception exceptiongroup traceback onnxruntime assertion
        """,
    )
)
"""Exception kinds that say nothing of the cause: two failures may differ in them and be the same."""


@dataclass(frozen=True, slots=True)
class Item:
    """A failure as clustering compares it.

    ``text`` is what is embedded. ``kind`` is the last part of the root's exception type in lower case, empty where
    it says nothing of the cause. ``frames`` are the innermost frames of the project, innermost first, else of any
    module. ``cue`` is the class that the root rule knows, ``None`` where it knows none.
    """

    id: str
    text: str
    kind: str = ""
    cue: str | None = None
    frames: tuple[str, ...] = ()
    signature: str = ""


def item_of(analysis: Analysis, *, id: str | None = None) -> Item:
    """Return the item of one analysed record; ``id`` defaults to its signature's."""
    signature = analysis.signature
    return Item(
        id=signature.id if id is None else id,
        text=signature.text,
        kind=kind_of(analysis.root.type),
        cue=analysis.root.failure_class,
        frames=_frames(analysis.variant.frames),
        signature=signature.id,
    )


def kind_of(exception: str) -> str:
    """Return the telling part of an exception type: ``torch.OutOfMemoryError`` → ``outofmemoryerror``; else empty."""
    last = re.split(r"[.:$/]", exception.strip())[-1].lower()
    return "" if last in _GENERIC_KINDS else last


def _frames(frames: tuple[Frame, ...]) -> tuple[str, ...]:
    own = [frame for frame in frames if frame.in_project] or list(frames)
    return tuple(f"{frame.module}:{frame.function}" for frame in reversed(own[-MAX_FRAMES:]))
