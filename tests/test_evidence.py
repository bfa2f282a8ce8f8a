"""What a review knows of a release: real nights over small logs, and attempts that were told, counted by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from sqlalchemy import select, update

from crashpath.dashboard.evidence import Evidence, gather
from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.dashboard.review_model import Cohort
from crashpath.dashboard.sides import Tally
from crashpath.dashboard.testing import light_clusterer
from crashpath.dashboard.unheard import Unheard
from crashpath.ingest.attempts import load_attempts
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.nights import start_night
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Cluster, Signature

FIRST = date(2026, 2, 1)
NEXT, THIRD, LATER = (FIRST + timedelta(days=n) for n in (1, 2, 5))
AT = datetime(2026, 2, 3, 12, tzinfo=UTC)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"
TOKENS = "ValueError: tokenizer.json: vocabulary has 30522 entries, model expects 30500"
MISSING = "ModuleNotFoundError: No module named 'onnxruntime'"
KEYS = "KeyError: 'session_options'"
FACTS = FeedOptions(patterns=("{release}/{platform}/*.log",))


class Fleet:
    """Logs and attempts of some releases, and the nights that read them."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder
        self._made = 0

    def fail(
        self,
        count: int,
        what: str = OOM,
        *,
        release: str = "2.0",
        platform: str = "linux",
        day: date = FIRST,
        phase: str | None = "load",
    ) -> None:
        """Let so many attempts fail, each under an id of its own; without a release the log tells none."""
        self._made += 1
        place = self.folder / "logs" / (f"{release}/{platform}" if release else "somewhere")
        place.mkdir(parents=True, exist_ok=True)
        facts = {"timestamp": f"{day}T10:00:00Z", "level": "error", "msg": what}
        if phase is not None:
            facts["phase"] = phase
        lines = [facts | {"attempt_id": f"a{self._made}-{number}"} for number in range(count)]
        quiet = facts | {"level": "info", "msg": "ready"}
        text = "".join(f"{json.dumps(line)}\n" for line in (quiet, *lines))
        (place / f"{self._made}.{'log' if release else 'txt'}").write_text(text)

    def event(self, *failures: tuple[str, bool], release: str = "2.0", day: date = FIRST) -> None:
        """Let the runtime tell of failures: the unit of each, and whether it was answered."""
        self._made += 1
        lines = [
            {
                "schema": "crashpath.event/1", "at": f"{day}T10:00:00Z", "event": "failure", "unit": unit,
                "attempt_id": f"e{self._made}-{number}", "phase": "infer" if unit == "request" else "load",
                "path": "ort", "class": "native_crash", "type": "NativeCrash", "message": "died of SIGSEGV",
                "route": "x", "answered": answered, "release": release, "platform": "linux", "host": "n", "pid": 1,
            }
            for number, (unit, answered) in enumerate(failures)
        ]  # fmt: skip
        place = self.folder / "logs"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{self._made}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    def night(self, at: datetime = AT, only: str = "logs") -> None:
        """Read all logs, or those of one folder, at some time."""
        options = NightOptions(feed=FACTS)
        run_night(self.store, [str(self.folder / only)], options, light_clusterer(), clock=lambda: at)

    def tell(self, *rows: tuple[str, date, str, str, int]) -> None:
        """Tell of attempts: unit, day, release, platform, how many."""
        self._made += 1
        file = self.folder / f"attempts{self._made}.csv"
        text = "".join(f"{','.join(map(str, row))}\n" for row in rows)
        file.write_text("unit,day,release,platform,attempts\n" + text)
        load_attempts(self.store, str(file), now=AT)

    def known(self, release: str = "2.0", baseline: str | None = None) -> Evidence:
        """What is known at noon of the third day."""
        with self.store.read() as session:
            return gather(session, release, baseline, at=AT)


def numbers(store: Store) -> dict[str, int]:
    """Cluster by failure class; these tests have one of each."""
    with store.read() as session:
        found = session.execute(select(Cluster.failure_class, Cluster.id)).all()
    assert len(dict(found)) == len(found)  # type: ignore[arg-type]  # pairs
    return dict(found)  # type: ignore[arg-type]  # pairs


def groups(known: Evidence, unit: str = "deployment") -> dict[tuple[int | None, str], tuple[int, int]]:
    """Failures by cluster and class, and those of the last day."""
    side = known.release.side(unit)
    assert side is not None
    return {(one.cluster, one.failure_class): (one.failures, one.last) for one in side.groups}


def test_a_release_and_its_baseline_by_hand(any_store: Store, tmp_path: Path) -> None:
    """Failures of each release are set against its own attempts, by day, cohort and cluster."""
    fleet = Fleet(any_store, tmp_path)
    fleet.fail(3)
    fleet.fail(2, TOKENS)
    fleet.fail(1, platform="android")
    fleet.fail(4, day=NEXT)
    fleet.fail(7, release="1.0")
    fleet.fail(9, release="0.9")
    fleet.night()
    fleet.tell(
        ("deployment", FIRST, "2.0", "linux", 100), ("deployment", FIRST, "2.0", "android", 50),
        ("deployment", NEXT, "2.0", "linux", 200), ("deployment", FIRST, "1.0", "linux", 900),
    )  # fmt: skip
    known = fleet.known(baseline="1.0")
    (side,) = known.release.sides
    assert known.release.side("deployment") is side
    assert known.release.side("request") is None
    assert side.tally == Tally(350, 350, 10, 10)
    assert side.days == {FIRST: Tally(150, 150, 6, 6), NEXT: Tally(200, 200, 4, 4)}
    cohorts = {str(one.cohort): (one.tally.attempts, one.tally.primary) for one in side.cohorts}
    assert cohorts == {"linux / unknown": (300, 9), "android / unknown": (50, 1)}
    of = numbers(any_store)
    assert groups(known) == {(of["oom_device"], "oom_device"): (8, 4), (of["tokenizer"], "tokenizer"): (2, 0)}
    assert known.baseline is not None
    assert [one.tally for one in known.baseline.sides] == [Tally(900, 900, 7, 7)]
    assert (known.release.first_day, known.release.last_day) == (FIRST, NEXT)
    assert (known.release.untold, known.release.unheard, known.release.ahead, known.nameless) == ({}, (), (0, 0), {})
    assert known.releases == ("0.9", "1.0", "2.0")
    assert known.at == AT
    alone = fleet.known()
    assert alone.baseline is None
    assert alone.release == known.release


def test_days_to_come_are_in_no_side(any_store: Store, tmp_path: Path) -> None:
    """What is dated after today is counted apart, a load of which no event tells once."""
    fleet = Fleet(any_store, tmp_path)
    fleet.fail(3)
    fleet.fail(6, day=LATER)
    fleet.event(("request", False), ("load", True), day=LATER)
    fleet.event(("deployment", True), day=LATER + timedelta(days=1))
    fleet.night()
    fleet.tell(
        ("deployment", FIRST, "2.0", "linux", 100), ("deployment", LATER, "2.0", "linux", 70),
        ("request", LATER, "2.0", "linux", 5),
    )  # fmt: skip
    known = fleet.known().release
    assert [(one.unit, one.tally) for one in known.sides] == [("deployment", Tally(100, 100, 3, 3))]
    assert known.ahead == (75, 9)
    assert known.unheard == ()
    assert (known.first_day, known.last_day) == (FIRST, FIRST)


def test_today_is_no_day_to_come(store: Store, tmp_path: Path) -> None:
    """A day counts from its first moment in UTC."""
    fleet = Fleet(store, tmp_path)
    fleet.fail(2, day=THIRD)
    fleet.night()
    fleet.tell(("deployment", THIRD, "2.0", "linux", 10))
    assert fleet.known().release.sides[0].tally == Tally(10, 10, 2, 2)
    with store.read() as session:
        early = gather(session, "2.0", None, at=datetime(2026, 2, 2, 23, 59, tzinfo=UTC)).release
        late = gather(session, "2.0", None, at=datetime(2026, 2, 3, tzinfo=UTC)).release
    assert (early.sides, early.ahead, late.ahead) == ((), (10, 2), (0, 0))


def untold(store: Store, folder: Path, *units: str) -> dict[str, int]:
    """Failures without attempts where attempts of these units are told: 4 loads of a log, 3 more that events alone
    call loads, 2 deployments, 5 requests and one failure of no phase.
    """
    fleet = Fleet(store, folder)
    fleet.fail(4)
    fleet.fail(5, KEYS, phase="infer")
    fleet.fail(1, TOKENS, phase=None)
    fleet.event(*[("load", False)] * 3)
    fleet.event(*[("deployment", False)] * 2, day=NEXT)
    fleet.night()
    fleet.tell(*((unit, FIRST, "2.0", "linux", 100) for unit in units))
    return dict(fleet.known().release.untold)


def test_failures_of_units_without_attempts_are_untold(store: Store, tmp_path: Path) -> None:
    """Without any attempts all are, a load of a log once; one without a phase has no unit of its own."""
    assert untold(store, tmp_path) == {"load": 7, "deployment": 2, "request": 5, "unknown": 1}


def test_a_load_of_a_log_is_not_untold_where_deployments_are(store: Store, tmp_path: Path) -> None:
    """It counts on those; what events call loads does not."""
    assert untold(store, tmp_path, "deployment") == {"load": 3, "request": 5}


def test_a_load_is_not_untold_where_loads_are(store: Store, tmp_path: Path) -> None:
    """Deployments that events tell of are; the failure of no phase stands apart, in the side of each unit."""
    assert untold(store, tmp_path, "load", "request") == {"deployment": 2}


def test_nothing_is_untold_where_all_units_are(store: Store, tmp_path: Path) -> None:
    """Every failure is in a side, or stands apart there."""
    assert untold(store, tmp_path, "load", "request", "deployment") == {}


def test_cohorts_that_nobody_heard(any_store: Store, tmp_path: Path) -> None:
    """A cohort without any source was never heard; one whose source is gone was heard until its last look."""
    fleet = Fleet(any_store, tmp_path)
    fleet.fail(0)
    fleet.fail(0, platform="android")
    fleet.night(datetime(2026, 2, 1, 23, tzinfo=UTC))
    (tmp_path / "logs" / "2.0" / "android" / "2.log").unlink()
    fleet.night(datetime(2026, 2, 2, 23, tzinfo=UTC))
    rows: Iterable[tuple[str, date, str, str, int]] = (
        ("deployment", day, "2.0", platform, attempts)
        for day, attempts in ((FIRST, 100), (NEXT, 20), (THIRD, 3))
        for platform in ("linux", "android", "mac")
    )
    fleet.tell(*rows, ("request", FIRST, "2.0", "mac", 7), ("load", FIRST, "2.0", "bsd", 0))
    mac = Cohort("mac", "unknown")
    assert set(fleet.known().release.unheard) == {
        Unheard(mac, "deployment", 123, None),
        Unheard(mac, "request", 7, None),
        Unheard(Cohort("android", "unknown"), "deployment", 23, FIRST),
        Unheard(Cohort("linux", "unknown"), "deployment", 3, NEXT),
    }


def test_a_source_that_tells_no_platform_may_be_any(store: Store, tmp_path: Path) -> None:
    """Attempts of all platforms of a release are heard by a log that names the release alone, and by no other's."""
    fleet = Fleet(store, tmp_path)
    fleet.event(("request", True), release="2.0")
    fleet.fail(0, release="1.0", platform="android")
    fleet.night()
    fleet.tell(("request", FIRST, "2.0", "linux", 9), ("request", FIRST, "2.0", "android", 8))
    assert fleet.known().release.unheard == (Unheard(Cohort("android", "unknown"), "request", 8, None),)
    sidecar = tmp_path / "logs" / "quiet.txt"
    sidecar.write_text("")
    sidecar.with_name("quiet.txt.meta.json").write_text('{"release": "2.0"}')
    fleet.night()
    assert fleet.known().release.unheard == ()


def test_failures_of_no_release_on_days_of_this_one(any_store: Store, tmp_path: Path) -> None:
    """Any of them may be of it where it was tried on that day, in that unit or in none."""
    fleet = Fleet(any_store, tmp_path)
    fleet.fail(3, release="")
    fleet.fail(5, KEYS, release="", phase="infer")
    fleet.fail(1, TOKENS, release="", phase=None)
    fleet.fail(20, release="", day=NEXT)
    fleet.fail(2, day=NEXT)
    fleet.night()
    fleet.tell(("deployment", FIRST, "2.0", "linux", 100), ("load", FIRST, "2.0", "linux", 100))
    assert fleet.known().nameless == {"deployment": 4, "load": 4}
    assert fleet.known("1.0").nameless == {}


def test_what_names_no_release_can_be_reviewed_itself(store: Store, tmp_path: Path) -> None:
    """Its failures are its own then, and not nameless ones besides."""
    fleet = Fleet(store, tmp_path)
    fleet.fail(3, release="")
    fleet.night()
    fleet.tell(("deployment", FIRST, "unknown", "linux", 100))
    known = fleet.known("unknown")
    assert known.release.sides[0].tally == Tally(100, 100, 3, 3)
    assert known.nameless == {}


def test_clusters_and_where_they_were_first_seen(any_store: Store, tmp_path: Path) -> None:
    """Known of those that the baseline does not have. Of one day this release comes last: nobody knows it was first."""
    fleet = Fleet(any_store, tmp_path)
    fleet.fail(1, TOKENS, release="1.0")
    fleet.fail(1, TOKENS)
    fleet.fail(1, KEYS, release="0.9", day=FIRST - timedelta(days=1))
    fleet.fail(1, KEYS, day=NEXT)
    fleet.fail(1, day=NEXT)
    fleet.fail(1, release="3.0", day=THIRD)
    fleet.fail(1, MISSING, release="3.0", day=NEXT)
    fleet.fail(1, MISSING, day=NEXT)
    fleet.night()
    fleet.tell(
        ("deployment", FIRST, "2.0", "linux", 100), ("deployment", NEXT, "2.0", "linux", 100),
        ("deployment", FIRST, "1.0", "linux", 100),
    )  # fmt: skip
    with any_store.write() as session:
        named = select(Signature.cluster_id).where(Signature.text.like("%vocabulary%"))
        session.execute(
            update(Cluster).where(Cluster.id.in_(named)).values(name="a name\nof " + "x" * 300, resolved_in="1.0")
        )
    known = fleet.known(baseline="1.0")
    firsts = sorted(str(one.first_release) for one in known.clusters.values())
    assert firsts == ["0.9", "2.0", "3.0", "None"]
    (tokens,) = [one for one in known.clusters.values() if one.resolved_in]
    assert (tokens.resolved_in, tokens.first_release) == ("1.0", None)
    assert tokens.id == f"C-{tokens.number:04d}"
    assert tokens.title.startswith("a name of xxx")
    assert len(tokens.title) == 120
    assert {one.first_release for one in fleet.known().clusters.values()} == {"0.9", "1.0", "2.0", "3.0"}


def test_the_first_release_of_all_has_nothing_new(store: Store, tmp_path: Path) -> None:
    """Where no other release failed before this one, everything was first seen in it, and that is not told."""
    fleet = Fleet(store, tmp_path)
    fleet.fail(1, KEYS)
    fleet.fail(1, release="1.0")
    fleet.fail(1, release="", day=FIRST - timedelta(days=1))
    fleet.night()
    fleet.tell(("deployment", FIRST, "2.0", "linux", 100))
    assert [one.first_release for one in fleet.known().clusters.values()] == [None]
    fleet.fail(1, TOKENS, release="0.9", day=FIRST - timedelta(days=1))
    fleet.night()
    assert [one.first_release for one in fleet.known().clusters.values()] == ["2.0"]


def test_the_first_day_of_a_release_is_that_of_a_crash_or_of_an_attempt(any_store: Store, tmp_path: Path) -> None:
    """A release without crashes has one by its attempts; a row of no attempts is no day of it."""
    fleet = Fleet(any_store, tmp_path)
    fleet.fail(1, TOKENS)
    fleet.fail(1, TOKENS, release="1.0", day=NEXT)
    fleet.night()
    fleet.tell(
        ("deployment", FIRST, "2.0", "linux", 10), ("deployment", FIRST, "1.0", "linux", 10),
        ("deployment", NEXT, "1.5", "linux", 10), ("deployment", FIRST, "1.5", "linux", 0),
    )  # fmt: skip

    def days(resolved_in: str, release: str = "2.0") -> dict[str, date]:
        with any_store.write() as session:
            session.execute(update(Cluster).values(resolved_in=resolved_in))
        return dict(fleet.known(release).first_days)

    assert days("1.0") == {"2.0": FIRST, "1.0": FIRST}
    assert days("1.5") == {"2.0": FIRST, "1.5": NEXT}
    assert days("1.7") == {"2.0": FIRST}
    assert days("1.7", release="1.5") == {"1.5": NEXT}


def test_the_last_night_and_a_release_that_nobody_knows(any_store: Store, tmp_path: Path) -> None:
    """Of an unknown release there is nothing, and it is none of those that are known; the night is the last begun."""
    fleet = Fleet(any_store, tmp_path)
    assert fleet.known("9.9").night is None
    fleet.fail(2)
    fleet.night()
    known = fleet.known("9.9", baseline="8.8")
    assert (known.release.sides, known.release.untold, known.release.first_day) == ((), {}, None)
    assert known.baseline is not None
    assert known.baseline.sides == ()
    assert known.releases == ("2.0",)
    assert (known.clusters, known.first_days, known.nameless) == ({}, {}, {})
    assert known.night is not None
    assert (known.night.status, known.night.finished_at) == ("complete", AT)
    with any_store.write() as session:
        start_night(session, versions={}, now=AT)
    running = fleet.known("9.9").night
    assert running is not None
    assert (running.status, running.finished_at) == ("running", None)
