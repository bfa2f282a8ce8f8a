"""Python tracebacks: chains, causes inside messages, TorchScript's interpreter.

Python prints the first cause first, so a chain is in the order of the text, but for tracebacks that stand inside
the message of another exception (workers, data loaders, Ray, TorchScript): these are its causes and go before it.
Where a traceback was cut before its exception, ``Thrown.type`` is ``Traceback``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashpath.ingest.model import Thrown
from crashpath.ingest.piece import Format, Piece, line_at
from crashpath.ingest.python_runs import CUT, LAST, Run, find_runs
from crashpath.ingest.thrown import Line, bare_exception

_CONNECTOR = re.compile(r"The above exception was the direct cause|During handling of the above exception")
_NESTED = re.compile(
    r'^[ \t]*"""[ \t]*$|Original Traceback|-- Process \d+ terminated|Traceback of TorchScript|Original exception was'
    r"|\bray::|\w: Traceback \(most recent call last\)",
    re.M,
)
_CLOSING = re.compile(r'^[ \t]*"""[ \t]*$', re.M)
_CARRIER = "RemoteTraceback"  # a type that only carries the text of another exception over from another process


def parse_python(text: str) -> Sequence[Piece]:
    """Read every Python traceback of a text; one piece a chain."""
    if LAST not in text and 'File "' not in text:
        return ()
    if not text.endswith("\n"):
        text += "\n"
    pieces: list[Piece] = []
    chain = _Chain(text)
    for run in find_runs(text):
        if run.torchscript and run.raised is None:
            continue  # the serialised code; the original code, with the exception, follows
        if not chain.takes(run):
            pieces.append(chain.close())
            chain = _Chain(text)
        chain.add(run)
    if chain.runs:
        pieces.append(chain.close(last=True))
    return pieces


class _Chain:
    """One chain while it is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.runs: list[Run] = []
        self.order: list[Thrown] = []
        self.held: list[Thrown] = []  # exceptions whose message holds the causes that are being read

    def takes(self, run: Run) -> bool:
        """Whether a run belongs to this chain: it is the first, is linked to it, or stands in its message."""
        return not self.runs or self._linked(run) or self._nested(run)

    def add(self, run: Run) -> None:
        if not self.runs:
            self._bare_before(run)
        elif self._linked(run):
            if _CLOSING.search(self.text, self.runs[-1].after, run.start):
                self._release()
        elif self.order:
            self.held.append(self.order.pop())
        self.runs.append(run)
        self.order.append(_thrown(self.text, run))

    def close(self, *, last: bool = False) -> Piece:
        first, final = self.runs[0], self.runs[-1]
        end = final.after
        self._release()
        if last and (line := self._bare_after(end)) is not None:
            self.order.append(Thrown(line.type, line.message, line_at(self.text, line.start)))
            end = line.end
        kind = Format.TORCHSCRIPT if any(run.torchscript for run in self.runs) else Format.PYTHON
        carried = tuple(thrown for thrown in self.order if not thrown.type.endswith(_CARRIER))
        start = min(first.start, first.raised.start) if first.raised is not None else first.start
        return Piece(kind, start, end, carried or tuple(self.order))

    def _linked(self, run: Run) -> bool:
        return _CONNECTOR.search(self.text, self.runs[-1].end, run.start) is not None

    def _nested(self, run: Run) -> bool:
        last = self.runs[-1]
        start = last.raised.start if last.raised is not None else last.end
        return last.raised is not None and _NESTED.search(self.text, start, run.body) is not None

    def _release(self) -> None:
        self.order.extend(reversed(self.held))
        self.held.clear()

    def _bare_before(self, run: Run) -> None:
        """Keep an exception that stands without a traceback before the sentence that links it to this run."""
        connector = _CONNECTOR.search(self.text, max(0, run.start - 400), run.start)
        if connector is None:
            return
        line = bare_exception(self.text, max(0, connector.start() - 4000), connector.start())
        if line is not None:
            self.order.append(Thrown(line.type, line.message, line_at(self.text, line.start)))

    def _bare_after(self, end: int) -> Line | None:
        """Find an exception without a traceback behind a sentence that links it to this chain."""
        connector = _CONNECTOR.search(self.text, end, min(len(self.text), end + 400))
        return None if connector is None else bare_exception(self.text, connector.end(), len(self.text))


def _thrown(text: str, run: Run) -> Thrown:
    if run.raised is None:
        return Thrown(CUT, "", line_at(text, run.start), tuple(run.frames))
    return Thrown(run.raised.type, run.raised.message, line_at(text, run.raised.start), tuple(run.frames))
