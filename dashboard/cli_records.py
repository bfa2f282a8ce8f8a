"""``crashpath classify`` and ``crashpath group``: records in, one object a record out; no store, no redaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer
from rich.table import Table
from rich.text import Text

from crashpath.clustering.classifier import Verdict
from crashpath.clustering.encoder import Encoder
from crashpath.clustering.features import subject_of
from crashpath.clustering.group import group as group_items
from crashpath.clustering.items import Item, item_of, make_item
from crashpath.clustering.vectors import MemoryCache
from crashpath.dashboard import engines
from crashpath.dashboard.errors import InputError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import JsonOption, complain, console, emit, tell
from crashpath.dashboard.inert import inert
from crashpath.dashboard.inputs import Fields, Given, given_lines, given_logs, looks_like_records
from crashpath.dashboard.settings import Settings, load_settings
from crashpath.ingest.analyse import Analyser
from crashpath.ingest.classes import UNCLASSIFIED, headline_of
from crashpath.ingest.model import Analysis
from crashpath.ingest.rules import load_rules

CHUNK = 256
ROOT = 200
"""Characters of a root line that are shown; --json has all of it."""
NO_TEXT = Verdict(UNCLASSIFIED, headline_of(UNCLASSIFIED), 0.0, ("there was no text to read",))


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of one record."""

    id: Any
    verdict: Verdict
    analysis: Analysis | None

    def document(self) -> dict[str, Any]:
        """The object of the contract."""
        known = self.analysis
        root = None if known is None else known.root
        return {
            "id": self.id,
            "class": self.verdict.failure_class,
            "headline": self.verdict.headline,
            "probability": self.verdict.probability,
            "root": None
            if root is None
            else {"type": root.type, "message": root.message, "line": root.line, "rule": root.rule},
            "signature": None if known is None else known.signature.id,
            "format": "none" if known is None else str(known.parsed.format),
            "evidence": list(self.verdict.evidence),
        }


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for work in (classify, group):
        app.command(work.__name__, help=work.__doc__)(_command(work))


Paths = Annotated[list[str], typer.Argument(metavar="PATH…|-", help="Logs, folders, globs, or - for standard input.")]
Lines = Annotated[bool, typer.Option("--jsonl", help="One line of JSON is one record.")]
TextField = Annotated[str, typer.Option(metavar="F", help="With --jsonl: the key that holds the text.")]
IdField = Annotated[str, typer.Option(metavar="F", help="With --jsonl: the key that holds the id.")]
Zone = Annotated[str | None, typer.Option(help="Zone of stamps that name none. Default: UTC.")]


def _command(work: Callable[[_Reader, bool], None]) -> Callable[..., int]:
    """Return the command that gives its input to ``work``: both commands take the same one."""

    def command(
        paths: Paths,
        jsonl: Lines = False,
        text_field: TextField = "log",
        id_field: IdField = "id",
        tz: Zone = None,
        as_json: JsonOption = False,
    ) -> int:
        reader = _Reader(load_settings(tz=tz), paths, Fields(text_field, id_field), jsonl=jsonl)
        work(reader, as_json)
        return reader.code

    return command


def classify(reader: _Reader, as_json: bool) -> None:
    """Name the failure class of each record, with its root line and the evidence."""
    for batch in _chunks(reader.records()):
        for answer in _judge(batch, reader):
            if as_json:
                emit(answer.document())
            else:
                _say(answer)


def group(reader: _Reader, as_json: bool) -> None:
    """Group the records of this input alone; each also gets its class and the most similar other record."""
    answers = [answer for batch in _chunks(reader.records()) for answer in _judge(batch, reader)]
    keys = _keys(answers)
    items = [_item(key, answer) for key, answer in zip(keys, answers, strict=True)]
    grouping = group_items(items, reader.encoder, cache=reader.cache)
    said = {key: answer.id for key, answer in zip(keys, answers, strict=True)}
    for answer, grouped in zip(answers, grouping.records, strict=True):
        near = grouped.nearest
        if as_json:
            nearest = None if near is None else {"id": said[near.id], "similarity": near.similarity}
            emit(answer.document() | {"cluster": grouped.cluster, "nearest": nearest})
        else:
            words = "none: it is alone" if near is None else f"{said[near.id]}, similarity {near.similarity:.2f}"
            _say(answer, grouped.cluster, words)


class _Reader:
    """The input of one command, and what it is read with."""

    def __init__(self, settings: Settings, paths: list[str], fields: Fields, *, jsonl: bool) -> None:
        self._settings = settings
        self._paths = paths
        self._fields = fields
        self._jsonl = jsonl
        self._rules = load_rules()
        self.analyser = Analyser(self._rules, redacting=False)
        self.cache = MemoryCache()
        self.code = Exit.DONE
        self._told = False

    @property
    def encoder(self) -> Encoder:
        if not self._told:
            self._told = True
            tell("loading the encoder …")
        return engines.encoder(self._settings.encoder)

    def records(self) -> Iterator[Given]:
        """Yield what is given; what cannot be read is said at once, and the rest goes on."""
        tz = ZoneInfo(self._settings.tz)
        if self._jsonl:
            yield from self._lines(tz)
            return
        for path in self._paths:
            if looks_like_records(path, self._fields):
                complain(
                    f"{path} seems to hold one record a line; it is read as a log. With --jsonl a line is a record."
                )
                break
        for one in given_logs(self._paths, self._rules, tz):
            if isinstance(one, InputError):
                complain(str(one))
                self.code = Exit.PARTIAL
            else:
                yield one

    def _lines(self, tz: ZoneInfo) -> Iterator[Given]:
        records = texts = 0
        for path in self._paths:
            for one in given_lines(path, self._fields, tz):
                records += 1
                texts += one.record is not None
                yield one
        if records and not texts:
            complain(f"no line has a text under {self._fields.text!r}; name the key that holds it by --text-field.")


def _judge(batch: Sequence[Given], reader: _Reader) -> list[Answer]:
    known = [(i, reader.analyser.analyse(one.record)) for i, one in enumerate(batch) if one.record is not None]
    subjects = [subject_of(analysis) for _, analysis in known]
    verdicts = engines.classifier().classify(subjects, reader.encoder, reader.cache) if known else ()
    answers = [Answer(one.id, NO_TEXT, None) for one in batch]
    for (i, analysis), verdict in zip(known, verdicts, strict=True):
        answers[i] = replace(answers[i], verdict=verdict, analysis=analysis)
    return answers


def _keys(answers: Sequence[Answer]) -> list[str]:
    """Return a key for each record: its id, so that nothing depends on the order; numbered, for ids may repeat."""
    seen: Counter[str] = Counter()
    keys = []
    for answer in answers:
        name = str(answer.id)
        keys.append(f"{name}\0{seen[name]}")
        seen[name] += 1
    return keys


def _item(key: str, answer: Answer) -> Item:
    return make_item(key, "", "", "", signature=key) if answer.analysis is None else item_of(answer.analysis, id=key)


def _say(answer: Answer, cluster: str = "", nearest: str | None = None) -> None:
    """Print one record for a person: its class with the probability, its root line, and what speaks for the class."""
    root = answer.analysis.root if answer.analysis else None
    line = " ".join((f"{root.type}: {root.message}" if root.type else root.message).split()) if root else "no text"
    head = f"{cluster:<7}" if cluster else ""
    head += f"{answer.verdict.failure_class:<16}{answer.verdict.probability:.2f}  {answer.id}"
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("  root", Text(inert(line if len(line) <= ROOT else line[: ROOT - 1] + "…")))
    for number, reason in enumerate(answer.verdict.evidence):
        table.add_row("" if number else "  because", Text(inert(reason)))
    if nearest is not None:
        table.add_row("  nearest", Text(inert(nearest)))
    out = console()
    out.print(Text(inert(head), style="bold"), overflow="fold")
    out.print(table)


def _chunks(records: Iterator[Given]) -> Iterator[list[Given]]:
    """Work in portions: the memory then depends on them, and a long input shows results early."""
    batch: list[Given] = []
    for record in records:
        batch.append(record)
        if len(batch) == CHUNK:
            yield batch
            batch = []
    if batch:
        yield batch
