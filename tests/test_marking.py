"""What people say of how a cluster stands: resolved, muted, a ticket, a note; that it holds, and is undone exactly."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import select

from crashpath.clustering.encoder import FakeEncoder
from crashpath.clustering.recluster_step import Reclusterer
from crashpath.dashboard.engines import classifier
from crashpath.dashboard.testing import DIMENSION
from crashpath.ingest import deciding, marking, undoing
from crashpath.ingest.clusters import create_cluster
from crashpath.ingest.decisions import By, decisions, last
from crashpath.ingest.details import show_cluster
from crashpath.ingest.lineage import owned_clusters
from crashpath.ingest.model import Part
from crashpath.ingest.nights import start_night
from crashpath.ingest.said import link
from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import NoSuchThing, Refused
from crashpath.ingest.tables import Cluster, Signature
from crashpath.ingest.tables_evidence import Decision
from crashpath.ingest.trees import tree_json

TRACE = (
    'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 8, in load\n    start(path)\nOSError: {}\n'
)
MESSAGES = ("model file has no header at all", "cannot bind the socket to its port", "the bridge fell into the river")
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = datetime(2026, 6, 1, tzinfo=UTC)
TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
LINK = "https://tracker.example.org/browse/ML-12?tab=all#c3"
FIELDS = ("name", "assignee", "resolved_in", "muted_until", "ticket", "status", "merged_into")


@pytest.fixture
def three(any_store: Store) -> Store:
    """A store with three clusters of one signature."""
    with any_store.write() as session:
        night = start_night(session, versions={}, now=AT)
        for number, text in enumerate(MESSAGES, start=1):
            create_cluster(
                session, number, label=text, encoder_id="e", failure_class="unclassified", probability=None,
                class_by="classifier", night_id=night, now=AT,
            )  # fmt: skip
            session.add(
                Signature(
                    id=f"sig2-{number}", algorithm="sig2", text=text, tree=tree_json(Part("signature", "")),
                    root_type="OSError", root_message=text, cue_class=None, first_seen=AT, last_seen=AT, night_id=night,
                    cluster_id=number, joined_at=AT, joined_by="birth", why=None, is_exemplar=True, map_x=None,
                    map_y=None,
                )
            )  # fmt: skip
    return any_store


def decide(store: Store, what: Callable[..., Any], *arguments: Any, at: datetime = AT) -> Any:
    with store.write() as session:
        return what(session, *arguments, By("dana", at))


def stands(store: Store) -> dict[int, tuple[Any, ...]]:
    with store.read() as session:
        return {row.id: tuple(getattr(row, one) for one in FIELDS) for row in session.scalars(select(Cluster))}


def of(store: Store, number: int, field: str) -> Any:
    return stands(store)[number][FIELDS.index(field)]


CHANGES = [
    (marking.resolve, "resolved_in", "2.0", "2.0", "", "2.0"),
    (marking.mute, "muted_until", DAY, DAY, None, DAY.isoformat()),
    (marking.ticket, "ticket", LINK, LINK, "", LINK),
]


@pytest.mark.parametrize(("what", "field", "given", "stored", "none", "value"), CHANGES)
def test_said_taken_away_and_undone(
    three: Store, what: Callable[..., Any], field: str, given: Any, stored: Any, none: Any, value: str
) -> None:
    """Each is stored and listed; said again it is not recorded; taken away it is gone; and undos give all back."""
    before = stands(three)
    made = decide(three, what, 1, given)
    assert of(three, 1, field) == stored
    assert decide(three, what, 1, given) is None
    assert decide(three, what, 2, none) is None
    gone = decide(three, what, 1, none)
    assert stands(three) == before
    with three.read() as session:
        rows = decisions(session, 1)
        assert [(row.number, row.kind, row.value) for row in rows] == [
            (made.id, made.kind, value), (gone.id, made.kind, None),
        ]  # fmt: skip
        assert last(session) == 0  # nobody's members changed: a night need not think again
    decide(three, undoing.undo, gone.id)
    assert of(three, 1, field) == stored
    undone = decide(three, undoing.undo, made.id).decision
    assert stands(three) == before
    decide(three, undoing.undo, undone.id)
    assert of(three, 1, field) == stored


@pytest.mark.parametrize(("what", "field", "given", "stored", "none", "value"), CHANGES)
def test_lineage_tells(
    three: Store, what: Callable[..., Any], field: str, given: Any, stored: Any, none: Any, value: str
) -> None:
    """The lineage of the cluster says what was said, and by which decision."""
    made = decide(three, what, 1, given)
    with three.read() as session:
        (event,) = [event for event in show_cluster(session, "C-1").events if event.kind == "decided"]
    assert event.detail == {"decision": made.id, field: value}


def test_a_note_is_kept_with_the_decision(three: Store) -> None:
    """It changes no column; the same one twice is one; an undo strikes it out, and then it may be written again."""
    before = stands(three)
    made = decide(three, marking.note, 1, "  seen on one host only ")
    assert made.value == "seen on one host only"
    assert decide(three, marking.note, 1, "seen on one host only") is None
    assert decide(three, marking.note, 2, "seen on one host only") is not None
    assert stands(three) == before
    decide(three, undoing.undo, made.id)
    with three.read() as session:
        assert [(row.kind, row.undone_by) for row in decisions(session, 1)] == [("note", 3), ("undo", None)]
    assert decide(three, marking.note, 1, "seen on one host only") is not None


def test_a_moment_of_any_zone_is_utc(three: Store) -> None:
    """A mute keeps its moment, whatever zone it was said in, and so does what an undo gives back."""
    there = datetime(2026, 6, 1, 2, 30, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    decide(three, marking.mute, 1, there)
    assert of(three, 1, "muted_until") == there
    second = decide(three, marking.mute, 1, DAY)
    decide(three, undoing.undo, second.id)
    assert of(three, 1, "muted_until") == there
    assert of(three, 1, "muted_until").utcoffset() == timedelta(0)


def test_an_expired_mute_can_be_taken_away(three: Store) -> None:
    """A mute of the past stands in the row until somebody takes it away; muting into the past is refused."""
    decide(three, marking.mute, 1, DAY)
    after = DAY + timedelta(days=1)
    with pytest.raises(Refused, match=r"2026-06-01 00:00 UTC is past\. Mute it until"):
        decide(three, marking.mute, 2, DAY, at=after)
    assert decide(three, marking.mute, 1, None, at=after) is not None
    assert of(three, 1, "muted_until") is None


def test_releases_are_spelled_as_those_of_crashes(three: Store) -> None:
    """A version that looks like an address stays; a secret does not; `unknown` is no release."""
    decide(three, marking.resolve, 1, " 1.2.3.4 ")
    assert of(three, 1, "resolved_in") == "1.2.3.4"
    decide(three, marking.resolve, 1, f"build of {TOKEN}")
    assert TOKEN not in of(three, 1, "resolved_in")
    with pytest.raises(Refused, match="unknown is no release"):
        decide(three, marking.resolve, 1, "unknown")


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("https://jira.corp.io:8443/browse/X-1", "https://jira.corp.io:8443/browse/X-1"),
        ("HTTP://10.1.2.3/t/4", "http://10.1.2.3/t/4"),
        (f"https://git.corp.io/x?token={TOKEN}&y=1", "https://git.corp.io/x?token=<secret>&y=1"),
        ("https://git.corp.io/x?of=kim@corp.io", "https://git.corp.io/x?of=<email>"),
        (LINK, LINK),
    ],
)
def test_a_link_keeps_its_host_and_no_secret(given: str, stored: str) -> None:
    """Hosts are replaced in logs, and a link leads nowhere without its own; what is behind it is cleaned as all is."""
    assert link(given) == stored
    assert link(stored) == stored


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)", "data:text/html,x", "ftp://example.org", "example.org/1", "//example.org/1",
        "https://kim:pw12345@example.org/", "https://example.org/a b", "https://", f"https://{TOKEN}.example.org/1",
        "https://example.org/" + "x" * 2000, "https://exämple.org/", "https://example.org/\x00", "https://[::1/",
    ],
)  # fmt: skip
def test_other_links_are_refused(address: str) -> None:
    """Only http and https, without a password or a secret in the host; the refusal does not repeat it."""
    with pytest.raises(ValueError, match=r"^its? ") as raised:
        link(address)
    assert not {"pw12345", TOKEN, "alert", "x" * 9} & set(re.split(r"\W", str(raised.value)))
    assert raised.value.__cause__ is None


def test_a_link_that_is_none_changes_nothing(three: Store) -> None:
    """The store refuses it, in a sentence with advice."""
    with pytest.raises(Refused, match=r"This link cannot be kept: it is no web address .*\. Give the page's address"):
        decide(three, marking.ticket, 1, "javascript:alert(1)")
    assert of(three, 1, "ticket") is None


def test_a_secret_in_a_note_is_not_stored(three: Store) -> None:
    """Notes are cleaned as every other text; one that holds nothing is refused."""
    decide(three, marking.note, 1, f"token {TOKEN} of kim@mail.corp.io")
    with three.read() as session:
        stored = session.scalars(select(Decision)).one()
        events = show_cluster(session, "C-1").events
    assert stored.value == "token <secret> of <email>"
    assert not any(TOKEN in str(event.detail) or "kim@" in str(event.detail) for event in events)
    with pytest.raises(Refused, match="nothing in this note"):
        decide(three, marking.note, 1, " \n ")


def test_only_of_clusters_that_are_there(three: Store) -> None:
    """A cluster that nobody knows, and one that went into another, are refused; nothing is changed."""
    decide(three, deciding.merge, 1, [2])
    before = stands(three)
    for what, given in ((marking.resolve, "2"), (marking.mute, DAY), (marking.ticket, LINK), (marking.note, "x")):
        with pytest.raises(NoSuchThing, match="no cluster C-0099"):
            decide(three, what, 99, given)
        with pytest.raises(Refused, match="C-0002 went into C-0001"):
            decide(three, what, 2, given)
    assert stands(three) == before


def test_a_merge_takes_along_what_the_target_has_not(three: Store) -> None:
    """Where it was resolved and its ticket go along where the target has none, a mute does not; undone, all is back."""
    decide(three, marking.resolve, 2, "2.0")
    decide(three, marking.ticket, 2, LINK)
    decide(three, marking.mute, 2, DAY)
    decide(three, marking.resolve, 3, "3.0")
    before = stands(three)
    first, second = decide(three, deciding.merge, 1, [2, 3])
    assert [of(three, 1, one) for one in ("resolved_in", "ticket", "muted_until")] == ["2.0", LINK, None]
    later = decide(three, marking.resolve, 1, "4.0")
    with pytest.raises(Refused, match=rf"Decision {later.id} \(resolve\) stands on decision {first.id}\."):
        decide(three, undoing.undo, first.id)
    for one in (later, second, first):
        decide(three, undoing.undo, one.id)
    assert stands(three) == before


def test_a_target_keeps_what_was_said_of_it(three: Store) -> None:
    """Resolved, muted and ticketed, it takes in another: its own words stand."""
    decide(three, marking.resolve, 1, "1.0")
    decide(three, marking.mute, 1, DAY)
    decide(three, marking.resolve, 2, "2.0")
    decide(three, deciding.merge, 1, [2])
    assert (of(three, 1, "resolved_in"), of(three, 1, "muted_until")) == ("1.0", DAY)


def test_a_part_that_people_split_off_begins_anew(three: Store) -> None:
    """People say that it is another failure: no word on how the whole stands holds for it; undone, all is back."""
    decide(three, deciding.merge, 1, [2])
    for what, given in ((marking.resolve, "2.0"), (marking.mute, DAY), (marking.ticket, LINK)):
        decide(three, what, 1, given)
    before = stands(three)
    with three.read() as session:
        one = session.scalars(select(Signature.id).where(Signature.cluster_id == 1)).first()
    made = decide(three, deciding.split, 1, [one])
    assert stands(three)[1] == before[1]
    assert stands(three)[made.other_id][:5] == (None, None, None, None, None)
    decide(three, undoing.undo, made.id)
    assert {number: stands(three)[number] for number in before} == before


def test_it_holds_for_what_a_reclustering_cuts_out(three: Store) -> None:
    """A machine's cut makes no failure come back, or heard again: resolved and muted hold for the part. An undo of the
    decision takes it from both, an undo of that gives it to both; what people said of the part since stays."""
    with three.write() as session:
        for row in session.scalars(select(Signature)):
            row.cluster_id = 1  # as no night would
    resolved = decide(three, marking.resolve, 1, "2.0")
    muted = decide(three, marking.mute, 1, DAY)
    before = stands(three)
    engine = Reclusterer(lambda: FakeEncoder(DIMENSION), classifier)
    done = engine.run(three, None, "by hand", clock=lambda: AT, fence=lambda session: None)
    assert done is not None
    parts = sorted(set(stands(three)) - set(before))
    assert len(parts) == 2
    assert {(of(three, one, "resolved_in"), of(three, one, "muted_until")) for one in (1, *parts)} == {("2.0", DAY)}
    undone = decide(three, undoing.undo, resolved.id).decision
    assert {of(three, one, "resolved_in") for one in (1, *parts)} == {None}
    decide(three, undoing.undo, undone.id)
    assert {of(three, one, "resolved_in") for one in (1, *parts)} == {"2.0"}
    decide(three, marking.mute, parts[0], DAY + timedelta(days=1))
    decide(three, undoing.undo, muted.id)
    assert [of(three, one, "muted_until") for one in (1, *parts)] == [None, DAY + timedelta(days=1), None]


def test_what_people_marked_is_theirs(three: Store) -> None:
    """A re-clustering lets no marked cluster end in another; a note is a mark until it is taken back."""
    decide(three, marking.ticket, 1, LINK)
    made = decide(three, marking.note, 2, "known")
    with three.read() as session:
        assert owned_clusters(session) == {1, 2}
    decide(three, undoing.undo, made.id)
    with three.read() as session:
        assert owned_clusters(session) == {1}
