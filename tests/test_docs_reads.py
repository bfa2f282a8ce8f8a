"""The page about input is run as it stands: files are written, commands run, tables held against a store."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import select

from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.sides import Side, make_side
from crashpath.dashboard.testing import a_night
from crashpath.ingest.attempts import load_attempts
from crashpath.ingest.event_attempts import attempt_counts
from crashpath.ingest.failed_attempts import failed_attempts
from crashpath.ingest.failed_read import failed_cells
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.jsonlog import Inside, open_json
from crashpath.ingest.lease import utc_now
from crashpath.ingest.model import Facts
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.store_errors import BadAttempts
from crashpath.ingest.tables import Crash, Source

PAGE = Path(__file__).parent.parent / "docs" / "what-it-reads.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^`([\w./-]+)`[^\n]*\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATIENCE = 240.0
DAY = date(2026, 1, 31)
PATTERNS = ("logs/{release}/{platform}/*",)

pytestmark = pytest.mark.timeout(600)


def table(head: str) -> list[list[str]]:
    """Cells of the rows of the page's table that begins with this head."""
    lines = TEXT.partition(f"\n{head}")[2].splitlines()[2:]
    rows = lines[: next(number for number, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def names(cell: str) -> list[str]:
    """What stands in a cell as code."""
    return re.findall(r"`([^`]+)`", cell)


def commands() -> list[list[str]]:
    """Every command of the page, in its order."""
    lines = [line for text in BLOCK.findall(TEXT) for line in text.splitlines()]
    return [line.split() for line in lines if line.startswith("crashpath ")]


class Ran(NamedTuple):
    """The folder in which the page was followed, and what each of its commands printed."""

    place: Path
    printed: list[str]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Write every file of the page, then run its script and its commands, each in a process of its own."""
    place = tmp_path_factory.mktemp("reads")
    for name, text in FILE.findall(TEXT):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    done = [process(place, sys.executable, "convert.py")]
    done += [process(place, *words) for words in commands()]
    return Ran(place, done[1:])


def process(place: Path, *words: str) -> str:
    """Run one command there as a person does who set nothing; what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CRASHPATH_")}
    clean |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{clean['PATH']}", "XDG_CONFIG_HOME": str(place)}
    done = subprocess.run(words, cwd=place, env=clean, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def told(ran: Ran) -> Iterator[Store]:
    """The store that the page's commands made."""
    with open_store(f"sqlite:///{ran.place}/crashpath.db", create=False) as store:
        yield store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with open_store(f"sqlite:///{tmp_path}/other.db") as one:
        yield one


def side(store: Store, unit: str) -> Side:
    """The page's release in one unit, as a review sees it."""
    with store.read() as session:
        cells = failed_cells(session, releases=["2026.10"])
        return make_side("2026.10", unit, cells, attempt_counts(session, releases=["2026.10"]))


def cohorts(one: Side) -> list[tuple[str, str, int, int]]:
    """Platform, model, attempts and failures of its cohorts."""
    return [(c.cohort.platform, c.cohort.model, c.tally.attempts, c.tally.primary) for c in one.cohorts]


def crashes(store: Store, *columns: str) -> list[tuple[str, ...]]:
    """These columns of every crash with its file's name in front, in order."""
    with store.read() as session:
        query = select(Source.path, *(getattr(Crash, name) for name in columns)).join(Source)
        return sorted((Path(row[0]).name, *(str(value or "") for value in row[1:])) for row in session.execute(query))


def test_the_night_reads_what_the_table_says(told: Store) -> None:
    """Each log gives one crash, with the facts of its row; what has no time has that of its file."""
    rows = table("| log | release |")
    expected = sorted((Path(names(row[0])[0]).name, *row[1:]) for row in rows)
    assert crashes(told, "release", "platform", "model", "path", "phase", "attempt_id") == expected
    assert [row[1] for row in crashes(told, "at_inferred")] == ["", "True", ""]  # batch.log is the second


def test_attempts_are_loaded_corrected_and_listed_as_the_page_prints_them(ran: Ran) -> None:
    """New rows, the same from Parquet, one changed by JSONL; the list is the page's block to the letter."""
    assert [line.partition(": ")[2].strip() for line in ran.printed[1:4]] == [
        "2 rows, 2 new, 0 changed", "2 rows, 0 new, 0 changed", "1 row, 0 new, 1 changed",
    ]  # fmt: skip
    (listed,) = (text for text in BLOCK.findall(TEXT) if text.startswith("unit    release"))
    assert [line.rstrip() for line in ran.printed[4].splitlines()] == listed.splitlines()


def test_the_flag_for_a_path_is_read_as_a_sidecar_is(ran: Ran) -> None:
    """In a process of its own: --path onnxruntime is stored as ort, --phase LOAD as load."""
    (ran.place / "other.log").write_text("KeyError: 'x'\n")
    flags = ("--path", "onnxruntime", "--phase", "LOAD", "--db", f"sqlite:///{ran.place}/flags.db")
    process(ran.place, "crashpath", "nightly", "other.log", *flags)
    with open_store(f"sqlite:///{ran.place}/flags.db", create=False) as one:
        assert crashes(one, "path", "phase") == [("other.log", "ort", "load")]


def test_cohorts_come_out_as_the_page_says(told: Store) -> None:
    """The failure without a model is in the one cohort that fits; the load is in its own."""
    assert cohorts(side(told, "request")) == [("linux", "ranker", 12480, 1)]
    assert cohorts(side(told, "load")) == [("gpu", "ranker", 400, 3)]


def test_a_failure_that_fits_two_cohorts_is_in_none(ran: Ran, store: Store, tmp_path: Path) -> None:
    """With attempts of a second model nobody knows which it was."""
    more = tmp_path / "second.csv"
    more.write_text("unit,day,release,platform,model,attempts\nrequest,2026-01-31,2026.10,linux,tagger,7\n")
    a_night(store, [ran.place / "logs"], NightOptions(feed=FeedOptions(patterns=PATTERNS)))
    for file in (ran.place / "attempts.csv", more):
        load_attempts(store, str(file), now=utc_now())
    found = side(store, "request")
    assert (cohorts(found), found.vague) == ([("linux", "ranker", 12000, 0), ("linux", "tagger", 7, 0)], 1)


def read(fields: dict[str, str]) -> Inside:
    """What a line of JSON with these fields says."""
    inside = open_json(json.dumps(fields))
    assert inside is not None
    return inside


FACTS = {"release": "release", "platform": "platform", "model": "model", "path": "path", "phase": "phase",
         "attempt id": "attempt_id", "host": "host"}  # fmt: skip


@pytest.mark.parametrize("row", table("| fact | fields"), ids=lambda row: row[0])
def test_each_field_is_read_and_the_first_decides(row: list[str]) -> None:
    """Each name of the table gives its fact, also as a nested field; of two, the one that stands first."""
    fact, cell, _ = row
    first, second = {"path": ("ort", "torchscript"), "phase": ("load", "infer")}.get(fact, ("one", "two"))

    def said(fields: dict[str, str]) -> str | None:
        inside = read(fields if fact in ("message", "its error", "its trace") else {"message": "m"} | fields)
        return {"time": inside.stamp, "level": inside.level}.get(
            fact, getattr(inside.facts, FACTS[fact]) if fact in FACTS else inside.text
        )

    fields = [name for name in names(cell) if name not in ("ort", "torchscript")]
    assert fields
    for name in fields:
        assert said({name: first}) == first, name
        outer, dot, inner = name.partition(".")
        assert not dot or said({outer: {inner: first}}) == first, name  # type: ignore[dict-item]
    for better, worse in pairwise(fields):
        assert said({worse: second, better: first}) == first, (better, worse)


def test_plain_text_is_read_as_the_table_says(store: Store, tmp_path: Path) -> None:
    """The words of the third column give their fact, with either sign; syslog gives the host."""
    words = [(FACTS[row[0]], word[:-1]) for row in table("| fact | fields") for word in names(row[2])]
    values = {"phase": "load", "platform": "gpu", "release": "2026.10", "model": "ranker", "attempt_id": "a-9"}
    assert {fact for fact, _ in words} == values.keys()
    for name, sign in (("a.log", "="), ("b.log", ": ")):
        line = " ".join(f"{word}{sign}{values[fact]}" for fact, word in words)
        text = f"Jan 31 09:30:00 node-7 app[12]: ERROR failed {line}\n"
        (tmp_path / name).write_text(text + "Jan 31 09:30:00 node-7 app[12]: KeyError: 'x'\n")
    a_night(store, [tmp_path / "a.log", tmp_path / "b.log"])
    expected = tuple(values[fact] for fact in values)
    assert [row[1:] for row in crashes(store, *values)] == [expected, expected]
    assert all(row[1] for row in crashes(store, "host_key"))


def test_the_record_goes_over_its_path_the_sidecar_and_the_flags(store: Store, tmp_path: Path) -> None:
    """Each of the four is asked only where those before it say nothing; the sidecar is found by both of its names."""
    inside, outside = tmp_path / "logs" / "by-path" / "linux", tmp_path / "else"
    for folder in (inside, outside):
        folder.mkdir(parents=True)
    for file, text in (
        (inside / "a.log", "KeyError: 'x' release=by-record"),
        (inside / "b.log", "KeyError: 'x'"),
        (outside / "c.log", "KeyError: 'x'"),
        (outside / "d.log", "KeyError: 'x'"),
    ):
        file.write_text(text + "\n")
        if file.name != "d.log":
            beside = f"{file}.meta.json" if file.name != "c.log" else str(file.with_suffix(".meta.json"))
            Path(beside).write_text('{"release": "by-sidecar", "host": "n", "attempt_id": "s"}')
    options = NightOptions(feed=FeedOptions(facts=Facts(release="by-flag"), patterns=PATTERNS))
    a_night(store, [tmp_path / "logs", outside], options)
    found = crashes(store, "release", "attempt_id")
    assert [row[1] for row in found] == ["by-record", "by-path", "by-sidecar", "by-flag"]
    assert [row[2] for row in found] == ["s", "s", "s", ""]
    assert [bool(row[1]) for row in crashes(store, "host_key")] == [True, True, True, False]


@pytest.mark.parametrize("capitals", [False, True])
def test_capitals_of_a_phase_and_the_other_name_of_a_path_are_the_same(
    store: Store, tmp_path: Path, capitals: bool
) -> None:
    """As the page says of text, sidecars and flags: a failure in LOAD counts on loads, and onnxruntime is ort."""
    (tmp_path / "a.log").write_text(f"KeyError: 'x' phase={'LOAD' if capitals else 'load'}\n")
    (tmp_path / "b.log").write_text("KeyError: 'x'\n")
    beside = {"phase": "Load" if capitals else "load", "path": "OnnxRuntime" if capitals else "onnxruntime"}
    (tmp_path / "b.log.meta.json").write_text(json.dumps(beside))
    a_night(store, [tmp_path / "a.log", tmp_path / "b.log"])
    assert crashes(store, "phase", "path") == [("a.log", "load", "unknown"), ("b.log", "load", "ort")]
    with store.read() as session:
        assert {one.unit for one in failed_attempts(session)} == {"deployment", "load"}


STACK = "Traceback (most recent call last):\n  File \"/srv/a.py\", line 4, in load_model\n    open()\nKeyError: 'x'\n"


@pytest.mark.parametrize(("flag", "phase"), [(None, "load"), ("infer", "infer")])
def test_the_stack_comes_last(store: Store, tmp_path: Path, flag: str | None, phase: str) -> None:
    """What its functions show is the phase only where no flag says another one."""
    (tmp_path / "a.log").write_text(STACK)
    a_night(store, [tmp_path / "a.log"], NightOptions(feed=FeedOptions(facts=Facts(phase=flag))))
    assert crashes(store, "phase") == [("a.log", phase)]


def test_phases_count_on_the_units_of_the_table(store: Store, tmp_path: Path) -> None:
    """Every phase that a record can say is in the table, and its failure counts on just those units."""
    expected = {names(row[0])[0]: set(row[2].replace("none", "unknown").split(", ")) for row in table("| phase | what")}
    for phase in expected:
        line = {"time": f"{DAY}T09:30:00Z", "level": "ERROR", "message": "KeyError: 'x'", "phase": phase}
        (tmp_path / f"{phase}.log").write_text(json.dumps(line | {"release": phase}) + "\n")
    a_night(store, sorted(tmp_path.glob("*.log")))
    found: dict[str, set[str]] = {}
    with store.read() as session:
        for one in failed_attempts(session):
            found.setdefault(one.release, set()).add(one.unit)
    assert found == expected


def test_what_has_no_unit_counts_where_only_one_is_told(store: Store, tmp_path: Path) -> None:
    """A failed fetch is one of the requests while attempts of nothing else are told, and stands apart then."""
    line = {"time": f"{DAY}T09:30:00Z", "level": "ERROR", "message": "KeyError: 'x'", "phase": "prepare"}
    (tmp_path / "a.log").write_text(json.dumps(line | {"release": "2026.10"}) + "\n")
    a_night(store, [tmp_path / "a.log"])
    rows = tmp_path / "rows.csv"
    rows.write_text("unit,day,release,attempts\nrequest,2026-01-31,2026.10,50\n")
    load_attempts(store, str(rows), now=utc_now())
    assert (side(store, "request").tally.primary, side(store, "request").phaseless) == (1, 0)
    rows.write_text("unit,day,release,attempts\nload,2026-01-31,2026.10,5\n")
    load_attempts(store, str(rows), now=utc_now())
    assert (side(store, "request").tally.primary, side(store, "request").phaseless) == (0, 1)
    assert side(store, "request").tally.attempts == 50  # a row that the newer file has not stays


def test_the_columns_of_attempts_are_the_table(store: Store, tmp_path: Path) -> None:
    """A file with all columns of the table is taken; one without a required column, or with another, is not."""
    columns = [(name, row[1]) for row in table("| column | |") for name in names(row[0])]
    row = {name: "3" for name, _ in columns} | {"unit": "load", "day": str(DAY), "path": "ort"}
    file = tmp_path / "a.csv"
    for needed in (None, *(name for name, kind in columns if kind == "required")):
        kept = {name: value for name, value in row.items() if name != needed}
        file.write_text(f"{','.join(kept)}\n{','.join(kept.values())}\n")
        if needed is None:
            assert load_attempts(store, str(file), now=utc_now()).new == 1
        else:
            with pytest.raises(BadAttempts, match=f"no column {needed}"):
                load_attempts(store, str(file), now=utc_now())
    file.write_text(f"{','.join(row)},relase\n{','.join(row.values())},3\n")
    with pytest.raises(BadAttempts, match=re.escape("there is no column relase; did you mean release?")):
        load_attempts(store, str(file), now=utc_now())
    with store.read() as session:
        (count,) = attempt_counts(session)
    optional = [name for name, kind in columns if kind == "optional" and name != "path"]
    assert {str(getattr(count, name)) for name in optional} == {"3"}
