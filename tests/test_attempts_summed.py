"""Sums of attempts in the database: the same as over the rows that ``attempt_counts`` returns one by one."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crashpath.ingest.attempts_summed import By, summed_attempts
from crashpath.ingest.event_attempts import attempt_counts
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.store import Store
from crashpath.ingest.tables_evidence import Attempts

NOW = datetime(2026, 2, 10, tzinfo=UTC)
FIRST = NOW.date() - timedelta(9)
COUNTS = ("attempts", "failures", "unanswered", "rerouted")


def fill(store: Store, seed: int, rows: int = 500) -> None:
    """Write rows of both origins, many of which meet, and many of which do not tell all their parts."""
    rng = random.Random(seed)
    keys = {
        (via, rng.choice(("load", "request")), FIRST + timedelta(rng.randrange(8)),
         *(rng.choice(("unknown", "a", "b", "c")) for _ in range(4)))
        for via in rng.choices(("file", "events"), weights=(1, 6), k=rows)
    }  # fmt: skip
    names = ("via", "unit", "day", "release", "platform", "model", "path")
    with store.write() as session:
        for key in sorted(keys, key=str):
            told = {name: rng.choice((None, rng.randrange(50))) for name in COUNTS[1:]}
            more = {"attempts": rng.randrange(100), "origin": "x", "recorded_at": NOW, "history": [], **told}
            session.add(Attempts(**dict(zip(names, key, strict=True)), **more, users=3, devices=None))


@pytest.mark.parametrize(
    ("by", "releases", "days"),
    [
        (("unit", "day", "release", "platform"), None, (None, None)),
        (("unit", "day", "release"), ("a", "b"), (None, None)),
        (("unit", "release", "platform", "model"), ("a", UNKNOWN), (None, 5)),
        (("platform", "unit"), ("c",), (2, 6)),
        (("release",), None, (3, None)),
    ],
)
def test_sums_are_those_of_the_rows_that_count(
    any_store: Store, by: tuple[By, ...], releases: tuple[str, ...] | None, days: tuple[int | None, int | None]
) -> None:
    """On both databases; counts that no row tells stay untold, and the last day is that of the rows that count."""
    fill(any_store, seed=11)
    since, until = (None if one is None else FIRST + timedelta(one) for one in days)
    expected: dict[tuple[Any, ...], list[Any]] = defaultdict(lambda: [FIRST, None, None, None, None])
    with any_store.read() as session:
        for row in attempt_counts(session, releases=releases):
            if (since is None or row.day >= since) and (until is None or row.day <= until):
                sums = expected[*(getattr(row, name) for name in by), row.unanswered is None]
                sums[0] = max(sums[0], row.day)
                for place, name in enumerate(COUNTS, 1):
                    if (number := getattr(row, name)) is not None:
                        sums[place] = (sums[place] or 0) + number
        found = summed_attempts(session, by, releases=releases, since=since, until=until)
    keys = [*(tuple(getattr(one, name) for name in by) for one in found)]
    assert keys == sorted(keys)
    assert all(getattr(one, name) == UNKNOWN for one in found for name in {"model", "path"} - set(by))
    assert {
        (*key, one.unanswered is None): [one.day if "day" not in by else expected[*key, one.unanswered is None][0],
                                         *(getattr(one, name) for name in COUNTS)]
        for key, one in zip(keys, found, strict=True)
    } == dict(expected)  # fmt: skip
    assert {one.users for one in found} == {None}  # they would count people twice


def test_a_store_without_attempts_has_no_sum(store: Store) -> None:
    """Nothing is told, so nothing is summed."""
    with store.read() as session:
        assert summed_attempts(session, ("unit", "day")) == ()
