"""Proposals on real UMAP and HDBSCAN, and the inputs that usually break them."""

from __future__ import annotations

import numpy as np
import pytest

from crashpath.clustering.affinity import cosine
from crashpath.clustering.cohesion import stand
from crashpath.clustering.encoder import FakeEncoder, Vectors, rounded
from crashpath.clustering.propose import Linkage, Proposal, UmapHdbscan

PROPOSE = UmapHdbscan()


def blobs(groups: int, size: int, dim: int = 32) -> Vectors:
    """``groups`` tight bundles of unit vectors."""
    rng = np.random.default_rng(3)
    centres = np.repeat(rng.normal(size=(groups, dim)), size, axis=0)
    vectors = centres + 0.05 * rng.normal(size=centres.shape)
    return rounded((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))


def rows(proposal: Proposal) -> list[int]:
    return sorted([row for group in proposal.groups for row in group] + list(proposal.noise))


def test_no_point() -> None:
    """Nothing in, nothing out, and no method is claimed to have run."""
    assert PROPOSE(np.zeros((0, 8), dtype=np.float32)) == Proposal((), (), 0, 0, "none")


def test_one_point() -> None:
    """One point is noise: a group of its own."""
    assert PROPOSE(FakeEncoder().encode(["alone"])) == Proposal((), (0,), 1, 0, "none")


def test_all_duplicates() -> None:
    """Any number of equal vectors is one group, never noise."""
    proposal = PROPOSE(FakeEncoder().encode(["the same"] * 40))
    assert proposal.groups == (tuple(range(40)),)
    assert proposal.noise == ()


def test_fewer_points_than_neighbours() -> None:
    """Too few points for UMAP: complete linkage proposes, says so, and finds the obvious pair."""
    proposal = PROPOSE(FakeEncoder().encode(["disk full", "disk full now", "segmentation fault in worker"]))
    assert proposal.method == "complete-linkage"
    assert proposal.components == 0
    assert proposal.groups == ((0, 1),)
    assert proposal.noise == (2,)


def test_umap_and_hdbscan_find_bundles() -> None:
    """Every row is proposed once, no two bundles are mixed, a second run agrees, and cohesion finds all whole."""
    vectors = blobs(12, 4)
    proposal = PROPOSE(vectors)
    assert proposal.method == "umap+hdbscan"
    assert (proposal.points, proposal.components) == (48, 5)
    assert rows(proposal) == list(range(48))
    assert all(len({row // 4 for row in group}) == 1 for group in proposal.groups)
    assert len(proposal.groups) >= 12
    assert PROPOSE(vectors) == proposal
    whole = tuple(tuple(range(4 * k, 4 * k + 4)) for k in range(12))
    assert stand(cosine(vectors, vectors), proposal, tau=0.3) == whole


@pytest.mark.parametrize("count", [15, 16, 18])
def test_just_enough_points_for_umap(count: int) -> None:
    """At the border where UMAP starts, far points that are alike in nothing break nothing."""
    assert rows(PROPOSE(blobs(count, 1))) == list(range(count))


def test_linkage_threshold_is_the_diameter() -> None:
    """No pair of a group is further apart than the threshold."""
    vectors = blobs(5, 4)
    for group in Linkage(0.1)(vectors).groups:
        assert (1 - vectors[list(group)] @ vectors[list(group)].T).max() <= 0.1 + 1e-4


def test_cohesion_cuts_what_was_lumped_and_mends_what_was_split() -> None:
    """A lumped group is cut at τ; halves and noise that belong together are put together."""
    gaps = np.full((5, 5), 0.9)
    gaps[:2, :2] = gaps[2:, 2:] = 0.1
    np.fill_diagonal(gaps, 0.0)
    lumped = Proposal(((0, 1, 2, 3, 4),), (), 5, 5, "umap+hdbscan")
    split = Proposal(((2, 3),), (0, 1, 4), 5, 5, "umap+hdbscan")
    assert stand(gaps, lumped, tau=0.3) == stand(gaps, split, tau=0.3) == ((0, 1), (2, 3, 4))
