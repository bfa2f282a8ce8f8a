"""The runtime's event lines in a source, told from its log lines; both are read in one pass.

An event line is a record of its own and never joins the failure that the lines around it tell of. Event files hold
nothing else, so in a file that is JSON lines by its name and begins with events, whatever is no event is malformed;
anywhere else (a container's output, standard input) it is a log line, and goes to the splitter. Only a line that says
that it is an event and cannot be read as one is malformed there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from crashpath.ingest.event_text import event_text
from crashpath.ingest.model import Mark, Record
from crashpath.ingest.named import Told
from crashpath.ingest.nottext import Undecodable
from crashpath.ingest.rotation import stem_of
from crashpath.ingest.runtime_events import NAME, AttemptsEvent, BadEventError, Event, FailureEvent, read_event
from crashpath.ingest.split import Item, Splitter
from crashpath.ingest.whole import SplitOptions

if TYPE_CHECKING:
    from crashpath.ingest.read import RawLine

EVENT_FILES = (".jsonl", ".ndjson")
_NAME = NAME.encode()
_BEGINS = re.compile(rb'\s*\{\s*"schema"\s*:\s*"crashpath\.event/')
_ANY_BEGINS = re.compile(rb'(?:^|\n)\{\s*"schema"\s*:\s*"crashpath\.event/')
_WRAPPED = ("log", "message", "msg", "MESSAGE", "textPayload")  # where loggers put a line that they were given
_PREVIEW_BYTES = 200
_DEEPEST = 3


class EventSplitter:
    """A splitter that also knows the runtime's events. Feed it the lines in order, then close it.

    ``events`` counts the event lines, whatever their kind.
    """

    def __init__(
        self, source: str, options: SplitOptions, start_offset: int = 0, *, head: bytes = b"", name: str | None = None
    ) -> None:
        """``head`` is how the source begins; ``name`` is its file's, if that is not ``source``."""
        self.events = 0
        self._source = source
        self._options = options
        self._splitter = Splitter(source, options, start_offset)
        self._only = only_events(name or source, head)

    @property
    def lines(self) -> int:
        """Lines fed so far."""
        return self._splitter.lines

    @property
    def cohorts(self) -> Set[Told]:
        """Cohorts that log lines named so far; those of events are in what ``feed`` returned."""
        return self._splitter.named.cohorts

    def feed(self, raw: RawLine) -> Sequence[Item | AttemptsEvent]:
        """Take the next line and return what it completed."""
        if _NAME not in raw.data and not self._only:
            return self._splitter.feed(raw)
        try:
            event = event_in(raw.data)
        except BadEventError as error:
            return (*self._splitter.skip(raw), _malformed(raw, str(error)))
        if event is None:
            if not self._only:
                return self._splitter.feed(raw)
            done = self._splitter.skip(raw)
            return (*done, _malformed(raw, "no event in an event file")) if raw.data.strip() else done
        self.events += 1
        return (*self._splitter.skip(raw), *self._item(event, raw))

    def close(self) -> Sequence[Item]:
        """Return the records that are still open, and the last checkpoint."""
        return self._splitter.close()

    def _item(self, event: Event, raw: RawLine) -> tuple[Record | AttemptsEvent, ...]:
        match event:
            case FailureEvent():
                return (_record(event, raw, self._source, self._options),)
            case AttemptsEvent():
                return (event,)
        return ()


def split_all(lines: Iterable[RawLine], source: str, options: SplitOptions, head: bytes) -> Iterator[Item]:
    """Yield the records, undecodable stretches and checkpoints of a source to its end; counts are left out."""
    splitter = EventSplitter(source, options, head=head)
    for raw in lines:
        yield from (item for item in splitter.feed(raw) if not isinstance(item, AttemptsEvent))
    yield from splitter.close()


def only_events(name: str, head: bytes) -> bool:
    """Whether a source is an event file, by its name (without what rotation adds) and how it begins."""
    return stem_of(name).endswith(EVENT_FILES) and _ANY_BEGINS.search(head) is not None


def event_in(data: bytes) -> Event | None:
    """Return the event that a line holds, also behind a prefix or wrapped by a logger.

    Returns ``None`` for a line that is no event. Raises ``BadEventError`` for one that says it is, and cannot be read.
    """
    text = data.decode("utf-8", "replace")
    start = text.find("{")
    if start < 0:
        return None
    try:
        document = _innermost(json.loads(text[start:]))
    except (ValueError, RecursionError):
        if _BEGINS.match(data):
            raise BadEventError("an event that is cut short or is no JSON") from None
        return None
    return None if document is None else read_event(document)


def _innermost(document: object) -> Mapping[str, object] | None:
    for _ in range(_DEEPEST):
        if not isinstance(document, dict):
            return None
        if str(document.get("schema", "")).startswith(NAME):
            return document
        inside = next((v for k in _WRAPPED if isinstance(v := document.get(k), str) and NAME in v), None)
        if inside is None or "{" not in inside:
            return None
        document = json.loads(inside[inside.index("{") :])
    return None


def _record(event: FailureEvent, raw: RawLine, source: str, options: SplitOptions) -> Record:
    text = event_text(event)
    mark = Mark("ERROR", event.process, event.at)
    return Record(
        source=source,
        offset=raw.offset,
        end=raw.end,
        text=text,
        marks=(mark,) * (text.count("\n") + 1),
        facts=event.facts.over(options.facts),
        at=event.at,
    )


def _malformed(raw: RawLine, reason: str) -> Undecodable:
    return Undecodable(raw.offset, raw.end, reason, hashlib.sha256(raw.data).hexdigest(), raw.data[:_PREVIEW_BYTES])
