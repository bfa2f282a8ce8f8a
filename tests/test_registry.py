"""Join or birth: never hides a new failure, never moves a member, never depends on order."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from crashpath.clustering.cohesion import Links
from crashpath.clustering.encoder import FakeEncoder
from crashpath.clustering.items import make_item
from crashpath.clustering.propose import Linkage
from crashpath.clustering.registry import Assignment, Birth, Join, Limits, Point, State, assign

PROPOSER = Linkage(0.35)


def point(id: str, message: str, kind: str = "Error", cue: str | None = None) -> Point:
    item = make_item(id, f"{kind}: {message}", kind, message, cue=cue, signature=id)
    return Point(item, FakeEncoder().encode([item.text])[0])


def run(state: State, new: Sequence[Point], links: Links | None = None) -> Assignment:
    return assign(state, new, proposer=PROPOSER, links=links or Links())


def homes(state: State) -> dict[str, str]:
    return {member: cluster.id for cluster in state.clusters for member in cluster.members}


DENIED = [point(f"a{i}", f"Permission denied: '/cache/{name}' for the model") for i, name in enumerate("abc")]
FULL = point("b0", "No space left on device while the model is written")


def test_births_get_numbers_in_order_of_ids() -> None:
    """New clusters are numbered by their smallest member, whatever the order of the input."""
    for new in ([*DENIED, FULL], [FULL, *DENIED[::-1]]):
        after = run(State(), new).state
        assert homes(after) == {"a0": "C-0001", "a1": "C-0001", "a2": "C-0001", "b0": "C-0002"}
        assert after.next_number == 3


def test_a_near_one_joins_and_says_why() -> None:
    """A join names the exemplar, the distance under its threshold, and terms that they share."""
    state = run(State(), [*DENIED, FULL]).state
    (decision,) = run(state, [point("z", "Permission denied: '/cache/zz' for the model")]).decisions
    assert isinstance(decision, Join)
    assert decision.cluster == "C-0001"
    assert decision.why.exemplar in {"a0", "a1", "a2"}
    assert decision.why.distance <= decision.why.threshold
    assert "permission" in decision.why.shared


def test_a_new_failure_is_born() -> None:
    """What is far from all is a cluster of its own, and the reason names what it is far from."""
    state = run(State(), DENIED).state
    (decision,) = run(state, [FULL]).decisions
    assert isinstance(decision, Birth)
    assert decision.cluster == "C-0002"
    assert decision.why.distance > decision.why.threshold
    assert decision.why.exemplar is not None


def test_a_contradicting_class_never_joins() -> None:
    """The same words under another class of the root rule are a birth."""
    state = run(State(), [point(f"a{i}", "worker stopped early", cue="oom_host") for i in range(2)]).state
    (decision,) = run(state, [point("z", "worker stopped early", cue="hang")]).decisions
    assert isinstance(decision, Birth)
    assert "contradicts" in decision.why.words


def test_a_cluster_of_one_grows_and_keeps_its_id() -> None:
    """A second of its kind joins a cluster of one, which keeps its number."""
    state = run(State(), [FULL]).state
    after = run(state, [point("b1", "No space left on device while the model is saved")])
    assert homes(after.state) == {"b0": "C-0001", "b1": "C-0001"}
    assert isinstance(after.decisions[0], Join)


def test_two_old_clusters_of_one_are_never_put_together() -> None:
    """Membership once given stays: a newcomer between two joins one of them, and they stay apart."""
    one, two = point("a", "model file broken at the header"), point("b", "model file broken at the footer")
    state = run(State(), [one]).state
    state = run(state, [two], Links(cannot=frozenset({frozenset({"a", "b"})}))).state
    after = run(state, [point("c", "model file broken at the header footer")]).state
    assert homes(after)["a"] != homes(after)["b"]


def test_known_items_are_not_asked_again() -> None:
    """An item that is a member is no new item: nothing changes and nothing is decided."""
    state = run(State(), DENIED).state
    again = run(state, DENIED)
    assert again.decisions == ()
    assert again.state == state


def test_nothing_new() -> None:
    """No new items, no decisions, the same state."""
    assert run(State(), []).state == State()


def test_people_decide() -> None:
    """A cannot-link keeps a near one out; a must-link brings a far one in."""
    state = run(State(), DENIED).state
    near, far = point("z", "Permission denied: '/cache/zz' for the model"), point("y", "No space left on device")
    cannot = Links(cannot=frozenset(frozenset({"z", p.item.id}) for p in DENIED))
    assert isinstance(run(state, [near], cannot).decisions[0], Birth)
    must = Links(must=frozenset(frozenset({"y", p.item.id}) for p in DENIED))
    joined = run(state, [far], must).decisions[0]
    assert isinstance(joined, Join)
    assert joined.cluster == "C-0001"


def test_exemplars_are_bounded() -> None:
    """However many members, at most the stated number of exemplars is kept, and all members are."""
    many = [point(f"m{i:02}", f"cannot open shard {i} of the model") for i in range(30)]
    after = assign(State(), many, proposer=PROPOSER, limits=Limits(exemplars=4)).state
    (cluster,) = after.clusters
    assert len(cluster.exemplars) == 4
    assert len(cluster.members) == 30


WORDS = ("memory", "disk", "denied", "timeout", "header", "broken", "device", "missing")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), min_size=1, max_size=12), st.integers(0, 99))
def test_order_never_matters_and_members_never_move(texts: list[list[str]], seed: int) -> None:
    """Any split into two nights, in any order within a night: same homes; the first night's homes stand."""
    points = [point(f"p{i:02}", " ".join(words)) for i, words in enumerate(texts)]
    half = len(points) // 2
    first = run(State(), points[:half]).state
    both = run(first, points[half:]).state
    shuffled = [points[:half], points[half:]]
    for night in shuffled:
        random.Random(seed).shuffle(night)
    other = run(run(State(), shuffled[0]).state, shuffled[1]).state
    assert homes(other) == homes(both)
    assert homes(first).items() <= homes(both).items()
    assert set(homes(both)) == {p.item.id for p in points}
