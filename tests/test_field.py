"""Field against proof: what stands against each class that the store has crashes of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.coverage.drillcells import CELLS, Cell, DrillResult, none_apply
from crashpath.coverage.drillstore import Evidence, add_to_run, begin_run
from crashpath.coverage.field import Names, Standing, field_against_proof, last_drills, shares
from crashpath.dashboard.testing import a_night
from crashpath.ingest.store import Store
from crashpath.ingest.tables_evidence import CoverageRun, Drill

AT = datetime(2026, 11, 30, tzinfo=UTC)


def _result(
    failure_class: str, value: bool | None, *, phase: str = "load", path: str = "ort", fault: str = "x-y"
) -> DrillResult:
    cells = none_apply("no device") if value is None else tuple(Cell(one.id, value) for one in CELLS)
    return DrillResult(fault, failure_class, phase, "process", "breaker", path, cells, requests=2)


def _evidence(policy: str = "breaker", model_hash: str = "abc", at: datetime = AT) -> Evidence:
    return Evidence(at, "2.1", "m", model_hash, policy, (("onnxruntime", "1"),))


def store_drills(session: Session, evidence: Evidence, results: Sequence[DrillResult]) -> None:
    add_to_run(session, begin_run(session, evidence), evidence, results, (), {})


def _standing(store: Store, failure_class: str = "oom_host") -> Standing:
    with store.read() as session:
        rows = field_against_proof(session, [], model_hash="abc", since=AT - timedelta(days=30))
    return next(row.standing for row in rows if row.failure_class == failure_class)


@pytest.fixture
def field(store: Store, tmp_path: Path) -> Store:
    """A store with crashes of three classes."""
    logs = tmp_path / "logs"
    logs.mkdir()
    trace = 'Traceback (most recent call last):\n  File "/srv/app/m.py", line 3, in load\n    go()\n'
    for number, error in enumerate(
        ("MemoryError", "MemoryError", "ModuleNotFoundError: No module named 'tokenizers'", "RuntimeError: odd thing")
    ):
        (logs / f"{number}.log").write_text(f"{trace}{error}\n")
    a_night(store, [logs])
    return store


def test_a_passing_drill_contains_and_a_check_exists(field: Store) -> None:
    """Contained by a passing drill of class and phase; where a check looks for the class, that is all that is said of
    it; else without proof. Shares add up.
    """
    with field.write() as session:
        store_drills(session, _evidence(), [_result("oom_host", True)])
    with field.read() as session:
        rows = {row.failure_class: row for row in field_against_proof(session, [Names("imports", "dependency")])}
    (part,) = rows["oom_host"].parts
    assert rows["oom_host"].standing is part.standing is Standing.CONTAINED
    assert (part.phase, part.drills, part.red, part.newest) == ("load", 1, 0, AT)
    assert rows["dependency"].standing is Standing.CHECKED == "a check exists"
    assert rows["dependency"].checks == ("imports",)
    found = shares(tuple(rows.values()))
    assert sum(found.values()) == pytest.approx(1)
    assert found[Standing.CONTAINED] == pytest.approx(rows["oom_host"].share)
    assert 0.5 <= rows["oom_host"].share < 1


@pytest.mark.parametrize(
    ("evidence", "result"),
    [
        (_evidence(), _result("oom_host", False)),
        (_evidence(), _result("oom_host", None)),
        (_evidence(), _result("oom_host", True, path="torchscript")),
        (_evidence(), _result("oom_host", True, phase="infer")),
        (_evidence(policy="account"), _result("oom_host", True)),
        (_evidence(policy="off"), _result("oom_host", True)),
        (_evidence(model_hash="other"), _result("oom_host", True)),
        (_evidence(at=AT - timedelta(days=100)), _result("oom_host", True)),
    ],
    ids=["red", "not driven", "of the fallback", "another phase", "account", "off", "another model", "too old"],
)
def test_what_proves_nothing(field: Store, evidence: Evidence, result: DrillResult) -> None:
    """A red drill, one that could not be driven, one of the fallback or in a phase in which the field's crashes are
    not, one under a policy not in use, of other artefacts, or too old.
    """
    with field.write() as session:
        store_drills(session, evidence, [result])
    assert _standing(field) is Standing.UNPROVEN


def test_the_last_drill_counts(field: Store) -> None:
    """A red drill after a passing one takes the proof away, a passing one of the same fault gives it back, and a
    passing one of another fault does not.
    """

    def driven(value: bool, days: int, fault: str = "x-y") -> Standing:
        with field.write() as session:
            store_drills(session, _evidence(at=AT + timedelta(days=days)), [_result("oom_host", value, fault=fault)])
        return _standing(field)

    assert driven(True, 0) is Standing.CONTAINED
    assert driven(False, 1) is Standing.UNPROVEN
    assert driven(True, 2, "another") is Standing.UNPROVEN
    assert driven(True, 3) is Standing.CONTAINED


def test_a_class_is_contained_where_all_its_phases_are(field: Store, tmp_path: Path) -> None:
    """A class that happens in two phases has a standing in each, and the weaker one as a whole."""
    logs = tmp_path / "more"
    logs.mkdir()
    (logs / "9.log").write_text(
        'Traceback (most recent call last):\n  File "/srv/app/m.py", line 9, in predict\n    go()\nMemoryError\n'
    )
    a_night(field, [logs])
    with field.write() as session:
        store_drills(session, _evidence(), [_result("oom_host", True)])
    with field.read() as session:
        row = next(row for row in field_against_proof(session, []) if row.failure_class == "oom_host")
    assert {part.phase: part.standing for part in row.parts} == {
        "load": Standing.CONTAINED,
        "infer": Standing.UNPROVEN,
    }
    assert row.standing is Standing.UNPROVEN


def test_a_drill_keeps_its_path_and_limits(field: Store) -> None:
    """The row says which path was struck, its run under which providers and limits."""
    evidence = replace(_evidence(), providers=("CPUExecutionProvider",), limits=(("deadline_ms", 2000.0),))
    with field.write() as session:
        store_drills(session, evidence, [_result("load_corrupt", True, path="torchscript")])
    with field.read() as session:
        assert session.scalars(select(Drill.path)).all() == ["torchscript"]
        detail = session.scalars(select(CoverageRun)).one().detail
    assert (detail["providers"], detail["limits"]) == (["CPUExecutionProvider"], {"deadline_ms": 2000.0})


def test_an_empty_store_has_no_field(store: Store) -> None:
    """Without crashes there is nothing to prove anything against."""
    with store.read() as session:
        assert field_against_proof(session, []) == ()


def test_drills_of_a_release_and_of_a_time(field: Store) -> None:
    """Where a release is asked for, drills of others are none, and neither are those after the time that is asked."""

    def standing(**asked: Any) -> Standing:
        with field.read() as session:
            rows = field_against_proof(session, [], model_hash="abc", **asked)
        return next(row.standing for row in rows if row.failure_class == "oom_host")

    with field.write() as session:
        store_drills(session, _evidence(), [_result("oom_host", True)])
    assert standing() is standing(release="2.1", until=AT) is Standing.CONTAINED
    assert standing(release="2.0") is standing(until=AT - timedelta(seconds=1)) is Standing.UNPROVEN
    with field.write() as session:
        store_drills(session, _evidence(at=AT + timedelta(days=1)), [_result("oom_host", False)])
    assert (standing(), standing(until=AT)) == (Standing.UNPROVEN, Standing.CONTAINED)


def test_a_last_drill_says_where_it_ran(field: Store) -> None:
    """Of isolation and policy, too: without them it cannot be repeated."""
    with field.write() as session:
        store_drills(session, _evidence("sticky"), [_result("oom_host", False)])
    with field.read() as session:
        (last,) = last_drills(session)
    assert (last.isolation, last.policy, last.passed) == ("process", "sticky", False)
