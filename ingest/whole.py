"""A whole text as one record, and what cutting a text needs to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

from crashpath.ingest.assemble import Kept, make_record
from crashpath.ingest.clock import parse_stamp
from crashpath.ingest.jsonlog import open_json
from crashpath.ingest.lines import NO_FACTS, peel, visible
from crashpath.ingest.model import Facts, Record


def _no_failure(_line: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """What the splitter must be told.

    ``tz`` is the zone of stamps without one; ``mtime`` (aware) bounds stamps without year, or ``as_of`` where the
    source has none; ``facts`` are those of the source; ``is_failure`` knows the sentences that open a record.
    """

    tz: tzinfo = UTC
    as_of: datetime | None = None
    mtime: datetime | None = None
    facts: Facts = NO_FACTS
    is_failure: Callable[[str], bool] = _no_failure

    @property
    def latest(self) -> datetime:
        """The time that a stamp without year may not be after (by more than a day)."""
        return self.mtime or self.as_of or datetime.now(UTC)


def one_record(text: str, *, source: str, offset: int = 0, options: SplitOptions) -> Record:
    """Return the whole text as one record; nothing is dropped, the lines of each writer stand together."""
    whole = text.strip()
    inside = open_json(whole) if whole[:1] in ("{", "[") and "\n" in whole else None
    if inside is not None:
        text = inside.text
        options = replace(options, facts=inside.facts.over(options.facts))
    kept: dict[str | None, list[Kept]] = {}
    writer: str | None = None
    for piece in text.replace("\r\n", "\n").split("\n"):
        line = peel(visible(piece) if "\r" in piece else piece)
        writer = writer if line.bare else line.writer
        at = parse_stamp(line.stamp, tz=options.tz, latest=options.latest) if line.stamp else None
        kept.setdefault(writer, []).append(Kept(offset, offset, line, at))
    lines = [item for group in kept.values() for item in group]
    record = make_record(lines, source, options.facts, 0, False)
    return replace(record, end=offset + len(text.encode("utf-8", "surrogatepass")))
