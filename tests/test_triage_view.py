"""The ranked list, its filters and the crashes behind it, and the reading of one cluster, on stores of real nights."""

from __future__ import annotations

import itertools
import runpy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from crashpath.dashboard import triage_view
from crashpath.dashboard.cluster_view import read_cluster, read_containment, read_members, read_near, read_pair
from crashpath.dashboard.cluster_words import containment_words, proof_words
from crashpath.dashboard.marks import Marks, marks_key, read_marks
from crashpath.dashboard.noticed import Rules
from crashpath.dashboard.triage_view import Asked, Listing, Mark, Row, read_known, read_list
from crashpath.dashboard.triage_words import contained_words, night_words, platform_words, since_words, spark_words
from crashpath.ingest.cluster_facts import Outcomes, Seen
from crashpath.ingest.cluster_filter import NOBODY, ClusterFilter
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.crash_list import count_crashes, newest_crashes
from crashpath.ingest.deciding import merge
from crashpath.ingest.decisions import By
from crashpath.ingest.embeddings import save_embeddings
from crashpath.ingest.nights import finish_night, start_night
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.store_errors import NoSuchThing
from crashpath.ingest.tables import Cluster, Crash, Project, Signature, Variant
from crashpath.ingest.testing import new_database
from crashpath.ingest.trends import Count, Filters, counts

_SAMPLE = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("triage_samples.py"))))
_numbers = itertools.count()
NOW = datetime(2026, 3, 11, 8, tzinfo=UTC)
LAST: date = _SAMPLE.LAST
USUAL = Asked(all_marked=True)


@dataclass(frozen=True)
class Sample:
    """The store of the samples, the number of each text's cluster, and what the last night noticed."""

    store: Store
    numbers: dict[str, int]
    found: Marks

    @property
    def marks(self) -> tuple[Mark, ...]:
        return tuple(Mark(one.cluster, one.kind, one.words) for one in self.found.things if one.cluster is not None)

    def listed(self, asked: Asked = USUAL, page: int = 1, now: datetime = NOW) -> Listing:
        with self.store.read() as session:
            return read_list(session, asked, self.marks, LAST, now, page)

    def names(self, asked: Asked = USUAL) -> list[str]:
        """The clusters of the list, by the names of their texts."""
        return [self.name(row.number) for row in self.listed(asked).rows]

    def name(self, number: int) -> str:
        return next(name for name, one in self.numbers.items() if one == number)

    def row(self, name: str) -> Row:
        return next(row for row in self.listed().rows if row.number == self.numbers[name])


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    """The samples on each database; nothing writes to it."""
    folder = tmp_path_factory.mktemp("triage")
    url = f"sqlite:///{folder}/crashpath.db"
    if request.param == "postgresql":
        url = new_database(request.getfixturevalue("postgres_server"), f"triage{next(_numbers)}")
    with open_store(url) as store:
        numbers = _SAMPLE.fill(store, folder)
        with store.read() as session:
            found = read_marks(session, Rules())
        yield Sample(store, numbers, found)


@pytest.fixture
def written(sample: Sample) -> Iterator[Session]:
    """A session whose writes are taken back."""
    with sample.store.engine.connect() as connection:
        session = Session(connection)
        yield session
        session.rollback()


def test_what_broke_comes_first_new_and_regressed_before_spiking_and_back(sample: Sample) -> None:
    """Within each group the cluster with the most crashes is first; those that did not break follow."""
    assert sample.names() == ["regressed", "new", "long", "spiking", "back", "steady", "event"]
    listing = sample.listed()
    assert (listing.broken, listing.clusters) == (5, 7)
    assert [row.mark.kind for row in listing.rows if row.mark] == ["regressed", "new", "new", "spiking", "back"]


def test_muted_clusters_are_counted_apart_until_their_time_has_come(sample: Sample) -> None:
    """A muted cluster is not among the ranked ones, and its number is said; after its moment it is one of them."""
    listing = sample.listed()
    assert listing.muted_clusters == 1
    assert [one.id for one in listing.muted] == [cluster_id(sample.numbers["muted"])]
    later = sample.listed(now=datetime(3000, 1, 1, tzinfo=UTC))
    assert later.muted_clusters == 0
    assert sample.numbers["muted"] in [row.number for row in later.rows]
    assert later.crashes == listing.crashes


FILTERS = {
    "release": (Asked(Filters(release="1.1")), {"spiking", "regressed", "new", "long", "steady"}),
    "platform": (Asked(Filters(platform="windows")), {"back"}),
    "model": (Asked(Filters(model="m")), {"event"}),
    "path": (Asked(Filters(path="ort")), {"event"}),
    "phase": (Asked(Filters(phase="infer")), {"event"}),
    "since": (Asked(Filters(since=LAST)), {"spiking", "regressed", "new", "long", "steady", "back"}),
    "until": (Asked(Filters(until=date(2026, 1, 31))), {"back"}),
    "one day": (Asked(Filters(since=date(2026, 3, 4), until=date(2026, 3, 4))), {"spiking", "steady", "event"}),
    "long range": (Asked(Filters(since=date(2026, 1, 1), until=date(2026, 2, 27))), {"spiking", "steady", "back"}),
    "class": (Asked(of=ClusterFilter(classes=("oom_device",))), {"spiking"}),
    "headline": (Asked(of=ClusterFilter(classes=("tokenizer", "hang"))), {"back", "event"}),
    "owner": (Asked(of=ClusterFilter(owner="ana")), {"steady"}),
    "nobody": (Asked(of=ClusterFilter(owner=NOBODY, classes=("hang", "dependency"))), {"event"}),
    "mark": (Asked(mark="new"), {"new", "long"}),
    "two at once": (Asked(Filters(platform="k8s"), mark="regressed"), {"regressed"}),
    "nothing": (Asked(Filters(release="9.9")), set()),
}


@pytest.mark.parametrize("name", FILTERS)
def test_each_filter_leaves_only_what_passes(sample: Sample, name: str) -> None:
    """Clusters with no crash that passes are not listed but counted; crashes are those that pass."""
    asked, wanted = FILTERS[name]
    listing = sample.listed(asked)
    assert set(sample.names(asked)) == wanted
    with sample.store.read() as session:
        passing = dict(counts(session, "cluster", asked.filters))
    assert {row.id: row.crashes for row in listing.rows} == {row.id: passing[row.id] for row in listing.rows}


def test_chosen_clusters_are_listed_alone(sample: Sample) -> None:
    """The numbers that a selection on the map leads here with; unknown ones are none."""
    numbers = (sample.numbers["back"], sample.numbers["new"], 99_999)
    assert set(sample.names(Asked(of=ClusterFilter(numbers=numbers)))) == {"back", "new"}
    assert sample.names(Asked(of=ClusterFilter(numbers=()))) == []


SEARCHES = {
    "cuda OUT of": {"spiking"},
    "100%_DONE": {"steady"},
    "100%done": set(),
    "100_": set(),
    "%": {"steady"},
    "_": {"steady"},
    "/": {"new"},
    "<script>": {"new"},
    "**bold** [link](": {"new"},
    "permissionerror": {"regressed"},
    "30522 entries": {"back"},
    "no such words": set(),
    "'; DROP TABLE cluster; --": set(),
}


@pytest.mark.parametrize("text", SEARCHES)
def test_search_finds_texts_as_they_stand(sample: Sample, text: str) -> None:
    """In any case of letters; %, _ and markup stand for themselves; figures that a signature masks are found too."""
    assert set(sample.names(Asked(of=ClusterFilter(search=text)))) == SEARCHES[text]


def test_search_finds_ids_and_names(sample: Sample, written: Session) -> None:
    """A cluster is found by its id as people write it, and by the name that a person gave it."""
    number = sample.numbers["long"]
    assert sample.names(Asked(of=ClusterFilter(search=f"c-{number}"))) == ["long"]
    written.execute(update(Cluster).where(Cluster.id == number).values(name="The 50% planner"))
    found = read_list(written, Asked(of=ClusterFilter(search="the 50% PLAN")), (), LAST, NOW)
    assert [row.name for row in found.rows] == ["The 50% planner"]


def test_broken_clusters_stay_where_only_the_days_of_the_weight_leave_them_out(sample: Sample) -> None:
    """A night may read old logs: what broke is listed whatever its days, unless days or cohorts are asked for."""
    later = Filters(since=LAST + timedelta(days=1))
    assert sample.names(Asked(later)) == []
    named = sample.names(Asked(later, all_marked=True))
    assert (set(named[:3]), set(named[3:])) == ({"regressed", "new", "long"}, {"spiking", "back"})
    assert {row.crashes for row in sample.listed(Asked(later, all_marked=True)).rows} == {0}


def test_a_row_says_since_when_where_and_what_came_of_it(sample: Sample) -> None:
    """First and last seen are of all crashes; platforms, days and outcomes of those that pass."""
    back = sample.row("back")
    assert back.seen == Seen(date(2026, 1, 1), "1.0", LAST, "1.0")
    assert back.platforms == (Count("linux", 1), Count("windows", 1))
    spiking = sample.row("spiking")
    assert spiking.days[-1] == 40
    assert spiking.since + timedelta(len(spiking.days) - 1) == LAST
    assert sum(spiking.days) == spiking.crashes == 52
    assert sample.row("event").outcomes == Outcomes(3, 1)
    assert spiking.outcomes == Outcomes(0, 0)
    assert abs(sum(row.share for row in sample.listed().rows) - 1) < 0.1
    windows = next(row for row in sample.listed(Asked(Filters(platform="windows"))).rows)
    assert windows.platforms == (Count("windows", 1),)
    assert windows.seen == back.seen


def test_outcomes_follow_the_filters_that_failed_attempts_have(sample: Sample) -> None:
    """Days, release, platform and model narrow what came of failed attempts."""
    asked = Asked(of=ClusterFilter(numbers=(sample.numbers["event"],)))
    passing = Filters(since=date(2026, 3, 4), until=date(2026, 3, 4), release="1.0", platform="k8s", model="m")
    assert [row.outcomes for row in sample.listed(replace(asked, filters=passing)).rows] == [Outcomes(3, 1)]


def test_pages_are_bounded_and_one_too_far_is_the_last(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has so many rows; all pages together are the list, in its order."""
    whole = sample.names()
    monkeypatch.setattr(triage_view, "PAGE", 3)
    pages = [sample.listed(page=number) for number in (1, 2, 3)]
    assert [page.pages for page in pages] == [3, 3, 3]
    assert [sample.name(row.number) for page in pages for row in page.rows] == whole
    assert sample.listed(page=99).page == 3
    assert sample.listed(page=-1).page == 1


def test_signatures_without_a_cluster_are_counted_as_pending(sample: Sample, written: Session) -> None:
    """Crashes that a night read and did not cluster yet are said, and in no row."""
    written.execute(update(Signature).where(Signature.cluster_id == sample.numbers["event"]).values(cluster_id=None))
    listing = read_list(written, Asked(), (), LAST, NOW)
    assert listing.pending == 4
    assert sample.numbers["event"] not in [row.number for row in listing.rows]


def test_merged_clusters_are_not_listed(sample: Sample, written: Session) -> None:
    """What went into another cluster counts there, and has no row of its own."""
    into, gone = sample.numbers["steady"], sample.numbers["back"]
    merge(written, into, [gone], By("dana", NOW))
    written.flush()
    rows = {row.number: row for row in read_list(written, Asked(), (), LAST, NOW).rows}
    assert gone not in rows
    assert rows[into].crashes == sample.row("steady").crashes + 2


def test_what_may_be_asked_for(sample: Sample, store: Store) -> None:
    """Days, classes and owners there are; nothing of a store without crashes."""
    with sample.store.read() as session:
        known = read_known(session)
    assert known is not None
    assert (known.first_day, known.last_day, known.owners, known.clusters) == (date(2026, 1, 1), LAST, ("ana",), 8)
    assert "oom_device" in known.classes
    with store.read() as session:
        assert read_known(session) is None


BEHIND = {
    "all": (Filters(), ClusterFilter()),
    "a day": (Filters(since=LAST, until=LAST), ClusterFilter()),
    "a cohort": (Filters(release="1.0", platform="k8s", path="unknown"), ClusterFilter()),
    "a phase": (Filters(phase="infer", model="m"), ClusterFilter()),
    "a class": (Filters(), ClusterFilter(classes=("oom_device",))),
    "a text": (Filters(platform="windows"), ClusterFilter(search="tokenizer.json")),
    "none": (Filters(release="9.9"), ClusterFilter()),
}


@pytest.mark.parametrize("limit", [1, 5, 50])
@pytest.mark.parametrize("name", BEHIND)
def test_the_newest_crashes_are_those_of_a_plain_query(sample: Sample, name: str, limit: int) -> None:
    """However they are found, they are the newest ones that pass, and their count is that of all that do."""
    filters, of = BEHIND[name]
    with sample.store.read() as session:
        found = newest_crashes(session, filters, of, limit)
        count = count_crashes(session, filters, of)
        query = select(Crash).join(Variant, Variant.id == Crash.variant_id)
        query = query.join(Signature, Signature.id == Variant.signature_id)
        every = [one for one in session.scalars(query) if _passes(one, filters)]
        if of.classes:
            numbers = {sample.numbers["spiking"]}
        elif of.search:
            numbers = {sample.numbers["back"]}
        else:
            numbers = set(sample.numbers.values())
        homes: dict[int, int | None] = dict(session.execute(
            select(Crash.id, Signature.cluster_id)
            .join(Variant, Variant.id == Crash.variant_id)
            .join(Signature, Signature.id == Variant.signature_id)
        ).all())  # fmt: skip
        wanted = [one for one in every if homes[one.id] in numbers]
        wanted.sort(key=lambda one: (one.at, one.id), reverse=True)
        assert [one.id for one in found] == [one.id for one in wanted[:limit]]
        assert count == len(wanted)


def _passes(crash: Crash, filters: Filters) -> bool:
    cohort = ("release", "platform", "model", "path", "phase")
    if any(getattr(filters, name) not in (None, getattr(crash, name)) for name in cohort):
        return False
    return (filters.since or crash.day) <= crash.day <= (filters.until or crash.day)


def test_a_crash_in_the_list_says_where_it_was(sample: Sample) -> None:
    """Its cohort, its cluster, its root line, and what came of it where an event says so."""
    with sample.store.read() as session:
        events = newest_crashes(session, Filters(phase="infer"), ClusterFilter())
        (long,) = newest_crashes(session, Filters(), ClusterFilter(search="ZeroDivisionError"))
    assert sorted(str(one.outcome) for one in events) == ["contained"] * 3 + ["unanswered"]
    assert {(one.release, one.model, one.cluster) for one in events} == {
        ("1.0", "m", cluster_id(sample.numbers["event"]))
    }
    assert long.root_line.startswith("ZeroDivisionError: division by zero")
    assert len(long.root_line) < 600


def test_marks_are_those_of_the_digest_and_stay_when_a_night_runs_again(sample: Sample, written: Session) -> None:
    """A second run at noon brings nothing, and hides nothing of what broke; a running night is named and changes no
    mark."""
    assert {one.kind for one in sample.found.things} == {"regressed", "spiking", "back", "new"}
    noon = NOW + timedelta(hours=4)
    again = start_night(written, versions={}, now=noon)
    running = read_marks(written, Rules())
    assert (running.last and running.last.status, running.things) == ("running", sample.found.things)
    assert f"Night {again} is running" in night_words(running, noon)
    finish_night(written, again, "complete", counts={}, seconds={}, now=noon)
    written.flush()
    assert {one.key for one in read_marks(written, Rules()).things} == {one.key for one in sample.found.things}


def test_marks_are_read_anew_after_what_they_depend_on(sample: Sample, written: Session) -> None:
    """Their key changes with a decision and with the end of a night, not with crashes that a running night stores."""
    key = marks_key(written)
    written.execute(update(Crash).values(truncated=True))
    assert marks_key(written) == key
    night = start_night(written, versions={}, now=NOW)
    began = marks_key(written)
    finish_night(written, night, "failed", counts={}, seconds={}, reason="killed", now=NOW)
    written.flush()
    assert len({key, began, marks_key(written)}) == 3
    before = marks_key(written)
    merge(written, sample.numbers["steady"], [sample.numbers["back"]], By("dana", NOW))
    assert marks_key(written) != before


def test_the_night_is_said_in_words(sample: Sample, written: Session, store: Store) -> None:
    """When it ended and how, that it is old, and what failed since; a store without a night says so."""
    assert night_words(sample.found, NOW) == "Night 2 ended 2026-03-11 03:00 UTC: complete."
    assert "3 days ago" in night_words(sample.found, NOW + timedelta(days=3))
    night = start_night(written, versions={}, now=NOW)
    finish_night(written, night, "failed", counts={}, seconds={}, reason="disk full", now=NOW)
    written.flush()
    assert night_words(read_marks(written, Rules()), NOW).endswith("began 2026-03-11 08:00 UTC, failed (disk full).")
    with store.read() as session:
        assert "No night was run" in night_words(read_marks(session, Rules()), NOW)


def test_words_of_a_row() -> None:
    """Containment says in how many failed attempts with a known outcome the fallback answered; nothing else."""
    assert "unknown" in contained_words(Outcomes(0, 0))
    assert contained_words(Outcomes(12, 0)) == "contained: the fallback answered all 12"
    assert contained_words(Outcomes(0, 1)) == "not contained: nobody answered 1 failed attempt"
    assert contained_words(Outcomes(12, 3)) == "partly contained: 12 of 15 answered"
    assert platform_words((Count("gpu", 3), Count("cpu", 1))) == "on gpu most (75.0 %), 2 platforms"
    assert platform_words((Count("gpu", 3),)) == "on gpu alone"
    assert since_words(None) == platform_words(()) == ""
    assert spark_words(date(2026, 3, 1), (0, 7, 2)).endswith("from 2026-03-01 to 2026-03-03: at most 7 on 2026-03-02")


def test_a_cluster_is_read_bounded(sample: Sample, written: Session) -> None:
    """Its facts, and members page by page; without examples, whose texts are long."""
    number = sample.numbers["spiking"]
    cluster = read_cluster(written, cluster_id(number))
    assert (cluster.found.row.crashes, cluster.moved, cluster.found.signatures[0].examples) == (52, None, ())
    assert cluster.seen is not None
    assert (cluster.seen.first_day, cluster.seen.last_release) == (date(2026, 2, 26), "1.1")
    assert [one.id for one in read_members(written, number, 1)] == [one.id for one in cluster.found.signatures]
    assert read_members(written, number, 2) == ()
    with pytest.raises(NoSuchThing):
        read_cluster(written, "C-9999")
    with pytest.raises(NoSuchThing):
        read_cluster(written, "<script>")


def test_a_merged_cluster_says_where_it_went(sample: Sample, written: Session) -> None:
    """Its own page stays, with what happened to it and what people decided."""
    into, gone = sample.numbers["steady"], sample.numbers["back"]
    merge(written, into, [gone], By("dana", NOW))
    cluster = read_cluster(written, cluster_id(gone))
    assert cluster.moved == f"{cluster_id(gone)} went into {cluster_id(into)}."
    assert (cluster.found.row.status, cluster.found.signatures) == ("merged", ())
    assert [one.kind for one in cluster.decisions] == ["merge"]
    assert read_pair(written, gone) is None


def test_the_most_different_text_is_that_of_the_farthest_vector(sample: Sample, written: Session) -> None:
    """By stored vectors; where there are none, by how alike the texts are. One signature alone has no other."""
    into = sample.numbers["spiking"]
    alone = read_pair(written, into)
    assert alone is not None
    assert (alone.shown.release, alone.other) == ("1.1", None)
    merge(written, into, [sample.numbers["steady"], sample.numbers["back"]], By("dana", NOW))
    written.flush()
    texts = {name: _text(written, sample, name) for name in ("spiking", "steady", "back")}
    written.execute(update(Project).values(encoder_id="of this test"))
    save_embeddings(written, "of this test", {
        texts["spiking"]: np.array([1, 0], "f4"), texts["steady"]: np.array([0.9, 0.1], "f4"),
        texts["back"]: np.array([0, 1], "f4"),
    })  # fmt: skip
    pair = read_pair(written, into)
    assert pair is not None
    assert pair.other is not None
    assert (pair.shown.root_type, pair.other.root_type) == ("torch.OutOfMemoryError", "ValueError")
    assert "cosine distance 1.00" in pair.compared
    written.execute(update(Project).values(encoder_id=None))
    without = read_pair(written, into)
    assert without is not None
    assert without.other is not None
    assert "no vectors" in without.compared


def _text(session: Session, sample: Sample, name: str) -> str:
    kind = _SAMPLE.TEXTS[name].split(":")[0].rpartition(".")[2]
    return session.scalars(select(Signature.text).where(Signature.root_type.endswith(kind))).one()


def test_containment_is_told_by_unit_with_its_interval_and_what_is_proven(sample: Sample, written: Session) -> None:
    """Contained, unanswered and unknown attempts apart; without drills nothing is proven, and the command is named."""
    event = read_containment(written, sample.numbers["event"], "hang")
    (unit,) = event.units
    assert (unit.unit, unit.attempts, unit.contained, unit.unanswered) == ("request", 4, 3, 1)
    (words,) = containment_words(event.units)
    assert "75.0 % (19.4 to 99.4 %), 3 of 4" in words
    assert "crashpath drill --class hang" in " ".join(proof_words(event.standing))
    silent = read_containment(written, sample.numbers["spiking"], "oom_device")
    assert "of none does a runtime event tell" in " ".join(containment_words(silent.units))


def test_the_nearest_clusters_are_others(sample: Sample, written: Session) -> None:
    """By stored vectors; a cluster is never near itself."""
    near: Any = read_near(written, sample.numbers["spiking"])
    assert near
    assert cluster_id(sample.numbers["spiking"]) not in [one.cluster for one in near]
