"""Prefilter for many patterns: the literals that a line must hold for a pattern to match at all.

``alternatives`` finds, for each alternative of a pattern, up to two sets of words of which every match holds one
each. ``Sieve`` looks for the words of all patterns in one pass and tries only the alternatives that can match, so
that a line without any costs about as much whatever their number. Reads the part of the RE2 syntax in use.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from typing import Any, NamedTuple

import re2

_SETS = 2  # sets of words looked for in each alternative: with two, common words seldom meet by chance
_SHORTEST = 4  # a second set is worth its lookups only if its words are longer than a syllable
_RARE = 8  # words of this length seldom stand in a line by chance, so that one set of them is enough
# Words that stand in so many healthy lines that they are worth no more than a syllable.
# fmt: off
_COMMON = frozenset(
    (
        "app", "backend", "block", "cache", "client", "connect", "current", "data", "error", "fail", "failed",
        "failure", "file", "found", "http", "init", "initialize", "input", "invalid", "kernel", "load", "lock",
        "manager", "memory", "name", "node", "output", "package", "process", "read", "request", "result", "server",
        "service", "session", "size", "start", "state", "status", "system", "task", "time", "timeout", "user",
        "valid", "version", "waiting", "warning:", "worker",
    )
)
# fmt: on
_SIEVE_BYTES = 64 << 20  # upper bound of the automaton's cache; about a twentieth of it is used

_CLASSES = frozenset("dDwWsSbBAz")


class PatternError(ValueError):
    """A pattern cannot be read; ``index`` says which of those given."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(why)
        self.index = index


class Alternative(NamedTuple):
    """One alternative of a pattern, and the sets of lower-case words of which each match holds one each."""

    pattern: str
    needs: tuple[frozenset[str], ...]


class _Item(NamedTuple):
    """A piece of a sequence: a literal character, or a set of literals, or something without any (``None``)."""

    char: str
    words: frozenset[str] | None


_ANYTHING = _Item("", None)


def alternatives(pattern: str) -> tuple[Alternative, ...]:
    """Split a pattern at its outermost bars. Raises ``ValueError`` where parentheses do not fit."""
    branches: list[Alternative] = []
    start = at = 0
    while True:
        found, at = _sequence(pattern, at)
        rarest = sorted(dict.fromkeys(found), key=_rarity, reverse=True)
        enough = 1 if rarest and _rarity(rarest[0]) >= _RARE else _SETS
        needs = tuple(words for n, words in enumerate(rarest[:enough]) if not n or _rarity(words) >= _SHORTEST)
        branches.append(Alternative(pattern[start:at], needs))
        if at >= len(pattern):
            return tuple(branches)
        if pattern[at] == ")":
            raise ValueError(f"unbalanced parenthesis at {at}")
        start = at = at + 1


def _alternatives(pattern: str, at: int) -> tuple[frozenset[str] | None, int]:
    """Read what stands in a group; return the words of which it holds one, ``None`` if it may hold none."""
    words: frozenset[str] | None = frozenset()
    while True:
        found, at = _sequence(pattern, at)
        best = max(found, key=_rarity, default=None)
        words = None if words is None or best is None else words | best
        if pattern[at] == ")":
            return words, at
        at += 1


def _sequence(pattern: str, at: int) -> tuple[list[frozenset[str]], int]:
    """Read up to the end of an alternative; return the sets of words that each match holds one of."""
    found: list[frozenset[str]] = []
    run = ""
    while at < len(pattern) and pattern[at] not in "|)":
        item, at = _item(pattern, at)
        least, at = _repeats(pattern, at)
        if item.char and least != 0:
            run += item.char
            if least is None:
                continue
        if run:
            found.append(frozenset({run}))
        run = ""
        if item.words and least != 0:
            found.append(item.words)
    if run:
        found.append(frozenset({run}))
    return found, at


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


def _rarity(words: Iterable[str]) -> int:
    return min(2 if word.strip() in _COMMON else len(word) for word in words)


class Sieve:
    """Many patterns, matched without regard to case, anywhere in one line."""

    __slots__ = ("_branches", "_machines", "_users", "_words")

    def __init__(self, patterns: Sequence[str]) -> None:
        """Raise ``PatternError`` for the first pattern that RE2 cannot read."""
        users: dict[str, list[tuple[int, int]]] = {}
        branches: list[tuple[int, str]] = []
        for i, pattern in enumerate(patterns):
            for branch in _read(i, pattern):
                for n, words in enumerate(branch.needs or (frozenset({""}),)):
                    part = n + 1 if len(branch.needs) == _SETS else 0
                    for word in words:
                        users.setdefault(word, []).append((len(branches), part))
                branches.append((i, branch.pattern))
        self._branches = tuple(branches)
        self._machines: list[Any] = [None] * len(branches)  # made when first needed: few of them ever are
        self._users = tuple(tuple(uses) for uses in users.values())
        self._words = _automaton(tuple(users), literal=True)

    def match(self, line: str) -> list[int]:
        """Return the indexes of the patterns that match, in order."""
        data = line.encode("utf-8", "replace")
        found: set[int] = set()
        for branch in self._ready(data):
            pattern = self._branches[branch][0]
            if pattern not in found and self._machine(branch).Match(data):
                found.add(pattern)
        return sorted(found)

    def matches_any(self, line: str, wanted: Container[int]) -> bool:
        """Return whether one of these patterns matches, without a try of the others."""
        data = line.encode("utf-8", "replace")
        for branch in self._ready(data):
            if self._branches[branch][0] in wanted and self._machine(branch).Match(data):
                return True
        return False

    def _ready(self, data: bytes) -> Collection[int]:
        """Return the alternatives that have all their sets of words met."""
        words = self._words.Match(data) if self._users else None
        if not words:
            return ()
        met: dict[int, int] = {}
        ready: set[int] = set()
        for word in words:
            for branch, part in self._users[word]:
                if part == 0 or met.setdefault(branch, part) != part:
                    ready.add(branch)
        return ready

    def _machine(self, branch: int) -> Any:
        machine = self._machines[branch]
        if machine is None:
            machine = self._machines[branch] = _automaton((self._branches[branch][1],))
        return machine


def _read(index: int, pattern: str) -> tuple[Alternative, ...]:
    try:
        re2.Set.SearchSet(_options()).Add(pattern)
        return alternatives(pattern)
    except (re2.error, ValueError, IndexError) as problem:
        raise PatternError(index, f"its pattern cannot be read: {problem}") from problem


def _options(*, literal: bool = False) -> Any:
    options = re2.Options()
    options.case_sensitive = False
    options.never_capture = True
    options.log_errors = False
    options.literal = literal
    if literal:
        options.max_mem = _SIEVE_BYTES
    return options


def _automaton(patterns: Sequence[str], *, literal: bool = False) -> Any:
    automaton = re2.Set.SearchSet(_options(literal=literal))
    for pattern in patterns:
        automaton.Add(pattern)
    if patterns:
        automaton.Compile()
    return automaton
