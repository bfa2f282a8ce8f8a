"""Join or birth: never hides a new failure, never moves a member, never depends on order."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from crashpath.clustering.affinity import Distances, Space, square
from crashpath.clustering.cohesion import Links, linked, stand, together
from crashpath.clustering.encoder import FakeEncoder
from crashpath.clustering.items import make_item
from crashpath.clustering.propose import Linkage, Proposal
from crashpath.clustering.registry import Assignment, Birth, Cluster, Join, Limits, Point, State, assign
from crashpath.clustering.state import space_of

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


LIKE_DENIED = point("x", "Permission denied: '/cache/zz' for the model")
LIKE_FULL = point("y", "No space left on device while the model is saved")


def merged(exemplars: Sequence[Point]) -> tuple[State, Links]:
    """A cluster that people merged of two, each given by its exemplars, and the links that it gives."""
    links = Links(must=frozenset(frozenset({p.item.id, FULL.item.id}) for p in DENIED))
    ids = tuple(sorted(p.item.id for p in exemplars))
    return State((Cluster("C-0001", ids, tuple(exemplars), 0.1, None),), 2), links


def test_a_merged_cluster_takes_what_is_like_either_side() -> None:
    """In a cluster that people merged, an item is judged by the family of its nearest exemplar, even of one."""
    state, links = merged([*DENIED, FULL])
    after = run(state, [LIKE_DENIED, LIKE_FULL], links)
    assert {d.item: (type(d), d.cluster) for d in after.decisions} == {"x": (Join, "C-0001"), "y": (Join, "C-0001")}
    assert all("people merged" in d.why.words for d in after.decisions)
    assert isinstance(run(state, [LIKE_FULL], None).decisions[0], Birth)  # without the links it is far from the rest


def test_a_merged_cluster_hides_no_new_failure() -> None:
    """What is like neither side is a birth, however wide the cluster is; and its stored spread stays that of a side."""
    state, links = merged([*DENIED, FULL])
    (decision,) = run(state, [point("z", "tokenizer vocabulary is broken at byte nine")], links).decisions
    assert isinstance(decision, Birth)
    assert run(state, [LIKE_DENIED, LIKE_FULL], links).state.clusters[0].spread <= Limits().tau


def test_the_nearer_part_of_a_split_takes_it() -> None:
    """Of clusters told apart, the one with the nearest exemplar takes the item, even if that is a cluster of one and
    the other one would do; where the nearer part may not take it, the other does not either."""
    left = [point("a0", "worker stopped early on host one"), point("a1", "worker stopped early on host one again")]
    right = point("b0", "worker stopped early on host two")
    clusters = (
        Cluster("C-0001", ("a0", "a1"), tuple(left), 0.2, None),
        Cluster("C-0002", ("b0",), (right,), 0.0, None),
    )
    links = Links(cannot=frozenset(frozenset({p.item.id, "b0"}) for p in left))
    like_right, like_left = (
        point("x", "worker stopped early on host two now"),
        point("y", "worker stopped early on one"),
    )
    after = run(State(clusters, 3), [like_right, like_left], links)
    assert homes(after.state)["x"] == "C-0002"
    assert homes(after.state)["y"] == "C-0001"
    barred = Links(cannot=links.cannot | {frozenset({"x", "b0"})})
    assert homes(run(State(clusters, 3), [like_right], barred).state)["x"] == "C-0003"


def test_decided_groups_stand_together_and_apart() -> None:
    """Families that people merged are each cohesive and one group; a cannot-link parts, and outweighs a must-link."""
    points = [*DENIED, FULL, LIKE_FULL]
    space = space_of(points)
    noise = Proposal((), tuple(range(5)), 5, 0, "none")
    must = Links(must=frozenset({frozenset({"a0", "b0"})}))

    def stand_decided(space: Space, gaps: Distances, proposal: Proposal, links: Links) -> tuple[tuple[int, ...], ...]:
        apart = linked(space, gaps, Links(cannot=links.cannot))
        return together(space, stand(apart, proposal), links)

    assert stand_decided(space, square(space), noise, Links()) == ((0, 1, 2), (3, 4))
    assert stand_decided(space, square(space), noise, must) == ((0, 1, 2, 3, 4),)
    both = Links(must.must, frozenset({frozenset({"a1", "y"})}))
    assert stand_decided(space, square(space), noise, both) == ((0, 1, 2), (3, 4))
    cannot = Links(cannot=frozenset({frozenset({"b0", "y"})}))
    assert stand_decided(space, square(space), noise, cannot) == ((0, 1, 2), (3,), (4,))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99))
def test_order_never_matters_with_links(seed: int) -> None:
    """With merged and split clusters as well, the order of the new items changes no decision."""
    state, links = merged([*DENIED, FULL])
    new = [LIKE_DENIED, LIKE_FULL, *(point(f"n{i}", f"{word} of the model is {word}") for i, word in enumerate(WORDS))]
    shuffled = list(new)
    random.Random(seed).shuffle(shuffled)
    assert run(state, shuffled, links).decisions == run(state, new, links).decisions
