"""Looks at a release are counted and kept, and what people put in the place of a verdict is shown for ever."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, func, select, update

from crashpath.clustering.encoder import FakeEncoder
from crashpath.dashboard import decide_text
from crashpath.dashboard.rekeying import write as rekey
from crashpath.dashboard.testing import DIMENSION, a_night
from crashpath.ingest import deciding, undoing
from crashpath.ingest.decisions import By, decided_clusters, decisions, holding, last, links
from crashpath.ingest.keying import Keying
from crashpath.ingest.model import Signature as Signed
from crashpath.ingest.model import Variant
from crashpath.ingest.reviews import Overridden, Seen, looks, override, overrides, record_look
from crashpath.ingest.signature import sign
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.store_errors import NoSuchThing, Refused
from crashpath.ingest.tables import Cluster, ClusterEvent, Signature
from crashpath.ingest.tables_evidence import Decision, Review
from crashpath.ingest.upgrade import check

AT = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
COUNTS = {"deployment": {"primary": (9, 400), "unanswered": (3, 400)}, "load": {"primary": (1, 2_000_000_000_000)}}
REPORT = {"verdict": "NO-GO", "text": "a long report"}


def seen(store: Store, fingerprint: str, *, release: str = "2026.12", verdict: str = "NO-GO", **more: Any) -> Seen:
    """Look at a release."""
    given: dict[str, Any] = {
        "at": AT, "baseline": "2026.11", "unit": "deployment", "failures": 3, "attempts": 400,
        "keys": ("rate", "a class"), "counts": COUNTS, "policy": {"alpha": 0.05}, "report": REPORT,
    }  # fmt: skip
    with store.write() as session:
        return record_look(session, release=release, verdict=verdict, fingerprint=fingerprint, **given | more)


def overridden(store: Store, look: int, verdict: str, why: str | None = "we know of it", who: str = "kim") -> Decision:
    with store.write() as session:
        return override(session, look, verdict, By(who, AT + timedelta(hours=1), why))


def undo(store: Store, number: int) -> undoing.Undone:
    with store.write() as session:
        return undoing.undo(session, number, By("noor", AT + timedelta(hours=2)))


def said(store: Store, release: str = "2026.12") -> tuple[Overridden, ...]:
    with store.read() as session:
        return overrides(session, release)


def standing(store: Store) -> list[int]:
    return [one.decision for one in said(store) if not one.undone]


def kept(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of both tables."""
    with store.read() as session:
        return {
            table.__tablename__: [tuple(row) for row in session.execute(select(*table.__table__.c).order_by(table.id))]
            for table in (Review, Decision)
        }


@contextmanager
def statements(store: Store) -> Iterator[list[str]]:
    """What is asked of the database meanwhile."""
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    event.listen(store.engine, "before_cursor_execute", note)
    yield asked
    event.remove(store.engine, "before_cursor_execute", note)


def test_a_look_counts_where_something_changed(any_store: Store) -> None:
    """The same evidence is no new look and its row stays; other evidence is the next one; each release has its own."""
    first = seen(any_store, "a")
    assert first == Seen(
        first.id, 1, AT, "2026.12", "2026.11", "deployment", "NO-GO", 3, 400, frozenset({"rate", "a class"}), COUNTS
    )
    before = kept(any_store)
    assert seen(any_store, "a", at=AT + timedelta(days=1), verdict="GO", failures=8) == first
    assert kept(any_store) == before
    east = timezone(timedelta(hours=5))
    second = seen(
        any_store, "b", at=(AT + timedelta(days=2)).astimezone(east), verdict="HOLD", unit=None, baseline=None
    )
    assert (second.number, second.at.utcoffset(), second.unit, second.baseline) == (2, timedelta(0), None, None)
    assert seen(any_store, "a").number == 3, "only the newest look is compared"
    other = seen(any_store, "a", release="2026.13")
    with any_store.read() as session:
        assert [one.number for one in looks(session, "2026.12")] == [1, 2, 3]
        assert looks(session, "2026.12")[:2] == (first, second)
        assert looks(session, "2026.13") == (other,)
        assert looks(session, "2026.1") == ()
    assert check(any_store).problems == ()


def test_the_newest_look_is_the_one_with_the_last_number(any_store: Store) -> None:
    """A replay looks at an earlier time: its look is the next one all the same."""
    seen(any_store, "a")
    early = seen(any_store, "b", at=AT - timedelta(days=30))
    assert early.number == 2
    assert seen(any_store, "b") == early
    with any_store.read() as session:
        assert [one.number for one in looks(session, "2026.12")] == [1, 2]


def test_odd_names_are_kept_on_any_database(any_store: Store) -> None:
    """Neither a NUL nor a lone surrogate nor a quote in a name breaks a look, nor finding it by the same name."""
    name = "2026\0'\udcff%_"
    one = seen(any_store, "a", release=name, baseline="\0", keys=("class\0 \udcff",))
    assert seen(any_store, "a", release=name).id == one.id
    assert overridden(any_store, one.id, "GO").id == 1
    with any_store.read() as session:
        assert looks(session, name) == (one,)
        assert [(row.decision, row.release) for row in overrides(session, name)] == [(1, one.release)]


def test_no_list_loads_reports(any_store: Store) -> None:
    """Looks, overrides and decisions are read without the report and the policy, which are long."""
    one = seen(any_store, "a")
    made = overridden(any_store, one.id, "GO")
    undo(any_store, made.id)
    with statements(any_store) as asked, any_store.read() as session:
        assert len(looks(session, "2026.12")) == len(overrides(session, "2026.12")) == 1
        assert len(decisions(session)) == 2
    assert len(asked) > 3
    assert not [statement for statement in asked if "review.report" in statement or "review.policy" in statement]


LOOKING = """
import gc, sys
from datetime import UTC, datetime
from crashpath.ingest.reviews import record_look
from crashpath.ingest.store import open_store

def look(release, fingerprint):
    with store.write() as session:
        record_look(
            session, at=datetime.now(UTC), release=release, baseline=None, unit=None, verdict="HOLD",
            fingerprint=fingerprint, failures=0, attempts=0, keys=(), counts={}, policy={}, report={},
        )

gc.disable()  # what a writer leaves open must not be left to chance: it would keep it from writing again
url, who, turns = sys.argv[1:]
with open_store(url) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(int(turns)):
        look("of all", f"{who} {turn}")
        look("of one", "the same")
"""


def together(code: str, *arguments: Sequence[str]) -> None:
    """Run processes that begin at the same moment, one for each row of arguments."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, *row], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )
        for row in arguments
    ]  # fmt: skip
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        ends = [child.communicate()[1] for child in children]
        assert [(child.returncode, end) for child, end in zip(children, ends, strict=True)] == [(0, "")] * len(children)
    finally:
        for child in children:
            child.kill()
            child.communicate()


def test_reviews_of_one_moment_get_numbers_of_their_own(store_url: str) -> None:
    """Processes that look at one release at once: as many looks as there was evidence, numbered without gap or twin."""
    open_store(store_url).close()
    turns, who = 10, ("dana", "kim", "lee")
    together(LOOKING, *((store_url, one, str(turns)) for one in who))
    with open_store(store_url) as store, store.read() as session:
        assert [one.number for one in looks(session, "of all")] == list(range(1, turns * len(who) + 1))
        assert len(looks(session, "of one")) == 1


def test_overrides_of_one_moment_are_one(any_store: Store) -> None:
    """Who says the same of a look while another's word is not written yet waits, and is then told of that one."""
    one = seen(any_store, "a")
    with ThreadPoolExecutor(1) as pool:
        with any_store.write() as session:
            override(session, one.id, "GO", By("kim", AT, "we know of it"))
            other = pool.submit(overridden, any_store, one.id, "GO", who="dana")
            wait([other], timeout=0.5)  # time enough to write, for one that does not wait
        with pytest.raises(Refused, match=r"^Decision 1 by kim overrode NO-GO to GO already\."):
            other.result()
    assert [row.who for row in said(any_store)] == ["kim"]


def test_a_persons_word_with_what_it_was_on(any_store: Store) -> None:
    """Who, when, why and on which reasons and counts; listed as a decision, in words and as JSON."""
    one = seen(any_store, "a")
    seen(any_store, "b", keys=("rate", "a class", "a new one"), counts={})
    made = overridden(any_store, one.id, "GO")
    assert said(any_store) == (
        Overridden(made.id, made.at, "kim", "we know of it", "GO", "NO-GO", "2026.12", one.keys, one.counts, False),
    )
    assert said(any_store, "2026.13") == ()
    with any_store.read() as session:
        (row,) = decisions(session)
    assert (row.kind, row.release, row.over, row.value) == ("override", "2026.12", "NO-GO", "GO")
    assert decide_text.sentence(row) == "Decision 1: override of release 2026.12: NO-GO to GO."
    assert decide_text.document(row) == {
        "decision": 1, "at": made.at.isoformat(), "who": "kim", "kind": "override", "cluster": None, "other": None,
        "signatures": (), "value": "GO", "why": "we know of it", "undoes": None, "undone_by": None,
        "assignee_changed": False, "assignee": None, "release": "2026.12", "over": "NO-GO",
    }  # fmt: skip


def test_an_override_is_undone_and_restored_and_never_forgotten(any_store: Store) -> None:
    """Undone, it stands no more and is listed still; its undo undone, it stands again, as it was said."""
    one = seen(any_store, "a")
    made = overridden(any_store, one.id, "GO")
    (before,) = said(any_store)
    done = undo(any_store, made.id)
    assert (done.what.id, done.returned, done.elsewhere, done.newcomers) == (made.id, 0, 0, ())
    assert [row.undone for row in said(any_store)] == [True]
    with pytest.raises(Refused, match=rf"Decision 1 was undone by decision {done.decision.id}\."):
        undo(any_store, made.id)
    again = undo(any_store, done.decision.id)
    assert said(any_store) == (before,)
    undo(any_store, again.decision.id)
    assert [row.undone for row in said(any_store)] == [True]
    with any_store.read() as session:
        rows = decisions(session)
    assert [(row.kind, row.undoes, row.undone_by, row.release) for row in rows] == [
        ("override", None, 2, "2026.12"), ("undo", 1, None, "2026.12"), ("undo", 2, 4, "2026.12"),
        ("undo", 3, None, "2026.12"),
    ]  # fmt: skip
    assert [decide_text.what(row) for row in rows[1:]] == ["undo of 1", "undo of 2", "undo of 3"]
    assert looks_of(any_store) == (one,)


def looks_of(store: Store) -> tuple[Seen, ...]:
    with store.read() as session:
        return looks(session, "2026.12")


def test_overrides_are_undone_in_any_order(any_store: Store) -> None:
    """Nothing stands on an override: whichever is taken back, the others are as they were."""
    one = seen(any_store, "a")
    first, second = overridden(any_store, one.id, "GO"), overridden(any_store, one.id, "HOLD")
    third = overridden(any_store, one.id, "GO")
    assert standing(any_store) == [first.id, second.id, third.id]
    gone = undo(any_store, second.id)
    assert standing(any_store) == [first.id, third.id]
    undo(any_store, third.id)
    assert standing(any_store) == [first.id]
    undo(any_store, gone.decision.id)
    assert standing(any_store) == [first.id, second.id]


def test_a_later_look_may_be_overridden_again(any_store: Store) -> None:
    """A word on an earlier look covers what was known then; on what is known now people may say the same again."""
    first = overridden(any_store, seen(any_store, "a").id, "GO")
    later = seen(any_store, "b", keys=("rate", "another"))
    second = overridden(any_store, later.id, "GO", who="dana")
    assert [(row.decision, row.who, row.keys) for row in said(any_store)] == [
        (first.id, "kim", {"rate", "a class"}), (second.id, "dana", {"rate", "another"}),
    ]  # fmt: skip


def test_what_cannot_be_overridden_is_refused_and_kept_nowhere(any_store: Store) -> None:
    """No look, no verdict, no reason, and what is said already; each says what to do, and no row is added."""
    bad, good = seen(any_store, "a"), seen(any_store, "a", release="2026.13", verdict="GO")
    held = seen(any_store, "a", release="2026.14", verdict="HOLD")
    overridden(any_store, bad.id, "GO")
    overridden(any_store, held.id, "GO", who="dana")
    before = kept(any_store)
    refused: tuple[tuple[int, str, str | None, type[Exception], str], ...] = (
        (999, "GO", "why", NoSuchThing, "There is no look 999 at a release. `crashpath review"),
        (bad.id, "MAYBE", "why", Refused, "MAYBE is no verdict. It is one of GO, NO-GO, HOLD."),
        (bad.id, "go", "why", Refused, "go is no verdict."),
        (bad.id, "HOLD", None, Refused, "An override needs a reason. Give it with --why"),
        (bad.id, "HOLD", " \n", Refused, "An override needs a reason."),
        (good.id, "GO", "why", Refused, "The verdict is GO already. An override puts NO-GO or HOLD in its place."),
        (bad.id, "GO", "why", Refused, "Decision 1 by kim overrode NO-GO to GO already. It stands until `crashpath un"),
        (
            held.id,
            "HOLD",
            "why",
            Refused,
            "The verdict is HOLD already, and decision 2 by dana put GO in its place. To",
        ),
    )
    for look, verdict, why, error, words in refused:
        with pytest.raises(error) as raised:
            overridden(any_store, look, verdict, why)
        assert str(raised.value).startswith(words)
        assert kept(any_store) == before, words
    with pytest.raises(Refused, match=r"To have HOLD again, take that one back: `crashpath undo 2`\."):
        overridden(any_store, held.id, "HOLD")
    undo(any_store, 2)
    with pytest.raises(Refused, match=r"^The verdict is HOLD already\. An override puts GO or NO-GO in its place\.$"):
        overridden(any_store, held.id, "HOLD")
    overridden(any_store, held.id, "GO")


def test_no_secret_or_address_of_a_person_is_kept(any_store: Store) -> None:
    """Who overrides and why is stored as logs are: without secrets; of an e-mail address who it is stays."""
    token, address = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567", "kim@mail.corp.io"
    overridden(any_store, seen(any_store, "a").id, "GO", why=f"{address} said {token}", who=address)
    (row,) = said(any_store)
    assert row.who == "kim"
    for secret in (token, address):
        assert secret not in str(kept(any_store))


def test_what_another_version_kept_is_read(any_store: Store) -> None:
    """A look without keys, counts or figures is a look; without a fingerprint it is like no other."""
    one = seen(any_store, "a")
    overridden(any_store, one.id, "GO")
    for state in ({}, {"figures": [1]}, {"keys": None, "counts": None, "failures": None}, None):
        with any_store.write() as session:
            session.execute(update(Review).values(state=state, report={}, policy={}))
            session.execute(update(Decision).values(before={}))
        (found,) = looks_of(any_store)
        assert (found.number, found.failures, found.attempts, found.keys, found.counts) == (1, 0, 0, frozenset(), {})
        (row,) = said(any_store)
        assert (row.verdict, row.over, row.keys, row.counts) == ("GO", "NO-GO", frozenset(), {})
    assert seen(any_store, "a").number == 2
    undo(any_store, undo(any_store, 1).decision.id)
    assert standing(any_store) == [1]


TEMPLATE = 'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 8, in load\n    start()\n{0}\n'
FAILURES = ("OSError: no space left on the device", "KeyError: 'unk_token' is missing in the vocabulary")


def test_clusters_and_nights_do_not_see_it(any_store: Store, tmp_path: Path) -> None:
    """An override and its undo move nobody: no link, no lineage, no new thinking of a night; clusters are decided on
    and undone around it as without it."""
    (tmp_path / "app.log").write_text("\n".join(map(TEMPLATE.format, FAILURES)))
    a_night(any_store, [tmp_path / "app.log"])
    one = seen(any_store, "a")
    with any_store.write() as session:
        before = session.scalar(select(func.count()).select_from(ClusterEvent))
    overridden(any_store, one.id, "GO")
    undo(any_store, undo(any_store, 1).decision.id)
    with any_store.read() as session:
        assert [row.kind for row in holding(session)] == ["override"]
        assert (last(session), links(session).must, links(session).cannot, decided_clusters(session)) == (
            0, frozenset(), frozenset(), frozenset(),
        )  # fmt: skip
        assert session.scalar(select(func.count()).select_from(ClusterEvent)) == before
        assert decisions(session, 1) == ()
    with any_store.write() as session:
        (merged,) = deciding.merge(session, 1, [2], By("dana", AT))
    overridden(any_store, one.id, "HOLD")
    undo(any_store, merged.id)
    with any_store.read() as session:
        assert session.get_one(Cluster, 2).status == "active"
        assert [row.number for row in decisions(session, 1)] == [merged.id, merged.id + 2]
    assert standing(any_store) == [1, merged.id + 1]
    a_night(any_store, [tmp_path / "app.log"])
    assert standing(any_store) == [1, merged.id + 1]


def _renamed(variant: Variant) -> Signed:
    made = sign(variant)
    return Signed(made.id.replace("sig", "other"), made.text, made.tree)


def test_a_rekey_keeps_all_of_it(any_store: Store, tmp_path: Path) -> None:
    """Every look, override and undo is as it was after all signatures got other ids."""
    (tmp_path / "app.log").write_text("\n".join(map(TEMPLATE.format, FAILURES)))
    a_night(any_store, [tmp_path / "app.log"])
    one = seen(any_store, "a")
    overridden(any_store, one.id, "GO")
    undo(any_store, 1)
    overridden(any_store, one.id, "HOLD")
    before = kept(any_store)
    assert len(before["decision"]) == 3
    other = Keying("other+test", _renamed)
    rekey(any_store, other, FakeEncoder(DIMENSION), clock=lambda: datetime.now(UTC))
    with any_store.read() as session:
        assert {name[:5] for name in session.scalars(select(Signature.id))} == {"other"}
    assert kept(any_store) == before
    assert looks_of(any_store) == (one,)
    assert standing(any_store) == [3]
