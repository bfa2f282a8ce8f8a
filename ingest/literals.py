"""Prefilter for many patterns: the literals that a line must hold for a pattern to match at all.

``required_literals`` finds, for one pattern, words of which every match holds at least one. ``Sieve`` looks for
those of all patterns in one pass and tries only the patterns whose words are there, so that a line without any
costs about as much whatever the number of patterns. Reads the part of the RE2 syntax that the rules use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import re2

_SIEVE_BYTES = 64 << 20  # upper bound of the automaton's cache; about a twentieth of it is used

_CLASSES = frozenset("dDwWsSbBAz")


class PatternError(ValueError):
    """A pattern cannot be read; ``index`` says which of those given."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(why)
        self.index = index


class _Item(NamedTuple):
    """A piece of a sequence: a literal character, or a set of literals, or something without any (``None``)."""

    char: str
    words: frozenset[str] | None


_ANYTHING = _Item("", None)


def required_literals(pattern: str) -> frozenset[str]:
    """Return lower-case literals of which every match holds at least one; empty if there are none."""
    words, end = _alternatives(pattern, 0)
    if end != len(pattern):
        raise ValueError(f"unbalanced parenthesis at {end} in {pattern!r}")
    return words or frozenset()


def _alternatives(pattern: str, at: int) -> tuple[frozenset[str] | None, int]:
    found: list[frozenset[str] | None] = []
    while True:
        words, at = _sequence(pattern, at)
        found.append(words)
        if at >= len(pattern) or pattern[at] == ")":
            break
        at += 1
    if any(words is None for words in found):
        return None, at
    return frozenset().union(*(words for words in found if words is not None)), at


def _sequence(pattern: str, at: int) -> tuple[frozenset[str] | None, int]:
    best: frozenset[str] | None = None
    run = ""
    while at < len(pattern) and pattern[at] not in "|)":
        item, at = _item(pattern, at)
        least, at = _repeats(pattern, at)
        if least is None and item.char:
            run += item.char
            continue
        if least and item.char:
            run += item.char
        best = _better(best, frozenset({run}) if run else None)
        run = ""
        if least is None or least > 0:
            best = _better(best, item.words)
    return _better(best, frozenset({run}) if run else None), at


def _item(pattern: str, at: int) -> tuple[_Item, int]:
    char = pattern[at]
    if char == "(":
        return _group(pattern, at + 1)
    if char == "[":
        return _ANYTHING, _end_of_class(pattern, at + 1)
    if char == "\\":
        following = pattern[at + 1]
        return (_ANYTHING if following in _CLASSES else _Item(following.lower(), None)), at + 2
    if char in ".^$":
        return _ANYTHING, at + 1
    return _Item(char.lower(), None), at + 1


def _group(pattern: str, at: int) -> tuple[_Item, int]:
    if pattern[at] == "?":
        at = pattern.index(":", at) + 1
    words, end = _alternatives(pattern, at)
    return _Item("", words), end + 1


def _end_of_class(pattern: str, at: int) -> int:
    at += pattern[at] == "^"
    at += pattern[at] == "]"
    while pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _repeats(pattern: str, at: int) -> tuple[int | None, int]:
    """Return the least number of repeats (``None``: no quantifier stands here) and the place after it."""
    if at >= len(pattern) or pattern[at] not in "?*+{":
        return None, at
    char, least = pattern[at], 0
    if char == "{":
        close = pattern.index("}", at)
        least, at = int(pattern[at + 1 : close].partition(",")[0] or 0), close
    elif char == "+":
        least = 1
    at += 1
    return least, at + (at < len(pattern) and pattern[at] == "?")


def _better(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """Return the set whose shortest literal is longer: the one that is met less often."""
    if one is None or other is None:
        return one or other
    return one if _shortest(one) >= _shortest(other) else other


def _shortest(words: Iterable[str]) -> int:
    return min(map(len, words))


class Sieve:
    """Many patterns, matched without regard to case, anywhere in one line."""

    __slots__ = ("_patterns", "_users", "_words")

    def __init__(self, patterns: Sequence[str]) -> None:
        """Raise ``PatternError`` for the first pattern that RE2 cannot read."""
        users: dict[str, list[int]] = {}
        read = []
        for i, pattern in enumerate(patterns):
            try:
                read.append(_automaton((pattern,)))
                words = required_literals(pattern)
            except (re2.error, ValueError) as problem:
                raise PatternError(i, f"its pattern cannot be read: {problem}") from problem
            for word in words or {""}:
                users.setdefault(word, []).append(i)
        self._patterns = tuple(read)
        self._users = tuple(tuple(indexes) for indexes in users.values())
        self._words = _automaton(tuple(users), literal=True)

    def match(self, line: str) -> list[int]:
        """Return the indexes of the patterns that match, in order."""
        data = line.encode("utf-8", "replace")
        words = self._words.Match(data) if self._users else None
        if not words:
            return []
        tried = {i for word in words for i in self._users[word]}
        return sorted(i for i in tried if self._patterns[i].Match(data))


def _automaton(patterns: Sequence[str], *, literal: bool = False) -> Any:
    options = re2.Options()
    options.case_sensitive = False
    options.never_capture = True
    options.log_errors = False
    options.literal = literal
    if literal:
        options.max_mem = _SIEVE_BYTES
    automaton = re2.Set.SearchSet(options)
    for pattern in patterns:
        automaton.Add(pattern)
    if patterns:
        automaton.Compile()
    return automaton
