"""Grouping part by part: the same groups as over all pairs at once, whatever the strips, and nobody's word is lost."""

from __future__ import annotations

import random

import numpy as np
import pytest

from crashpath.clustering import affinity, blocks
from crashpath.clustering.affinity import CONFLICT, Distances, square
from crashpath.clustering.blocks import Block, Seen, group_blocks, near_blocks
from crashpath.clustering.cohesion import NO_LINKS, TAU, Links, connected, stand, stand_in_parts
from crashpath.clustering.encoder import FakeEncoder
from crashpath.clustering.items import make_item
from crashpath.clustering.propose import Linkage, Proposal
from crashpath.clustering.state import LIMITS, Cluster, Point, space_of

WORDS = (
    "tensor", "arena", "exhausted", "planner", "decoder", "graph", "lease", "replica", "quota", "batch", "tenant",
    "socket", "peer", "disk", "shard",
)  # fmt: skip


def point(id: str, message: str) -> Point:
    item = make_item(id, f"Error: {message}", "Error", message, signature=id)
    return Point(item, FakeEncoder().encode([item.text])[0])


def block(number: int, *points: Point, loose: bool = True, owned: bool = False, hidden: tuple[str, ...] = ()) -> Block:
    members = tuple(sorted((*(one.item.id for one in points), *hidden)))
    cluster = Cluster(f"C-{number:04d}", members, points, 0.1, None)
    return Block(Seen(cluster, points, 1, owned=owned), points, members, 1, True, loose)


def some_blocks(seed: int, count: int) -> list[Block]:
    """Blocks of one to three points around few messages; noise, so that no two distances tie."""
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    out = []
    for number in range(1, count + 1):
        words = rng.sample(WORDS[: rng.choice((5, 8, 15))], 4)
        points = []
        for i in range(rng.choice((1, 1, 3))):
            plain = point(f"s{number:03}-{i}", " ".join([*words, *rng.sample(WORDS, i)]))
            moved = plain.vector + noise.normal(0, 0.01, plain.vector.shape).astype(np.float32)
            points.append(Point(plain.item, moved / np.float32(np.linalg.norm(moved))))
        out.append(block(number, *points, loose=rng.random() < 0.7, owned=rng.random() < 0.2))
    return out


@pytest.mark.parametrize("seed", range(8))
def test_parts_give_the_groups_of_the_whole(seed: int) -> None:
    """Rule: where no pair of two parts is within τ, standing part by part is standing at once."""
    rng = np.random.default_rng(seed)
    places = rng.random((60, 2))
    gaps: Distances = np.sqrt(((places[:, None] - places[None, :]) ** 2).sum(axis=2))  # no two distances are the same
    groups = tuple(tuple(range(start, start + 6)) for start in range(0, 42, 6))
    proposal = Proposal(groups, tuple(range(42, 60)), 60, 2, "test")
    parts = connected(60, ((int(i), int(j)) for i, j in np.argwhere(gaps <= 0.1)))
    assert len(parts) > 5
    found = stand_in_parts(parts, lambda rows: gaps[np.ix_(list(rows), list(rows))], proposal, tau=0.1)
    assert found == stand(gaps, proposal, tau=0.1)


def at_once(given: list[Block], links: Links) -> tuple[tuple[int, ...], ...]:
    """The groups of blocks over all pairs of points, as plainly as it can be said."""
    gaps = np.zeros((len(given), len(given)))
    for i, one in enumerate(given):
        for j, other in enumerate(given):
            both = square(space_of([*one.points, *other.points]))[: len(one.points), len(one.points) :]
            told = any(set(pair) & set(one.members) and set(pair) & set(other.members) for pair in links.cannot)
            apart = (not one.loose and not other.loose) or (one.seen.owned and other.seen.owned) or told
            gaps[i, j] = 0.0 if i == j else CONFLICT if apart else both.max()
    middles = [one.points[int(square(space_of(one.points)).sum(axis=1).argmin())].vector for one in given]
    return stand(gaps, Linkage(0.35)(np.stack(middles)), tau=TAU)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cells", [1, 97, 2_000_000])
def test_strips_change_no_group(seed: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: blocks are grouped as over all pairs at once, however few pairs are worked out at a time."""
    given = some_blocks(seed, 30)
    links = Links(cannot=frozenset({frozenset((given[0].members[0], given[1].members[0]))}))
    expected = at_once(given, links)
    assert any(len(rows) > 1 for rows in expected)
    for module in (affinity, blocks):
        monkeypatch.setattr(module, "CELLS", cells)
    assert group_blocks(given, links, LIMITS, Linkage(0.35))[0] == expected


@pytest.mark.parametrize("cells", [1, 2_000_000])
def test_only_what_a_loose_block_is_near_is_looked_at(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a block that is not loose comes in where a loose point is within τ of all of its points."""
    monkeypatch.setattr(affinity, "CELLS", cells)
    near, far = "tensor arena exhausted planner", "socket peer disk shard"
    loose = block(1, point("a", near))
    like = block(2, point("b", near), point("c", f"{near} graph"), loose=False)
    half = block(3, point("d", near), point("e", far), loose=False)
    other = block(4, point("f", far), loose=False)
    assert near_blocks([loose, like, half, other], LIMITS) == [loose, like]
    assert near_blocks([like, half], LIMITS) == []


def test_what_people_told_apart_stays_apart_though_it_is_not_shown() -> None:
    """Rule: a cannot-link holds for the whole cluster of a member, also one that does not show that member."""
    message = "tensor arena exhausted planner"
    large = block(1, point("a", message), loose=False, hidden=("told",))
    single = block(2, point("b", message))
    told = Links(cannot=frozenset({frozenset(("told", "b"))}))
    assert group_blocks([large, single], NO_LINKS, LIMITS, Linkage(0.35))[0] == ((0, 1),)
    assert group_blocks([large, single], told, LIMITS, Linkage(0.35))[0] == ((0,), (1,))
