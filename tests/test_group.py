"""Groups of one input: complete, local, independent of order; the nearest other record."""

from __future__ import annotations

import random

from crashpath.clustering.cohesion import Links
from crashpath.clustering.encoder import FakeEncoder
from crashpath.clustering.group import Grouping, group
from crashpath.clustering.items import Item, make_item
from crashpath.clustering.propose import Linkage

MESSAGES = (
    ("OSError", "[Errno 13] Permission denied: '/cache/a'"),
    ("OSError", "[Errno 13] Permission denied: '/cache/b'"),
    ("OSError", "[Errno 28] No space left on device: '/cache/a'"),
    ("Fail", "Protobuf parsing failed while loading model"),
    ("Fail", "Protobuf parsing failed when loading model"),
    ("KeyError", "tokens"),
)


def items() -> list[Item]:
    return [make_item(f"r{i}", f"{t}: {m}", t, m, signature=f"s{i}") for i, (t, m) in enumerate(MESSAGES)]


def grouped(found: list[Item], **options: object) -> Grouping:
    return group(found, FakeEncoder(), proposer=Linkage(0.35), **options)  # type: ignore[arg-type]


def sets(result: Grouping) -> set[frozenset[str]]:
    names: dict[str, set[str]] = {}
    for record in result.records:
        names.setdefault(record.cluster, set()).add(record.id)
    return {frozenset(members) for members in names.values()}


def test_same_bug_together_other_cause_apart() -> None:
    """Other paths are one group; another errno is another group; nothing is unassigned."""
    assert sets(grouped(items())) == {
        frozenset({"r0", "r1"}),
        frozenset({"r2"}),
        frozenset({"r3", "r4"}),
        frozenset({"r5"}),
    }


def test_ids_are_local_and_in_input_order() -> None:
    """The first record is in G-1, and the next new group is G-2."""
    assert [r.cluster for r in grouped(items()).records] == ["G-1", "G-1", "G-2", "G-3", "G-3", "G-4"]


def test_order_does_not_matter() -> None:
    """Another order gives the same groups and the same nearest records."""
    straight = grouped(items())
    shuffled = items()
    random.Random(5).shuffle(shuffled)
    other = grouped(shuffled)
    assert sets(other) == sets(straight)
    assert {r.id: r.nearest for r in other.records} == {r.id: r.nearest for r in straight.records}


def test_same_signature_is_one_group_and_nearest_first() -> None:
    """Records of one signature are never parted, and are each other's nearest with similarity 1."""
    first, *rest = items()
    twin = make_item("twin", first.text, "OSError", MESSAGES[0][1], signature="s0")
    result = {r.id: r for r in grouped([first, *rest, twin]).records}
    assert result["twin"].cluster == result["r0"].cluster
    assert result["r0"].nearest is not None
    assert (result["r0"].nearest.id, result["r0"].nearest.similarity) == (
        "twin",
        1.0,
    )


def test_nearest_is_there_unless_alone() -> None:
    """Every record of several has a nearest other one; a record that is alone has none."""
    assert all(r.nearest is not None and r.nearest.id != r.id for r in grouped(items()).records)
    (alone,) = grouped(items()[:1]).records
    assert alone.nearest is None
    assert alone.cluster == "G-1"


def test_no_records() -> None:
    """An empty input gives no records."""
    assert grouped([]).records == ()


def test_people_decide() -> None:
    """A cannot-link parts what belongs together, a must-link joins what does not."""
    cannot = Links(cannot=frozenset({frozenset({"r0", "r1"})}))
    assert frozenset({"r0"}) in sets(grouped(items(), links=cannot))
    must = Links(must=frozenset({frozenset({"r2", "r5"})}))
    assert frozenset({"r2", "r5"}) in sets(grouped(items(), links=must))
