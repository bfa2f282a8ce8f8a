"""Java and other JVM traces: ``Caused by`` is the cause of what was printed before it, ``Suppressed`` is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from crashpath.ingest.frames import java_frame
from crashpath.ingest.model import Frame, Thrown
from crashpath.ingest.piece import Format, Piece, line_at
from crashpath.ingest.thrown import MAX_CHARACTERS

_BLOCK = re.compile(
    r"(?:^[ \t]*at [\w.$@/<>%-]+(?:\.<?\w[^\s(]*)?\((?:[^()\n]*\.(?:java|kt|scala|groovy|clj)(?::\d+)?"
    r"|Native Method|Unknown Source|<generated>|NO_SOURCE_FILE:\d+|SourceFile:\d+|Unknown)\)[^\n]*\n"
    r"|^[ \t]*\.\.\. \d+ (?:more|common frames omitted)[^\n]*\n)+",
    re.M,
)
_AT = re.compile(r"at ([^\s(]+)\(")
_TYPE = r"(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*"
_HEAD = re.compile(
    rf"^([ \t]*)(Caused by: |Wrapped by: |Suppressed: |Exception in thread \"[^\"\n]*\" |[^\n]*?(?<![\w.$]))"
    rf"({_TYPE}(?:Exception|Error|Throwable|Failure|Interrupt)\w*|(?<=: ){_TYPE}|(?<=\" ){_TYPE})"
    r"(?:: ([^\n]*)|(?=[ \t]*$))",
    re.M,
)
_REACHES = (2 * MAX_CHARACTERS, 16 * MAX_CHARACTERS)  # characters above the frames; a message is seldom that long
_SIMPLE = re.compile(rf"^([ \t]*)()({_TYPE}|[A-Z]\w*(?:Exception|Error))(?:: ([^\n]*)|(?=[ \t]*$))", re.M)


@dataclass(slots=True)
class _Link:
    kind: str
    depth: int
    start: int
    thrown: Thrown
    end: int


def parse_java(text: str) -> Sequence[Piece]:
    """Read each trace, ``Caused by`` chains included; one piece a chain, its first cause first."""
    if "at " not in text or ("(" not in text):
        return ()
    if not text.endswith("\n"):
        text += "\n"
    links: list[_Link] = []
    position = 0
    for block in _BLOCK.finditer(text):
        links += _heads(text, position, block)
        position = block.end()
    return _pieces(links)


def _heads(text: str, start: int, block: re.Match[str]) -> list[_Link]:
    """Read the exceptions above a block of frames: any ``Caused by`` without frames, then the one that owns them."""
    stop = block.start()
    heads: list[re.Match[str]] = []
    for reach in _REACHES:
        heads = heads or list(_HEAD.finditer(text, max(start, stop - reach), stop))
    start = max(start, stop - _REACHES[0])
    linked = [head for head in heads if head.group(2).endswith("by: ") or head.group(2) == "Suppressed: "]
    chosen = linked or heads[-1:] or list(_SIMPLE.finditer(text, start, stop))[-1:]
    if linked and heads[0] is not linked[0]:
        chosen = [heads[0], *linked]
    if not chosen:
        return []  # a thread dump, or the tail of a trace whose head is lost
    frames = _frames(block.group())
    links = [_link(text, head, following.start(), ()) for head, following in pairwise(chosen)]
    links.append(_link(text, chosen[-1], stop, frames))
    links[-1].end = block.end()
    return links


def _link(text: str, head: re.Match[str], stop: int, frames: tuple[Frame, ...]) -> _Link:
    rest = text[head.end() : min(stop, head.end() + MAX_CHARACTERS)].rstrip()
    message = ((head.group(4) or "") + rest).strip()
    thrown = Thrown(head.group(3), message, line_at(text, head.start(3)), frames)
    return _Link(head.group(2).strip(), len(head.group(1)), head.start(), thrown, stop)


def _frames(block: str) -> tuple[Frame, ...]:
    frames = [java_frame(name) for name in _AT.findall(block)]
    frames.reverse()
    return tuple(frames)


def _pieces(links: list[_Link]) -> list[Piece]:
    chains: list[list[_Link]] = []
    suppressed_depth: int | None = None
    for link in links:
        if link.kind == "Suppressed:":
            suppressed_depth = link.depth if suppressed_depth is None else min(suppressed_depth, link.depth)
            continue
        if suppressed_depth is not None and link.depth >= suppressed_depth and link.kind.endswith("by:"):
            continue  # the cause of something suppressed
        suppressed_depth = None
        if not link.kind.endswith("by:") or not chains:
            chains.append([])
        if link.kind == "Wrapped by:":
            chains[-1].append(link)
        else:
            chains[-1].insert(0, link)
    return [
        Piece(
            Format.JAVA,
            min(link.start for link in chain),
            max(link.end for link in chain),
            tuple(link.thrown for link in chain),
        )
        for chain in chains
    ]
