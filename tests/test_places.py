"""The map: what is alike lies together, places last, and nights give what is new a place."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from crashpath.clustering.encoder import FakeEncoder, Vectors
from crashpath.clustering.map_step import Mapped, Mapper
from crashpath.clustering.places import FEWEST, Places, enough, lay_out, parted, put
from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.dashboard.summary import NightSummary
from crashpath.dashboard.testing import light_clusterer
from crashpath.ingest.clusters import create_cluster
from crashpath.ingest.embeddings import save_embeddings, tie_encoder
from crashpath.ingest.nights import finish_night, nights, start_night
from crashpath.ingest.places import laid_out, placed_signatures
from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import LeaseLost
from crashpath.ingest.tables import Signature
from crashpath.ingest.testing import EPOCH

NAMES = (
    "Alpha", "Bravo", "Charlie", "Delta", "Echo", "Foxtrot", "Golf", "Hotel", "India", "Juliett", "Kilo", "Lima",
    "Mike", "November", "Oscar", "Papa", "Quebec", "Romeo", "Sierra", "Tango",
)  # fmt: skip
WORDS = ("cuda", "disk", "tokenizer", "shape", "socket", "driver")


def texts(groups: int, each: int, first: int = 0) -> list[str]:
    """Texts of some groups: six words that a group's have in common, one of its own each."""
    return [
        f"{' '.join(f'{WORDS[g % len(WORDS)]}{g}{i}' for i in range(6))} w{n}"
        for g in range(groups)
        for n in range(first, first + each)
    ]


def encoded(some: list[str]) -> Vectors:
    return FakeEncoder().encode(some)


def silent(_stage: str) -> None:
    """Say nothing."""


def held(_session: Session) -> None:
    """The lease is held."""


def fill(store: Store, some: list[str], *, encoder: str = "fake", vectors: bool = True) -> None:
    """Store signatures with these texts, in one cluster, as a night leaves them before the map."""
    ids = {text: f"sig2-{blake2b(text.encode(), digest_size=8).hexdigest()}" for text in some}
    with store.write() as session:
        night = start_night(session, versions={}, now=EPOCH)
        if not session.scalar(select(func.count()).select_from(Signature)):
            tie_encoder(session, encoder)
            create_cluster(
                session, 1, label="x", encoder_id=encoder, failure_class="hang", probability=None,
                class_by="classifier", night_id=night, now=EPOCH,
            )  # fmt: skip
        for text in some:
            session.add(
                Signature(
                    id=ids[text], algorithm="sig2", text=text, tree={}, root_type="E",
                    root_message=text, cue_class=None, first_seen=EPOCH, last_seen=EPOCH, night_id=night, cluster_id=1,
                    joined_at=EPOCH, joined_by="birth", why=None, is_exemplar=True, map_x=None, map_y=None,
                )
            )  # fmt: skip
        if vectors:
            save_embeddings(session, encoder, dict(zip(some, encoded(some), strict=True)))


def remember(store: Store, done: Mapped | None) -> None:
    """Keep with the last night what it did, as a night does."""
    with store.write() as session:
        night = start_night(session, versions={}, now=EPOCH)
        finish_night(
            session, night, "complete", counts={"map": done.document() if done else None}, seconds={}, now=EPOCH
        )


def places_of(store: Store) -> dict[str, tuple[float | None, float | None]]:
    with store.read() as session:
        return {one.text: (one.x, one.y) for one in placed_signatures(session)}


@pytest.fixture(scope="module")
def laid() -> tuple[Vectors, Places]:
    """Four groups of twelve, laid out."""
    vectors = encoded(texts(4, 12))
    return vectors, lay_out(vectors)


def spread(places: Places, groups: int) -> float:
    """How far members lie from the middle of their group, over how far the middles are apart."""
    parts = places.reshape(groups, -1, 2)
    middles = parts.mean(axis=1)
    within = float(np.linalg.norm(parts - middles[:, None], axis=2).mean())
    gaps = np.linalg.norm(middles[:, None] - middles[None], axis=2)
    return within / float(gaps[np.triu_indices(groups, 1)].min())


def test_what_is_alike_lies_together(laid: tuple[Vectors, Places]) -> None:
    """Rule: groups of like texts are groups on the map, further apart than they are wide."""
    assert spread(laid[1], 4) < 0.5


def test_the_same_input_gives_the_same_map(laid: tuple[Vectors, Places]) -> None:
    """Rule: the seed is fixed."""
    assert np.array_equal(lay_out(laid[0]), laid[1])


def test_a_new_map_looks_like_the_old_one(laid: tuple[Vectors, Places]) -> None:
    """Rule: laid out anew from where things lay, with a quarter more, things lie about where they lay."""
    vectors, old = laid
    more = encoded(texts(4, 15))
    rows = [g * 15 + n for g in range(4) for n in range(12)]
    assert np.allclose(more[rows], vectors)
    start = np.empty((60, 2))
    start[rows] = old
    others = [row for row in range(60) if row not in rows]
    start[others] = put(more[others], vectors, old)
    new = lay_out(more, start)[rows]
    middles = [one.reshape(4, -1, 2).mean(axis=1) for one in (old, new)]
    around = [(one - one.mean(axis=0)).ravel() for one in middles]
    assert np.corrcoef(*around)[0, 1] > 0.8


def test_a_new_one_is_put_beside_its_like(laid: tuple[Vectors, Places]) -> None:
    """Rule: without laying out anything, a new text of a group lies in that group."""
    vectors, places = laid
    new = put(encoded(texts(4, 1, first=40)), vectors, places)
    middles = places.reshape(4, -1, 2).mean(axis=1)
    nearest = np.linalg.norm(new[:, None] - middles[None], axis=2).argmin(axis=1)
    assert nearest.tolist() == [0, 1, 2, 3]


def test_a_copy_is_put_where_the_other_is(laid: tuple[Vectors, Places]) -> None:
    """Rule: of the same vector, the place is the same but for a gap that parts them."""
    vectors, places = laid
    assert np.abs(put(vectors[:3], vectors, places) - places[:3]).max() < 1e-3 * np.ptp(places)


def test_copies_are_parted_a_little_and_the_rest_stays() -> None:
    """Rule: each of several at one place can be pointed at; whoever is alone there does not move."""
    places = np.array([[0.0, 0.0], [10.0, 10.0], [0.0, 0.0], [0.0, 0.0]])
    out = parted(places)
    assert len(np.unique(out.round(6), axis=0)) == 4
    assert np.array_equal(out[1], places[1])
    assert np.linalg.norm(out - places, axis=1).max() < 0.2
    assert parted(places[:0]).shape == (0, 2)
    assert np.array_equal(parted(places[:1]), places[:1])


def test_copies_alone_make_no_map() -> None:
    """Rule: a map needs different vectors; a thousand copies of a few are too few."""
    assert not enough(np.repeat(encoded(texts(2, 3)), 50, axis=0))
    assert enough(encoded(texts(3, FEWEST)))


def test_the_fewest_make_a_map() -> None:
    """Rule: the smallest number that is said to be enough is."""
    assert np.isfinite(lay_out(encoded(texts(1, FEWEST)))).all()


def test_a_first_map_places_all_and_the_next_night_only_what_is_new(any_store: Store) -> None:
    """Rule: the map is laid out once; later a few new ones are put into it, and nothing else moves."""
    fill(any_store, texts(3, 10))
    said: list[str] = []
    first = Mapper().run(any_store, say=said.append, fence=held)
    assert first == Mapped(30, 30, anew=True)
    assert said == ["map"]
    remember(any_store, first)
    before = places_of(any_store)
    assert None not in before.values()
    assert Mapper().run(any_store, say=said.append, fence=held) is None
    fill(any_store, texts(3, 1, first=70))
    assert Mapper().run(any_store, say=said.append, fence=held) == Mapped(30, 3, anew=False)
    after = places_of(any_store)
    assert len(after) == 33
    assert {text: after[text] for text in before} == before


def test_few_by_few_it_is_laid_out_anew(store: Store) -> None:
    """Rule: a fifth more than it was laid out of makes a new map, however few came each night."""
    fill(store, texts(3, 10))
    done = Mapper().run(store, say=silent, fence=held)
    anew = []
    for n in range(4):
        remember(store, done)
        fill(store, texts(2, 1, first=80 + n))
        done = Mapper().run(store, say=silent, fence=held)
        assert done is not None
        anew.append(done.anew)
    assert anew == [False, False, False, True]


def test_too_few_have_no_map(store: Store) -> None:
    """Rule: nothing is placed, and nothing said, where there is too little for a map."""
    fill(store, texts(1, FEWEST - 1))
    assert Mapper().run(store, say=silent, fence=held) is None
    assert set(places_of(store).values()) == {(None, None)}


def test_what_has_no_vector_waits(store: Store) -> None:
    """Rule: a signature without a vector gets no place and keeps nobody from one; the next night does not try again."""
    fill(store, texts(3, 8))
    fill(store, ["of no vector"], vectors=False)
    assert Mapper().run(store, say=silent, fence=held) == Mapped(24, 24, anew=True)
    assert Mapper().run(store, say=silent, fence=held) is None
    assert places_of(store)["of no vector"] == (None, None)


def test_of_very_many_some_are_laid_out_and_the_rest_put_beside(store: Store) -> None:
    """Rule: however many there are, all have a place, and the time for it is bounded."""
    fill(store, texts(4, 12))
    assert Mapper(most=30).run(store, say=silent, fence=held) == Mapped(48, 48, anew=True)
    assert all(x is not None for x, _ in places_of(store).values())


def test_a_night_that_lost_its_lease_places_nothing(store: Store) -> None:
    """Rule: whoever took over is not written over."""
    fill(store, texts(3, 8))

    def lost(_session: Session) -> None:
        raise LeaseLost("lost", "")

    with pytest.raises(LeaseLost):
        Mapper().run(store, say=silent, fence=lost)
    assert set(places_of(store).values()) == {(None, None)}


def test_places_without_a_night_that_tells_of_them_are_a_map(store: Store) -> None:
    """Rule: where the night that laid it out was killed before it could say so, the map is taken as it is."""
    fill(store, texts(3, 10))
    Mapper().run(store, say=silent, fence=held)
    with store.write() as session:
        one = session.scalars(select(Signature.id).limit(1)).one()
        session.execute(update(Signature).where(Signature.id == one).values(map_x=None, map_y=None))
    assert Mapper().run(store, say=silent, fence=held) == Mapped(29, 1, anew=False)


def test_a_night_makes_the_map_and_tells_of_it(any_store: Store, tmp_path: Path) -> None:
    """Rule: the last step of a night places what it found; its figures, and the store's size, are kept with it."""
    log = tmp_path / "app.log"
    lines = [
        f"2026-01-02 03:{n:02d}:00 ERROR app: {text}Error: {text} cannot be {text}" for n, text in enumerate(NAMES)
    ]
    log.write_text("\n".join(lines) + "\n")

    def night() -> NightSummary:
        return run_night(any_store, [str(log)], NightOptions(), light_clusterer(), clock=lambda: EPOCH, mapper=Mapper())

    first, second = night(), night()
    assert first.signatures >= FEWEST
    assert first.mapped == Mapped(first.signatures, first.signatures, anew=True)
    assert second.mapped is None
    with any_store.read() as session:
        last, before = nights(session)
        assert before.counts["map"] == {"laid_out": first.signatures, "placed": first.signatures, "anew": True}
        assert laid_out(session) == first.signatures
    assert int(str(last.counts["store_bytes"])) > 10_000
    assert last.versions["keying"].startswith("sig")
