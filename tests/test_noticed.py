"""What is noticed in a night, from stores whose history is known."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from crashpath.dashboard.holm import rejected
from crashpath.dashboard.noticed import Noticed, Rules, notice
from crashpath.dashboard.rhythm import more, silence
from crashpath.ingest import outbox
from crashpath.ingest.clusters import create_cluster
from crashpath.ingest.lineage import end_in
from crashpath.ingest.nights import finish_night, start_night
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Cluster, CrashDaily, Signature
from crashpath.ingest.tables_evidence import Attempts

AT = datetime(2026, 6, 30, 3, tzinfo=UTC)
TODAY = AT.date()
YESTERDAY = TODAY - timedelta(1)


def ago(days: int) -> date:
    """Return the day so many days before the night's."""
    return TODAY - timedelta(days)


def a_night(session: Session, *, finished: bool = True) -> int:
    """Add a night."""
    night = start_night(session, versions={}, now=AT)
    if finished:
        finish_night(session, night, "complete", counts={}, seconds={}, now=AT)
    return night


def grow(
    session: Session,
    number: int,
    days: Mapping[date, int],
    *,
    night: int | None,
    release: str = "1.0",
    failure_class: str = "oom_host",
    made: datetime = AT,
) -> None:
    """Add a cluster (where it is not there) with crashes on some days, of one signature a cluster."""
    if session.get(Cluster, number) is None:
        create_cluster(
            session, number, label=f"root line {number}", encoder_id="e", failure_class=failure_class, probability=0.9,
            class_by="classifier", night_id=night, now=made,
        )  # fmt: skip
        session.add(
            Signature(
                id=f"s{number}", algorithm="sig1", text="t", tree={}, root_type="E", root_message="m", cue_class=None,
                first_seen=AT, last_seen=AT, night_id=night or 1, cluster_id=number, joined_at=AT, joined_by="birth",
                why=None, is_exemplar=True, map_x=None, map_y=None,
            )
        )  # fmt: skip
        session.flush()
    for day, crashes in days.items():
        session.add(
            CrashDaily(
                day=day, release=release, platform="linux", model="m", path="ort", phase="load",
                signature_id=f"s{number}", crashes=crashes,
            )
        )  # fmt: skip
    session.flush()


def poisson(rate: float, *, first: int = 60, last: int = 2, seed: int = 1) -> dict[date, int]:
    """Return counts of a steady rate on the days from ``first`` to ``last`` days ago."""
    rng = np.random.default_rng(seed)
    return {ago(n): int(count) for n in range(first, last - 1, -1) if (count := rng.poisson(rate))}


def keys(noticed: Noticed) -> set[str]:
    """Return the keys of what is told."""
    return {one.key for one in noticed.things}


def test_what_is_born_is_new_once(any_store: Store) -> None:
    """A cluster born since the last night that was looked at is new; of what was told nothing is said again."""
    with any_store.write() as session:
        old, night = a_night(session), a_night(session)
        grow(session, 1, {YESTERDAY: 1}, night=old)
        grow(session, 2, {YESTERDAY: 1}, night=night)
        assert keys(notice(session, night, Rules(), at=AT, since=old)) == {"new C-0002"}
        assert keys(notice(session, night, Rules(), at=AT, since=None)) == {"new C-0002"}
        assert not notice(session, night, Rules(), at=AT, since=night).things
        assert not notice(session, night, Rules(), at=AT, since=old, told={"new C-0002"}).things


def test_births_of_a_night_that_failed_are_not_lost(store: Store) -> None:
    """A night that was killed behind its clustering left clusters nobody was told of: the next one tells."""
    with store.write() as session:
        a_night(session)
        killed = a_night(session, finished=False)
        grow(session, 1, {YESTERDAY: 1}, night=killed)
        assert keys(notice(session, a_night(session), Rules(), at=AT)) == {"new C-0001"}


def test_parts_of_a_split_are_not_new(store: Store) -> None:
    """A cluster that a re-clustering or a person made out of another has no night, and its past is not told again."""
    with store.write() as session:
        old, night = a_night(session), a_night(session)
        grow(session, 1, poisson(1), night=old)
        silent = poisson(3, last=25)
        grow(session, 2, poisson(1) | {YESTERDAY: 60}, night=None)
        grow(session, 3, silent, night=None)
        grow(session, 4, {ago(80): 1, YESTERDAY: 1}, night=None)
        assert not notice(session, night, Rules(), at=AT, since=old).things
        before = AT - timedelta(90)  # made long ago, they have a life of their own
        session.execute(update(Cluster).where(Cluster.night_id.is_(None)).values(created_at=before))
        found = {key.rsplit(" ", 1)[0] for key in keys(notice(session, night, Rules(), at=AT, since=old))}
        assert found == {"spiking C-0002", "fixed C-0003", "back C-0004"}


def test_what_takes_in_an_older_cluster_is_not_new(any_store: Store) -> None:
    """A birth that a re-clustering put together with an old cluster is that cluster under another id."""
    with any_store.write() as session:
        old, night = a_night(session), a_night(session)
        grow(session, 1, {ago(3): 1}, night=old)
        grow(session, 2, {YESTERDAY: 1}, night=night)
        grow(session, 3, {YESTERDAY: 1}, night=night)
        grow(session, 4, {YESTERDAY: 1}, night=night)
        for gone, into in ((1, 2), (3, 4)):
            end_in(session, gone, into, signatures=1, why={}, night_id=night, now=AT)
        assert keys(notice(session, night, Rules(), at=AT, since=old)) == {"new C-0004"}


def test_what_was_told_of_a_merged_cluster_was_told_of_the_other(any_store: Store) -> None:
    """After a merge nobody hears the same spike again under the id that is left."""
    with any_store.write() as session:
        old = a_night(session)
        grow(session, 1, poisson(2) | {YESTERDAY: 80}, night=old)
        grow(session, 2, poisson(2, seed=2), night=old)
        found = notice(session, old, Rules(), at=AT, since=old)
        assert keys(found) == {f"spiking C-0001 {YESTERDAY}"}
        outbox.keep(session, "p", found.things, silent=found.silent, night=old, now=AT)
        end_in(session, 1, 2, signatures=1, why={}, night_id=old, now=AT)
        session.execute(update(Signature).where(Signature.cluster_id == 1).values(cluster_id=2))
        told = outbox.known(session, "p")
        assert not notice(session, old, Rules(), at=AT, since=old, told=told).things
        assert keys(notice(session, old, Rules(), at=AT, since=old)) == {f"spiking C-0002 {YESTERDAY}"}


@pytest.mark.parametrize(("seen_in", "told"), [("1.1", True), ("1.2", True), ("1.0", False), ("unknown", False)])
def test_resolved_and_seen_again_is_regressed(store: Store, seen_in: str, told: bool) -> None:
    """Crashes in the release that was to resolve it, or in one that came later, are a regression; older ones are not.

    A release that nobody knows of is not later.
    """
    with store.write() as session:
        night = a_night(session)
        grow(session, 1, {ago(50): 1}, night=night, release="1.0")
        grow(session, 1, {YESTERDAY: 1}, night=night, release=f"{seen_in}" if seen_in != "1.0" else "1.0")
        for n, release in ((40, "1.1"), (20, "1.2")):  # tried, without a crash
            session.add(
                Attempts(
                    unit="deployment", day=ago(n), release=release, platform="l", model="m", path="ort", attempts=5,
                    via="file", origin="f", recorded_at=AT, history=[],
                )
            )  # fmt: skip
        session.execute(update(Cluster).values(resolved_in="1.1"))
        found = keys(notice(session, night, Rules(quiet_days=365), at=AT, since=night))
        assert found == ({"regressed C-0001 1.1"} if told else {"fixed C-0001 1.1"})


def test_resolved_in_a_release_to_come_is_not_fixed_yet(store: Store) -> None:
    """As long as nothing is known of the release, a cluster that crashes every day is not told of as fixed in it."""
    with store.write() as session:
        night = a_night(session)
        grow(session, 1, {ago(n): 1 for n in range(1, 9)}, night=night, release="1.0")
        session.execute(update(Cluster).values(resolved_in="1.1"))
        assert notice(session, night, Rules(), at=AT, since=night).things == ()
        grow(session, 2, {YESTERDAY: 1}, night=night, release="1.1")
        assert keys(notice(session, night, Rules(), at=AT, since=night)) == {"fixed C-0001 1.1"}


def test_back_after_a_long_silence(store: Store) -> None:
    """Seen after more than the days of silence: back, once; a shorter silence is none, and old ones are past."""
    with store.write() as session:
        night = a_night(session)
        grow(session, 1, {ago(40): 1, YESTERDAY: 1}, night=night)
        grow(session, 2, {ago(25): 1, YESTERDAY: 1}, night=night)
        grow(session, 3, {ago(110): 1, ago(50): 1, ago(45): 1}, night=night)
        grow(session, 4, {ago(300): 1, TODAY: 1}, night=night)
        found = notice(session, night, Rules(), at=AT, since=night)
        assert keys(found) == {f"back C-0001 {YESTERDAY}", f"back C-0004 {TODAY}"}
        assert any("at least 1" in one.words for one in found.things)
        # A place that asks for the first time is told of the last days alone.
        grow(session, 5, {ago(40): 1, ago(5): 1}, night=night)
        assert f"back C-0005 {ago(5)}" in keys(notice(session, night, Rules(), at=AT, since=night))
        assert keys(notice(session, a_night(session), Rules(), at=AT, since=None)) == keys(found)


def test_a_spike_is_told_of_the_cluster_and_not_again_of_its_class(store: Store) -> None:
    """A day far above those before spikes; its class has no line of its own, unless the rest of it spikes as well."""
    with store.write() as session:
        night = a_night(session)
        grow(session, 1, poisson(4) | {YESTERDAY: 40}, night=night)
        grow(session, 2, poisson(4, seed=2) | {YESTERDAY: 5}, night=night)
        assert keys(notice(session, night, Rules(), at=AT, since=night)) == {f"spiking C-0001 {YESTERDAY}"}
        for number in range(10, 40):  # each too rare to be told, together a spike
            grow(session, number, {ago(number + 5): 1, YESTERDAY: 2}, night=night, failure_class="tokenizer")
        found = keys(notice(session, night, Rules(quiet_days=200), at=AT, since=night))
        assert found == {f"spiking C-0001 {YESTERDAY}", f"spiking tokenizer {YESTERDAY}"}


def test_a_spike_needs_its_minimum_and_a_full_day(store: Store) -> None:
    """Fewer crashes than the minimum are no spike, and today is not over: it is not judged."""
    with store.write() as session:
        night = a_night(session)
        grow(session, 1, poisson(0.3) | {YESTERDAY: 9, TODAY: 500}, night=night)
        assert not notice(session, night, Rules(), at=AT, since=night).things
        found = keys(notice(session, night, Rules(spike_min=9), at=AT, since=night))
        assert found == {f"spiking C-0001 {YESTERDAY}"}


def test_steady_and_silent_is_fixed_but_not_when_nothing_is_heard(store: Store) -> None:
    """Silence counts on days on which others were heard; where all logs are missing nothing is fixed."""
    with store.write() as session:
        night = a_night(session)
        grow(session, 1, poisson(2, last=12), night=night)
        assert not notice(session, night, Rules(), at=AT, since=night).things
        grow(session, 2, {ago(n): 1 for n in range(1, 61)}, night=night, failure_class="tokenizer")
        found = notice(session, night, Rules(), at=AT, since=night)
        assert {one.key.rsplit(" ", 1)[0] for one in found.things} == {"fixed C-0001"}
        # A place that asks for the first time is not told of what is long over.
        first = notice(session, night, Rules(), at=AT, since=None)
        assert "fixed" not in {one.kind for one in first.things}
        assert {one.kind for one in first.silent} == {"fixed"}


def test_muted_clusters_are_left_out_and_counted(store: Store) -> None:
    """A cluster that is muted has no line and counts; when the time is over it has one."""
    with store.write() as session:
        night = a_night(session)
        grow(session, 1, {ago(40): 1, YESTERDAY: 1}, night=night)
        session.execute(update(Cluster).values(muted_until=AT + timedelta(hours=1)))
        found = notice(session, night, Rules(), at=AT, since=night)
        assert (found.things, found.silent, found.muted) == ((), (), 1)
        assert notice(session, night, Rules(), at=AT + timedelta(hours=2), since=night).muted == 0


def test_one_line_a_cluster_and_the_rest_is_remembered(store: Store) -> None:
    """A cluster that is new and spikes has one line; what it was not told of for that is never told later."""
    with store.write() as session:
        old, night = a_night(session), a_night(session)
        grow(session, 1, poisson(1), night=old)
        grow(session, 2, {YESTERDAY: 50}, night=night)
        found = notice(session, night, Rules(), at=AT, since=old)
        assert keys(found) == {"new C-0002"}
        assert {one.key for one in found.silent} >= {f"spiking C-0002 {YESTERDAY}"}


def test_crashes_of_days_to_come_tell_nothing(store: Store) -> None:
    """What is dated after today is neither a spike nor back, and no silence ends with it."""
    with store.write() as session:
        night = a_night(session)
        grow(session, 1, {ago(80): 1, ago(-5): 500}, night=night)
        assert not notice(session, night, Rules(), at=AT, since=night).things


def test_an_empty_store_has_nothing_to_tell(any_store: Store) -> None:
    """Without a crash there is nothing, and no error."""
    with any_store.write() as session:
        night = a_night(session)
        assert notice(session, night, Rules(), at=AT) == Noticed((), (), 0)


@pytest.mark.parametrize("burst", [1, 6, 15])
def test_false_alarms_are_as_rare_as_the_rules_say(burst: int) -> None:
    """Of nights with 40 clusters whose rates do not change, whether crashes come one by one or in bursts, about 1 % at
    most tell a spike."""
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(400):
        mean = rng.uniform(0.2, 6, 40)[:, None]
        counts = rng.poisson(mean, (40, 29)) * (rng.random((40, 29)) < 1 / burst) * burst
        wrong += int(more(counts[:, -1].tolist(), counts[:, :-1].tolist()).min() <= 0.01 / 40)
    assert wrong <= 0.02 * 400


def test_a_spike_is_found() -> None:
    """A tenfold day of one steady cluster among 40 is found nearly always."""
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(100):
        counts = rng.poisson(3, (40, 29))
        counts[0, -1] = rng.poisson(30)
        found += int(more(counts[:, -1].tolist(), counts[:, :-1].tolist())[0] <= 0.01 / 40)
    assert found >= 95


def test_silence_grows_more_telling() -> None:
    """The longer the silence and the steadier the days before, the smaller the p-value; too few days tell nothing."""
    long, short, rare = (float(silence([n], [[k] * 28])[0]) for n, k in ((10, 3), (3, 3), (3, 1)))
    assert long < short < rare <= 1
    assert silence([10, 0], [[9] * 6, [3] * 28]).tolist() == [1.0, 1.0]
    assert more([99], [[1] * 6]).tolist() == more([0], [[3] * 28]).tolist() == [1.0]
    assert rejected(silence([], []), 0.01) == rejected(more([], []), 0.01) == []
