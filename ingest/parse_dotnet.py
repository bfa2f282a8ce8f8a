""".NET exceptions: ``--->`` introduces the inner exception, whose frames are printed first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.model import Frame, Thrown
from crashpath.ingest.piece import Format, Piece, line_at

_TYPE = r"(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*(?:Exception|Error)\w*"
_HEAD = re.compile(
    rf"(?:Unhandled [Ee]xception[.:] |^[ \t]*|---> (?:\(Inner Exception #\d+\) )?)"
    rf"({_TYPE})(?: \(0x[0-9A-Fa-f]+\))?: ?([^\n]*)",
    re.M,
)
_AT = re.compile(r"^[ \t]+at ([\w.<>`+|\[\],$]+)\([^\n]*\)(?: in ([^\n]*?):line \d+)?[ \t]*$", re.M)
_END_INNER = "--- End of inner exception stack trace ---"
_FRAMEWORK = re.compile(r"^(?:System|Microsoft|Interop|Internal)\.")


def parse_dotnet(text: str) -> Sequence[Piece]:
    """Read one chain of exceptions, the innermost first."""
    if (
        "   at " not in text
        or ".java:" in text
        or ("nhandled " not in text and ".cs:line" not in text and _END_INNER not in text)
    ):
        return ()
    heads = list(_HEAD.finditer(text))
    if not heads:
        return ()
    first = text.find("   at ", heads[0].start())
    chained = [head for head in heads if head is heads[0] or "--->" in head.group() or head.start() < first]
    sections = text[heads[0].start() :].split(_END_INNER)
    frames = [_frames(section) for section in sections]
    thrown: list[Thrown] = []
    for index, head in enumerate(reversed(chained)):
        message = head.group(2).split(" ---> ", 1)[0].strip()
        own = frames[index] if index < len(frames) else ()
        thrown.append(Thrown(head.group(1), message, line_at(text, head.start(1)), own))
    last = list(_AT.finditer(text))
    return (Piece(Format.DOTNET, heads[0].start(), last[-1].end() if last else heads[-1].end(), tuple(thrown)),)


def _frames(section: str) -> tuple[Frame, ...]:
    found: list[Frame] = []
    for match in _AT.finditer(section):
        owner, _, method = re.sub(r"`\d+(?:\[[^\]]*\])?", "", match.group(1)).replace("..", ".").rpartition(".")
        found.append(Frame(method, owner, _FRAMEWORK.match(owner) is None))
    return tuple(reversed(found))
