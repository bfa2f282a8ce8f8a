"""The labelled logs that the classifier is trained on, read as every other log is read: unpacked and decoded."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from crashpath.ingest.lines import decode
from crashpath.ingest.read import open_source
from crashpath.ingest.unpack import SourceError


class CorpusError(Exception):
    """The corpus cannot be read; the message says which file and what to do."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """One log of the corpus with its truth."""

    file: str
    text: str
    failure_class: str
    fault: str
    library: str
    origin: str


def read_corpus(data: Path) -> tuple[Labelled, ...]:
    """Read ``labels.csv`` in ``data`` and the logs that it names. Raises ``CorpusError``."""
    table = data / "labels.csv"
    try:
        with table.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return tuple(
            Labelled(
                file=row["file"],
                text=read_text(data / row["file"]),
                failure_class=row["class"],
                fault=row["fault"],
                library=row["library"],
                origin=row["origin"],
            )
            for row in sorted(rows, key=lambda row: row["file"])
        )
    except (OSError, SourceError) as problem:
        raise CorpusError(f"{table} or a log that it names cannot be read ({problem}); run: make corpus") from problem
    except KeyError as missing:
        raise CorpusError(f"{table} has no column {missing}; run: make corpus") from missing


def read_text(path: Path) -> str:
    """Return the text of one log, unpacked. Raises ``SourceError``."""
    with open_source(str(path)) as source:
        return "\n".join(decode(line.data) or "" for line in source.lines())
