"""What clustering sees of a failure: one ``Item`` a signature (or a record, in ``group``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashpath.clustering.terms import Terms, terms_of
from crashpath.ingest.guards import past_guards
from crashpath.ingest.model import Analysis, Frame
from crashpath.ingest.parse_sanitizer import SIGNALS
from crashpath.ingest.signature import masked_message

if TYPE_CHECKING:
    from crashpath.ingest.clusters import SignatureFacts

_GENERIC_KINDS = frozenset(
    re.findall(
        r"\w+",
        """
        exception error runtimeerror valueerror oserror ioerror systemerror assertionerror fail runtimeexception
        invalidargument argumenterror illegalargumentexception illegalstateexception onnxruntimeexception epfail
        keyboardinterrupt systemexit throwable fatal log plain nativeerror baseexception exceptiongroup traceback
        onnxruntime assertion
        """,
    )
)
"""Exception kinds that say nothing of the cause: two failures may differ in them and be the same."""

_FATAL_SIGNALS = frozenset({"sigsegv", "sigabrt", "sigbus", "sigill", "sigfpe", "sigtrap", "sigsys"})
_SANITIZER = re.compile(r"\w*sanitizer|libfuzzer")
_OF_ONNXRUNTIME = frozenset({"invalidargument"})
"""Kinds that say something where ONNX Runtime's status has them beside others: ``NoSuchFile``, ``InvalidProtobuf`` …"""


@dataclass(frozen=True, slots=True)
class Item:
    """A failure as clustering compares it.

    ``text`` is what is embedded, ``terms`` are the words and codes of the root message. ``kind`` is the last part of
    the root's exception type in lower case, empty where it says nothing of the cause. ``frames`` are the project's
    own, innermost first, past those that only check or throw for their caller. ``cue`` is the class that the root rule
    knows, ``None`` where it knows none. ``native`` says that a signal or a sanitizer's report is all there is: the
    words tell how the process ended, the same for any bug of that kind, and only the frames (those of libraries too)
    tell where.
    """

    id: str
    text: str
    terms: Terms
    kind: str = ""
    cue: str | None = None
    frames: tuple[str, ...] = ()
    signature: str = ""
    native: bool = False


def item_of(analysis: Analysis, *, id: str | None = None) -> Item:
    """Return the item of one analysed record; ``id`` defaults to its signature's."""
    signature, variant = analysis.signature, analysis.variant
    return make_item(
        signature.id if id is None else id,
        signature.text,
        variant.root_type,
        variant.root_message,
        cue=analysis.root.failure_class,
        frames=variant.frames,
        signature=signature.id,
    )


def item_of_signature(facts: SignatureFacts) -> Item:
    """Return the item of a signature as the store has it."""
    return make_item(
        facts.id,
        facts.text,
        facts.root_type,
        facts.root_message,
        cue=facts.cue_class,
        frames=facts.frames,
        signature=facts.id,
    )


def make_item(
    id: str,
    text: str,
    root_type: str,
    root_message: str,
    *,
    cue: str | None = None,
    frames: Sequence[Frame] = (),
    signature: str = "",
) -> Item:
    """Return an item from the parts of a variant; ``frames`` are innermost first."""
    native = cue in (None, "native_crash") and is_native(root_type, root_message)
    kept = frames if native else [one for one in frames if one.in_project]
    return Item(
        id=id,
        text=text,
        terms=terms_of(masked_message(root_message), raw=root_message),
        kind=kind_of(root_type, root_message),
        cue=cue,
        frames=tuple(f"{frame.module}:{frame.function}" for frame in past_guards(kept)),
        signature=signature,
        native=native,
    )


def is_native(root_type: str, message: str = "") -> bool:
    """Whether a root only names how native code ended: a signal, a sanitizer, a backtrace, a panic of Go's runtime."""
    name = root_type.strip().lower()
    if name == "panic":
        return message.startswith("runtime error: ")
    return name in _FATAL_SIGNALS or name in {"backtrace", "segfault"} or _SANITIZER.fullmatch(name) is not None


def kind_of(exception: str, message: str = "") -> str:
    """Return the telling part of an exception type: ``torch.OutOfMemoryError`` → ``outofmemoryerror``; else empty.

    A sanitizer is no kind of failure, but a signal that it caught is the one that would have come without it.
    """
    *package, last = re.split(r"[.:$/]", exception.strip().lower())
    if _SANITIZER.fullmatch(last):
        return SIGNALS.get(message.split(" ", 1)[0], "").lower()
    if last in _OF_ONNXRUNTIME and package[:1] == ["onnxruntime"]:
        return last
    return "" if last in _GENERIC_KINDS else last
