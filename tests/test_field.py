"""Field against proof: what stands against each class that the store has crashes of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crashpath.coverage.drillcells import CELLS, Cell, DrillResult, none_apply
from crashpath.coverage.drillstore import Evidence, store_drills
from crashpath.coverage.field import Names, Standing, field_against_proof, shares
from crashpath.dashboard.testing import a_night
from crashpath.ingest.store import Store

AT = datetime(2026, 11, 30, tzinfo=UTC)


def _result(failure_class: str, value: bool | None) -> DrillResult:
    cells = none_apply("no device") if value is None else tuple(Cell(one.id, value) for one in CELLS)
    return DrillResult("x-y", failure_class, "infer", "process", "breaker", "ort", cells, requests=2)


def _evidence(policy: str = "breaker", model_hash: str = "abc", at: datetime = AT) -> Evidence:
    return Evidence(at, "2.1", "m", model_hash, policy, (("onnxruntime", "1"),))


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


def test_a_passing_drill_contains_and_a_check_prevents(field: Store) -> None:
    """Contained by a passing drill, prevented by a check that names the class, else without proof; shares add up."""
    with field.write() as session:
        store_drills(session, _evidence(), [_result("oom_host", True), _result("oom_host", False)])
    with field.read() as session:
        rows = {row.failure_class: row for row in field_against_proof(session, [Names("imports", "dependency")])}
    assert rows["oom_host"].standing is Standing.CONTAINED
    assert (rows["oom_host"].drills, rows["oom_host"].red, rows["oom_host"].newest) == (1, 1, AT)
    assert rows["dependency"].standing is Standing.PREVENTED
    assert rows["dependency"].checks == ("imports",)
    found = shares(tuple(rows.values()))
    assert sum(found.values()) == pytest.approx(1)
    assert found[Standing.CONTAINED] == pytest.approx(rows["oom_host"].share)
    assert 0.5 <= rows["oom_host"].share < 1


@pytest.mark.parametrize(
    ("evidence", "value"),
    [
        (_evidence(), False),
        (_evidence(), None),
        (_evidence(policy="account"), True),
        (_evidence(policy="off"), True),
        (_evidence(model_hash="other"), True),
        (_evidence(at=AT - timedelta(days=100)), True),
    ],
    ids=["red", "not driven", "account", "off", "another model", "too old"],
)
def test_what_proves_nothing(field: Store, evidence: Evidence, value: bool | None) -> None:
    """A red drill, one that could not be driven, one under a policy not in use, of other artefacts, or too old."""
    with field.write() as session:
        store_drills(session, evidence, [_result("oom_host", value)])
    with field.read() as session:
        rows = field_against_proof(session, [], model_hash="abc", since=AT - timedelta(days=30))
    assert {row.standing for row in rows} == {Standing.UNPROVEN}


def test_an_empty_store_has_no_field(store: Store) -> None:
    """Without crashes there is nothing to prove anything against."""
    with store.read() as session:
        assert field_against_proof(session, []) == ()
