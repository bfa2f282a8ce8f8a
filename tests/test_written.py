"""Written failures: every template is filled completely, reproducibly and without anything of a real machine."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime

import pytest

from crashpath.coverage.written import Written, load_written, render
from crashpath.ingest.classes import CLASSES, UNCLASSIFIED
from crashpath.ingest.model import Phase

AT = datetime(2026, 11, 23, 4, 5, 6, 789000)


@pytest.mark.parametrize("entry", load_written(), ids=lambda entry: entry.id)
def test_every_slot_and_choice_is_filled(entry: Written) -> None:
    """No text keeps a slot, a choice or a mark of the filling, whatever the seed."""
    for seed in range(6):
        text = render(entry, seed, AT)
        assert not re.findall(r"\{[a-z_]+\d*b?\}", text)
        assert not re.findall(r"\{[^{}\"\n]*\|[^{}\"\n]*\}", text)
        assert "\x01" not in text
        assert "\x02" not in text


@pytest.mark.parametrize("entry", load_written(), ids=lambda entry: entry.id)
def test_labels_are_words_of_the_product(entry: Written) -> None:
    """Class and phase of an entry are ones that the product knows."""
    assert entry.failure_class in {known.id for known in CLASSES} | {UNCLASSIFIED}
    assert entry.phase in set(Phase)


def test_the_same_seed_gives_the_same_text_and_another_seed_another() -> None:
    """A text depends on the entry, the seed and the time alone."""
    entry = load_written()[0]
    assert render(entry, 1, AT) == render(entry, 1, AT)
    assert render(entry, 1, AT) != render(entry, 2, AT)


def test_ids_are_unique() -> None:
    """An id names one entry: it is a file's name and a fold of the evaluation."""
    ids = [entry.id for entry in load_written()]
    assert len(ids) == len(set(ids))


def test_each_class_has_entries_of_several_libraries() -> None:
    """Every class has at least four entries over at least three libraries, so that a library can be held out."""
    libraries: dict[str, list[str]] = defaultdict(list)
    for entry in load_written():
        libraries[entry.failure_class].append(entry.library)
    for known in CLASSES:
        assert len(libraries[known.id]) >= 4, known.id
        assert len(set(libraries[known.id])) >= 3, known.id


def test_a_slot_keeps_its_value_and_its_numbered_kin_differs() -> None:
    """``{dim}`` is one value in a text, ``{dim2}`` another: a shape that matched itself would be no failure."""
    entry = Written("t", "hang", "infer", "x", "linux-cpu", "{dim} {dim} {dim2} {a|b} {{n}|-}\n")
    for seed in range(30):
        first, again, other, choice, nested = render(entry, seed, AT).split()
        assert first == again != other
        assert choice in {"a", "b"}
        assert nested == "-" or nested.isdigit()
