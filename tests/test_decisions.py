"""What people decide holds, is learned from, and is undone exactly; nights between and beside it do no harm."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.clustering.encoder import Encoder, FakeEncoder
from crashpath.clustering.night import Clusterer
from crashpath.dashboard.engines import classifier
from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.dashboard.testing import DIMENSION, a_night
from crashpath.ingest import deciding, marking, undoing
from crashpath.ingest.decisions import By, decided_clusters, decisions, hold, last, links, rekey
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.store_errors import NoSuchThing, Refused
from crashpath.ingest.tables import Cluster, ClusterEvent, Signature
from crashpath.ingest.tables_evidence import Decision

TEMPLATE = """Traceback (most recent call last):
  File "/srv/app/serve.py", line 8, in load
    start(model)
{kind}: {message}
"""
DENIED = [
    ("OSError", f"[Errno 13] Permission denied to read the {what} in the cache")
    for what in ("model", "config", "index")
]
FULL = [("OSError", f"[Errno 28] No space left on device while the {what} is written") for what in ("model", "log")]
SHAPE = [("ValueError", "operands could not be broadcast together in the model")]
TOKENS = [("KeyError", "'unk_token' is missing in the vocabulary of the tokenizer")]
ALL = (*DENIED, *FULL, *SHAPE, *TOKENS)
AT = datetime(2026, 5, 1, tzinfo=UTC)


def by(who: str = "dana", why: str | None = None) -> By:
    return By(who, datetime.now(UTC), why)


def log(folder: Path, name: str, failures: Sequence[tuple[str, str]]) -> Path:
    file = folder / f"{name}.log"
    file.write_text("\n".join(TEMPLATE.format(kind=kind, message=message) for kind, message in failures))
    return file


@pytest.fixture
def night(any_store: Store, tmp_path: Path) -> Callable[..., Any]:
    """Run a night over failures, each night's in a log of its own."""
    numbers = iter(range(1000))

    def run(*failures: tuple[str, str]) -> Any:
        return a_night(any_store, [log(tmp_path, f"night{next(numbers)}", failures)])

    return run


def home(store: Store, message: str) -> int | None:
    """The cluster of the signature whose message begins so."""
    with store.read() as session:
        query = select(Signature.cluster_id).where(Signature.root_message.startswith(message, autoescape=True))
        return session.scalars(query).one()


def signature(store: Store, message: str) -> str:
    with store.read() as session:
        return session.scalars(
            select(Signature.id).where(Signature.root_message.startswith(message, autoescape=True))
        ).one()


@dataclass(frozen=True, slots=True)
class Tables:
    """All that clusters are made of, row by row."""

    clusters: dict[int, tuple[Any, ...]]
    signatures: dict[str, tuple[Any, ...]]


def tables(store: Store) -> Tables:
    columns = [column for column in Cluster.__table__.columns if column.name != "id"]
    its = (
        Signature.cluster_id, Signature.joined_at, Signature.joined_by, Signature.why, Signature.is_exemplar,
    )  # fmt: skip
    with store.read() as session:
        return Tables(
            {row[0]: tuple(row[1:]) for row in session.execute(select(Cluster.id, *columns))},
            {row[0]: tuple(row[1:]) for row in session.execute(select(Signature.id, *its))},
        )


def members(found: Tables, number: int) -> set[str]:
    return {one for one, row in found.signatures.items() if row[0] == number}


def decide(store: Store, what: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    with store.write() as session:
        return what(session, *arguments, by(), **more)


def test_a_merge_moves_all_and_says_so(any_store: Store, night: Callable[..., Any]) -> None:
    """B's members are A's, B says where it went, names go along, and lineage and list tell who, when and why."""
    night(*ALL)
    one, other = home(any_store, DENIED[0][1]), home(any_store, FULL[0][1])
    decide(any_store, deciding.name, other, "disk")
    before = tables(any_store)
    with any_store.write() as session:
        deciding.merge(session, one, [other], By("kim", AT, "both are the cache"))
    after = tables(any_store)
    assert members(after, one) == members(before, one) | members(before, other)
    assert members(after, other) == set()
    with any_store.read() as session:
        gone, stays = session.get_one(Cluster, other), session.get_one(Cluster, one)
        assert (gone.status, gone.merged_into, stays.name) == ("merged", one, "disk")
        row = decisions(session, one)[-1]
        assert (row.who, row.at, row.why, row.kind) == ("kim", AT, "both are the cache", "merge")
        assert set(row.signatures) == members(before, other)
        kinds = session.execute(select(ClusterEvent.kind, ClusterEvent.other_id).where(ClusterEvent.kind == "merged"))
        assert sorted(kinds.all()) == sorted([("merged", one), ("merged", other)])


def test_the_next_similar_one_follows_a_merge(any_store: Store, night: Callable[..., Any]) -> None:
    """After a merge of failures that are far apart, what is like either side joins; what is like neither is born."""
    night(*ALL)
    one, other, shape = (home(any_store, text) for text in (DENIED[0][1], FULL[0][1], SHAPE[0][1]))
    decide(any_store, deciding.merge, one, [other, shape])
    like_one = DENIED[0][1].replace("model", "manifest")
    like_other = FULL[0][1].replace("model", "checkpoint")
    like_shape = SHAPE[0][1].replace("together", "jointly")
    night(("OSError", like_one), ("OSError", like_other), ("ValueError", like_shape), ("MemoryError", "out of pages"))
    assert [home(any_store, text) for text in (like_one, like_other, like_shape)] == [one] * 3
    assert home(any_store, "out of pages") not in (one, other, shape, None)


def test_the_next_similar_one_follows_its_half_of_a_split(any_store: Store, night: Callable[..., Any]) -> None:
    """After a split, a new one goes to the half with its nearest exemplar, also where that half is one signature."""
    night(*ALL)
    whole = home(any_store, DENIED[0][1])
    assert home(any_store, DENIED[2][1]) == whole
    made = decide(any_store, deciding.split, whole, [signature(any_store, DENIED[2][1])])
    half = made.other_id
    assert home(any_store, DENIED[2][1]) == half
    night(("OSError", DENIED[2][1] + " of today"), ("OSError", DENIED[0][1] + " again"))
    assert home(any_store, DENIED[2][1] + " of today") == half
    assert home(any_store, DENIED[0][1] + " again") == whole
    with any_store.read() as session:
        assert len(links(session).cannot) == 2
        assert decided_clusters(session) == {whole, half}


def test_links_of_later_decisions_outweigh(any_store: Store, night: Callable[..., Any]) -> None:
    """Split then merged again: must, no cannot. Undone: cannot again. All undone: none. They are bounded in number."""
    night(*ALL)
    whole = home(any_store, DENIED[0][1])
    made = decide(any_store, deciding.split, whole, [signature(any_store, DENIED[2][1])])
    again = decide(any_store, deciding.merge, whole, [made.other_id])[0]
    with any_store.read() as session:
        found = links(session)
    assert found.cannot == frozenset()
    assert len(found.must) == 2
    decide(any_store, undoing.undo, again.id)
    with any_store.read() as session:
        assert (len(links(session).must), len(links(session).cannot)) == (0, 2)
    decide(any_store, undoing.undo, made.id)
    with any_store.read() as session:
        assert (links(session).must, links(session).cannot) == (frozenset(), frozenset())


def test_an_undone_merge_takes_its_links_of_later_merges_along(any_store: Store, night: Callable[..., Any]) -> None:
    """B and then C into A, the first undone: B and C are in two clusters, so nobody wants them together; and merged
    once more by itself and undone, that pair as well stays apart."""
    night(*ALL)
    one, other, shape = (home(any_store, text) for text in (DENIED[0][1], FULL[0][1], SHAPE[0][1]))
    pair = frozenset({signature(any_store, FULL[0][1]), signature(any_store, SHAPE[0][1])})
    first, _ = decide(any_store, deciding.merge, one, [other, shape])
    with any_store.read() as session:
        assert pair in links(session).must
    decide(any_store, undoing.undo, first.id)
    with any_store.read() as session:
        assert pair not in links(session).must
    decide(any_store, undoing.undo, decide(any_store, deciding.merge, one, [other])[0].id)
    with any_store.read() as session:
        assert pair in links(session).cannot


def test_a_persons_class_stands_against_the_classifier(any_store: Store, night: Callable[..., Any]) -> None:
    """A class that a person gave, unclassified too, is what it is after nights that add to the cluster."""
    night(*ALL)
    one, other = home(any_store, DENIED[0][1]), home(any_store, TOKENS[0][1])
    decide(any_store, deciding.assign, one, "hang", assignee="kim")
    decide(any_store, deciding.assign, other, "unclassified")
    night(("OSError", DENIED[0][1] + " now"), ("KeyError", TOKENS[0][1] + " now"))
    assert home(any_store, TOKENS[0][1] + " now") == other
    with any_store.read() as session:
        found = [session.get_one(Cluster, number) for number in (one, other)]
        assert [(row.failure_class, row.class_by) for row in found] == [("hang", "person"), ("unclassified", "person")]
        assert found[0].assignee == "kim"


def test_undo_of_a_merge_sends_newcomers_to_their_half(any_store: Store, night: Callable[..., Any]) -> None:
    """Who joined a merged cluster goes where its nearest exemplar goes, also over another newcomer; and is told of."""
    night(*ALL)
    one, other = home(any_store, DENIED[0][1]), home(any_store, FULL[0][1])
    before = tables(any_store)
    made = decide(any_store, deciding.merge, one, [other])[0]
    full = FULL[0][1].replace("model", "checkpoint")
    night(("OSError", full), ("OSError", DENIED[0][1] + " now"))
    night(("OSError", full.replace("is written", "was written")))
    assert home(any_store, full) == home(any_store, full.replace("is written", "was written")) == one
    done = decide(any_store, undoing.undo, made.id)
    assert [(n.number, n.source, n.target) for n in done.newcomers] == [
        (1, f"C-{one:04d}", f"C-{one:04d}"), (2, f"C-{one:04d}", f"C-{other:04d}"),
    ]  # fmt: skip
    assert home(any_store, full) == home(any_store, full.replace("is written", "was written")) == other
    assert home(any_store, DENIED[0][1] + " now") == one
    after = tables(any_store)
    assert {key: after.signatures[key] for key in before.signatures} == before.signatures
    decide(any_store, undoing.undo, done.decision.id)
    assert home(any_store, full) == one


def test_undo_of_a_split_takes_newcomers_along(any_store: Store, night: Callable[..., Any]) -> None:
    """All of the new half goes back, who joined it as well; the number stays known and says where it went."""
    night(*ALL)
    whole = home(any_store, DENIED[0][1])
    made = decide(any_store, deciding.split, whole, [signature(any_store, one[1]) for one in DENIED[1:]])
    night(("OSError", DENIED[2][1] + " now"))
    joined = home(any_store, DENIED[2][1] + " now")
    decide(any_store, undoing.undo, made.id)
    after = tables(any_store)
    assert members(after, made.other_id) == set()
    assert home(any_store, DENIED[2][1] + " now") == whole or joined not in (whole, made.other_id)
    with any_store.read() as session, pytest.raises(Refused, match=f"went into C-{whole:04d}"):
        deciding.active(session, made.other_id)
    night(("RuntimeError", "a thing of its own kind that nobody saw"))
    assert home(any_store, "a thing of its own") not in (made.other_id, None)


def test_what_cannot_be_decided_changes_nothing(any_store: Store, night: Callable[..., Any]) -> None:
    """Unknown, merged, all members, another's signature, itself, undone, stood upon: refused, and no row changed."""
    night(*ALL)
    one, other, shape = (home(any_store, text) for text in (DENIED[0][1], FULL[0][1], SHAPE[0][1]))
    made = decide(any_store, deciding.merge, one, [other])[0]
    undone = decide(any_store, deciding.name, one, "a name")
    decide(any_store, undoing.undo, undone.id)
    theirs = signature(any_store, FULL[0][1])
    apart = decide(any_store, deciding.split, one, [theirs])
    before = tables(any_store)
    refused: tuple[tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str], ...] = (
        (deciding.merge, (one, [999]), NoSuchThing, "There is no cluster C-0999"),
        (deciding.merge, (shape, [other]), Refused, f"C-{other:04d} went into C-{one:04d}"),
        (deciding.merge, (one, [shape, one]), Refused, "with itself"),
        (deciding.split, (shape, [signature(any_store, SHAPE[0][1])]), Refused, "all signatures"),
        (deciding.split, (one, [theirs]), Refused, f"is in C-{apart.other_id:04d}, not in C-{one:04d}"),
        (deciding.split, (one, ["sig9-nothing"]), NoSuchThing, "no signature"),
        (deciding.split, (one, [""]), NoSuchThing, "begin with|no signature"),
        (deciding.assign, (one, "no-such-class"), NoSuchThing, "no failure class"),
        (deciding.name, (other, "x"), Refused, "went into"),
        (undoing.undo, (999,), NoSuchThing, "no decision 999"),
        (undoing.undo, (undone.id,), Refused, "was undone by decision 3"),
        (undoing.undo, (made.id,), Refused, rf"Decision {apart.id} \(split\) stands on decision {made.id}"),
    )
    for what, arguments, error, words in refused:
        with pytest.raises(error, match=words):
            decide(any_store, what, *arguments)
        assert tables(any_store) == before, what
    with any_store.read() as session:
        assert len(decisions(session)) == 4


def test_independent_decisions_are_undone_in_any_order(any_store: Store, night: Callable[..., Any]) -> None:
    """Two merges into one cluster, the first undone first: each gives back its own; a name given since stays."""
    night(*ALL)
    one, other, shape = (home(any_store, text) for text in (DENIED[0][1], FULL[0][1], SHAPE[0][1]))
    before = tables(any_store)
    first, second = decide(any_store, deciding.merge, one, [other, shape])
    decide(any_store, deciding.name, one, "all of it")
    decide(any_store, undoing.undo, first.id)
    decide(any_store, undoing.undo, second.id)
    after = tables(any_store)
    assert after.signatures == before.signatures
    with any_store.read() as session:
        assert session.get_one(Cluster, one).name == "all of it"


def test_a_redo_under_others_is_refused(any_store: Store, night: Callable[..., Any]) -> None:
    """What was undone comes back only where it was: not over what was taken again since, which would not be undone
    exactly; a decision and its undo since leave no trace and are in nobody's way."""
    night(*ALL)
    one = home(any_store, SHAPE[0][1])
    first = decide(any_store, deciding.name, one, "x")
    gone = decide(any_store, undoing.undo, first.id).decision
    second = decide(any_store, deciding.name, one, "y")
    with pytest.raises(Refused, match=rf"Decision {second.id} \(name\) stands on decision {gone.id}\."):
        decide(any_store, undoing.undo, gone.id)
    gone_too = decide(any_store, undoing.undo, second.id).decision
    again = decide(any_store, undoing.undo, gone.id).decision
    with pytest.raises(Refused, match=rf"Decision {again.id} \(undo\) stands on decision {gone_too.id}\."):
        decide(any_store, undoing.undo, gone_too.id)
    decide(any_store, undoing.undo, again.id)
    decide(any_store, undoing.undo, gone_too.id)
    with any_store.read() as session:
        assert session.get_one(Cluster, one).name == "y"


def _step(store: Store, dice: random.Random) -> Callable[..., Any] | None:
    """Take one random decision; ``None`` where it was refused."""
    with store.read() as session:
        active = list(session.scalars(select(Cluster.id).where(Cluster.status == "active").order_by(Cluster.id)))
        rows = [row.number for row in decisions(session)]
    found = tables(store)
    kinds = ("merge", "merge", "split", "split", "name", "assign", "resolve", "mute", "ticket", "note", "undo")
    kind = dice.choice(kinds)
    try:
        if kind == "merge" and len(active) > 1:
            one, *others = dice.sample(active, dice.choice((2, 2, min(3, len(active)))))
            return decide(store, deciding.merge, one, others)
        if kind == "split":
            number = dice.choice(active)
            own = sorted(members(found, number))
            return decide(store, deciding.split, number, dice.sample(own, max(1, len(own) // 2)))
        if kind == "name":
            return decide(store, deciding.name, dice.choice(active), dice.choice(("", "x", "y")))
        if kind == "assign":
            who = dice.choice((None, "kim", ""))
            return decide(store, deciding.assign, dice.choice(active), dice.choice(("hang", "tokenizer")), assignee=who)
        if kind == "resolve":
            return decide(store, marking.resolve, dice.choice(active), dice.choice(("", "1.0", "2.0")))
        if kind == "mute":
            return decide(store, marking.mute, dice.choice(active), dice.choice((None, AT.replace(year=2999))))
        if kind == "ticket":
            return decide(store, marking.ticket, dice.choice(active), dice.choice(("", "https://example.org/1")))
        if kind == "note":
            return decide(store, marking.note, dice.choice(active), dice.choice(("seen", "known")))
        if kind == "undo" and rows:
            return decide(store, undoing.undo, dice.choice(rows))
    except Refused:
        return None
    return None


SEEDS = int(os.environ.get("CRASHPATH_TEST_SEEDS", "2"))
NEW = [
    (kind, message.replace("model", what).replace("tokenizer", what))
    for what in ("graph", "session", "weights")
    for kind, message in ALL
]


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("growing", [False, True])
def test_undone_in_reverse_order_gives_all_back(
    any_store: Store, night: Callable[..., Any], seed: int, growing: bool
) -> None:
    """Random decisions and nights, then every decision undone from the last to the first: all as it was before each.

    Clusters that were made since are empty and say so. With new failures between, this holds for all that was there
    before; spread and class may have grown with the newcomers, and they are all in active clusters.
    """
    dice = random.Random(seed)
    night(*ALL)
    history: list[tuple[int, Tables]] = []
    fresh = list(NEW)
    dice.shuffle(fresh)
    for step in range(14):
        before = tables(any_store)
        with any_store.read() as session:
            known = len(decisions(session))
        _step(any_store, dice)
        with any_store.read() as session:
            made = [row.number for row in decisions(session)[known:]]
        history += [(number, before) for number in made[:1]] + [(number, None) for number in made[1:]]  # type: ignore[list-item]
        if step % 4 == 3:
            night(*[fresh.pop() for _ in range(2)] if growing else ALL)
    for number, before in reversed(history):
        decide(any_store, undoing.undo, number)
        if before is not None:
            _same(before, tables(any_store), growing)
    with any_store.read() as session:
        assert not links(session).must
        assert links(session).cannot <= _sides_of_merges(session)  # an unmerge stays unmerged
        assert len(decisions(session)) == 2 * len(history)


def _sides_of_merges(session: Session) -> set[frozenset[str]]:
    rows = session.scalars(select(Decision).where(Decision.kind == "merge"))
    return {frozenset(pair) for row in rows for pair in itertools.combinations(row.signatures, 2)}


def _same(before: Tables, after: Tables, growing: bool) -> None:
    assert {one: after.signatures[one] for one in before.signatures} == before.signatures
    active = {number for number, row in after.clusters.items() if row[2] == "active"}
    assert {row[0] for row in after.signatures.values()} <= active
    columns = [column.name for column in Cluster.__table__.columns if column.name != "id"]
    for number, row in before.clusters.items():
        grew = growing and members(after, number) != members(before, number)
        for column, old, new in zip(columns, row, after.clusters[number], strict=True):
            if not (grew and column in ("spread", "failure_class", "probability", "evidence")):
                assert new == old, (number, column)
    if not growing:
        made = set(after.clusters) - set(before.clusters)
        assert all(after.clusters[number][2] == "merged" and not members(after, number) for number in made)


class _Meanwhile:
    """An encoder with which something happens while a night thinks."""

    def __init__(self, *actions: Callable[[], object]) -> None:
        self._actions = list(actions)

    def clusterer(self) -> Clusterer:
        return Clusterer(self._encoder, classifier)

    def _encoder(self) -> Encoder:
        if self._actions:
            self._actions.pop(0)()
        return FakeEncoder(DIMENSION)


def test_a_night_keeps_what_was_decided_while_it_thought(any_store: Store, tmp_path: Path) -> None:
    """Merged, split and named between a night's reading and writing: all stands, nothing is left without a cluster."""
    a_night(any_store, [log(tmp_path, "first", ALL)])
    one, other, tokens = (home(any_store, text) for text in (DENIED[0][1], FULL[0][1], TOKENS[0][1]))
    like = FULL[0][1].replace("model", "checkpoint")
    news = [("OSError", like), ("KeyError", TOKENS[0][1] + " now"), ("SystemError", "the bridge fell into the river")]

    def merged() -> None:
        decide(any_store, deciding.merge, one, [other])

    def parted() -> None:
        decide(any_store, deciding.split, one, [signature(any_store, DENIED[1][1])])
        decide(any_store, deciding.merge, one, [tokens])
        decide(any_store, deciding.assign, one, "hang")

    run_night(
        any_store, [str(log(tmp_path, "second", news))], NightOptions(), _Meanwhile(merged, parted).clusterer(),
        clock=lambda: datetime.now(UTC),
    )  # fmt: skip
    assert home(any_store, like) == one
    assert home(any_store, TOKENS[0][1] + " now") == one
    after = tables(any_store)
    river = home(any_store, "the bridge fell")
    assert river not in (one, other, tokens, None)
    active = {number for number, row in after.clusters.items() if row[2] == "active"}
    assert {row[0] for row in after.signatures.values()} <= active
    with any_store.read() as session:
        assert session.get_one(Cluster, one).failure_class == "hang"


def test_a_night_among_people_who_never_stop_ends(any_store: Store, tmp_path: Path) -> None:
    """Where people decide on the same cluster in every pass, the night ends, and the next one takes what is left."""
    a_night(any_store, [log(tmp_path, "first", ALL)])
    one, other = home(any_store, DENIED[0][1]), home(any_store, FULL[0][1])

    def busy() -> None:
        made = decide(any_store, deciding.merge, one, [other])[0]
        decide(any_store, undoing.undo, made.id)
        decide(any_store, deciding.split, one, [signature(any_store, DENIED[1][1])])
        with any_store.read() as session:
            number = decisions(session)[-1].number
        if len(members(tables(any_store), one)) < 2:
            decide(any_store, undoing.undo, number)

    log_file = log(tmp_path, "second", [("OSError", DENIED[0][1] + " now")])
    run_night(any_store, [str(log_file)], NightOptions(), _Meanwhile(busy).clusterer(), clock=lambda: datetime.now(UTC))
    assert home(any_store, DENIED[0][1] + " now") is not None


CHILD = """
import sys, time
from datetime import UTC, datetime
from crashpath.ingest import deciding
from crashpath.ingest.decisions import By
from crashpath.ingest.store import open_store
url, one, other, when = sys.argv[1:]
with open_store(url) as store:
    with store.write() as session:
        deciding.merge(session, int(one), [int(other)], By("kim", datetime.now(UTC)))
        if when == "before":
            print("there", flush=True)
            time.sleep(600)
    print("there", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_in_a_merge(store_url: str, tmp_path: Path, when: str) -> None:
    """kill -9 before the commit: nothing of it is there, and others can decide; after it: all of it is there."""
    with open_store(store_url) as store:
        a_night(store, [log(tmp_path, "first", ALL)])
        one, other = home(store, DENIED[0][1]), home(store, FULL[0][1])
        before = tables(store)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, store_url, str(one), str(other), when], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "there\n"
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close() if child.stdout else None
    with open_store(store_url) as store:
        with store.read() as session:
            rows = decisions(session)
        if when == "before":
            assert (rows, tables(store)) == ((), before)
            _patiently(lambda: decide(store, deciding.merge, one, [other]))
        assert members(tables(store), int(other or 0)) == set()
        with store.read() as session:
            (made,) = decisions(session)
        decide(store, undoing.undo, made.number)
        assert tables(store) == before


def _patiently(what: Callable[[], object]) -> None:
    """A server may need a moment to see that a client is gone; its locks are then free."""
    deadline = time.monotonic() + 60
    while True:
        try:
            what()
            return
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def test_a_rekey_keeps_decisions(any_store: Store, night: Callable[..., Any]) -> None:
    """Ids of signatures are mapped in all decisions, one into several as well; links and undo speak of the new ones."""
    night(*ALL)
    one, other = home(any_store, SHAPE[0][1]), home(any_store, TOKENS[0][1])
    made = decide(any_store, deciding.merge, one, [other])[0]
    old, stays = signature(any_store, TOKENS[0][1]), signature(any_store, SHAPE[0][1])
    with any_store.write() as session:
        row = session.get_one(Signature, old)
        names = [column.name for column in Signature.__table__.columns]
        for new in ("sig9-a", "sig9-b"):
            session.add(Signature(**{name: getattr(row, name) for name in names} | {"id": new}))
        row.cluster_id = None
        session.flush()
        assert rekey(session, {old: ("sig9-a", "sig9-b")}) == 1
    with any_store.read() as session:
        assert links(session).must == {frozenset({"sig9-a", stays}), frozenset({"sig9-b", stays})}
    decide(any_store, undoing.undo, made.id)
    assert members(tables(any_store), int(other or 0)) == {"sig9-a", "sig9-b"}


def test_the_last_decision_is_what_nights_compare_with(any_store: Store, night: Callable[..., Any]) -> None:
    """Names and classes change no members, so a night need not think again for them; merges, splits and undos do."""
    night(*ALL)
    one, other = home(any_store, SHAPE[0][1]), home(any_store, TOKENS[0][1])
    decide(any_store, deciding.name, one, "x")
    with any_store.read() as session:
        assert last(session) == 0
    decide(any_store, deciding.merge, one, [other])
    with any_store.write() as session:
        assert hold(session) == 2
        assert session.scalars(select(Decision.id)).all() == [1, 2]
