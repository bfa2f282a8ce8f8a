"""The failure classes: complete, ordered, and every one under a headline."""

from crashpath.ingest.classes import CLASSES, HEADLINES, UNCLASSIFIED, headline_of


def test_the_fourteen_classes_are_there_once_each() -> None:
    """Rule: fourteen classes, each id once, and the catch-all is not one of them."""
    ids = [c.id for c in CLASSES]
    assert len(ids) == len(set(ids)) == 14
    assert UNCLASSIFIED not in ids


def test_every_class_says_what_it_is_where_it_ends_and_what_to_do() -> None:
    """Rule: no class without meaning, boundary and at least two next steps, all as sentences."""
    for c in CLASSES:
        assert c.meaning.endswith("."), c.id
        assert c.boundary.endswith("."), c.id
        assert len(c.next_steps) >= 2, c.id
        assert all(step.endswith(".") for step in c.next_steps), c.id


def test_headlines_roll_up_all_classes_and_none_is_empty() -> None:
    """Rule: every class counts under one of the five headlines, and every headline has a class."""
    assert {c.headline for c in CLASSES} == set(HEADLINES)
    assert headline_of("oom_device") == headline_of("oom_host") == "OOM"
    assert headline_of(UNCLASSIFIED) == headline_of("of_another_version") == "other"
