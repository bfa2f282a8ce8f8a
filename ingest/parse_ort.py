"""ONNX Runtime: its error log lines and its status text, whichever language printed them.

The type is ``onnxruntime.<Status>`` with the name that the Python binding gives the status, so that the same failure
has one type from Python, C++, C# and a notebook. A log line without status has the type ``onnxruntime``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.model import Frame, Thrown
from crashpath.ingest.piece import Format, Piece, line_at
from crashpath.ingest.python_runs import CUT
from crashpath.ingest.thrown import message_end

#: ``OrtErrorCode`` of onnxruntime_c_api.h, as the Python binding names it.
STATUSES = (
    "",
    "Fail",
    "InvalidArgument",
    "NoSuchFile",
    "NoModel",
    "EngineError",
    "RuntimeException",
    "InvalidProtobuf",
    "ModelLoaded",
    "NotImplemented",
    "InvalidGraph",
    "EPFail",
    "ModelLoadCanceled",
    "ModelRequiresCompilation",
    "NotFound",
)
_LOG = re.compile(
    r"\[[EF]:onnxruntime:[^\],]*, ([\w./\\-]+?)\.(?:cc|cpp|cu|h|cuh|mm)(?::\d+)?(?: ([^\]]*))?\][ \t]*([^\n]*)"
)
_STATUS = re.compile(r"\[ONNXRuntimeError\] : (\d+) : [A-Z_]+ : ([^\n]*)")
_SPOKEN = re.compile(r"onnx runtime error (\d+): ([^\n]*)")
_MANAGED = re.compile(r"\[ErrorCode:(\w+)\] ")


def parse_ort(text: str) -> Sequence[Piece]:
    """Read the error lines; those that a traceback repeats are dropped when the pieces are joined."""
    pieces: list[Piece] = []
    if ":onnxruntime:" in text:
        for match in _LOG.finditer(text):
            frame = Frame((match.group(2) or "").rsplit("::", 1)[-1], f"onnxruntime.{match.group(1)}", False)
            pieces.append(_piece(text, match, "onnxruntime", match.group(3), (frame,)))
    if "[ONNXRuntimeError]" in text:
        for match in _STATUS.finditer(text):
            message = text[match.start() : match.end()].split(" Traceback (most recent call last)", 1)[0]
            pieces.append(_piece(text, match, _status(int(match.group(1))), message, ()))
    if "onnx runtime error" in text:
        pieces += [
            _piece(text, match, _status(int(match.group(1))), match.group(2), ()) for match in _SPOKEN.finditer(text)
        ]
    return pieces


def canonical(thrown: Thrown) -> Thrown:
    """Return the exception with ONNX Runtime's status as its type, where its message states one."""
    message = thrown.message
    if thrown.type == CUT:  # what the line of a cut traceback's header said
        message = message[max(0, message.find("[ONNXRuntimeError]")) :]
    match = _STATUS.match(message) or _MANAGED.match(message)
    if match is None:
        return thrown
    name = match.group(1)
    kind = _status(int(name)) if name.isdigit() else f"onnxruntime.{name}"
    return Thrown(kind, message, thrown.line, thrown.frames)


def _piece(text: str, match: re.Match[str], kind: str, first: str, frames: tuple[Frame, ...]) -> Piece:
    end = message_end(text, match.end(), len(text))
    rest = text[match.end() : end]
    message = first.strip() if "[E:onnxruntime" in rest or "[W:onnxruntime" in rest else (first + rest).strip()
    thrown = Thrown(kind, message, line_at(text, match.start()), frames)
    return Piece(Format.ORT, match.start(), match.end(), (canonical(thrown),))


def _status(code: int) -> str:
    return f"onnxruntime.{STATUSES[code]}" if 0 < code < len(STATUSES) else "onnxruntime"
