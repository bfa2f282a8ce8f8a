"""Prefilter for many patterns: the literals that a line must hold for a pattern to match at all.

``required_literals`` finds, for each alternative of a pattern, up to two sets of words of which every match holds
at least one each. ``Sieve`` looks for the words of all patterns in one pass and tries only patterns that can match,
so that a line without any costs about as much whatever their number. Reads the part of the RE2 syntax in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


class _Item(NamedTuple):
    """A piece of a sequence: a literal character, or a set of literals, or something without any (``None``)."""

    char: str
    words: frozenset[str] | None


_ANYTHING = _Item("", None)


def required_literals(pattern: str) -> tuple[tuple[frozenset[str], ...], ...]:
    """Return, for each alternative, the sets of lower-case words of which a match holds one each (none: ``()``)."""
    branches: list[tuple[frozenset[str], ...]] = []
    at = 0
    while True:
        found, at = _sequence(pattern, at)
        rarest = sorted(dict.fromkeys(found), key=_rarity, reverse=True)
        enough = 1 if rarest and _rarity(rarest[0]) >= _RARE else _SETS
        branches.append(tuple(words for n, words in enumerate(rarest[:enough]) if not n or _rarity(words) >= _SHORTEST))
        if at >= len(pattern):
            return tuple(branches)
        if pattern[at] == ")":
            raise ValueError(f"unbalanced parenthesis at {at}")
        at += 1


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

    __slots__ = ("_patterns", "_users", "_words")

    def __init__(self, patterns: Sequence[str]) -> None:
        """Raise ``PatternError`` for the first pattern that RE2 cannot read."""
        users: dict[str, list[tuple[int, int, int]]] = {}
        read = []
        branch = 0
        for i, pattern in enumerate(patterns):
            try:
                read.append(_automaton((pattern,)))
                branches = required_literals(pattern)
            except (re2.error, ValueError, IndexError) as problem:
                raise PatternError(i, f"its pattern cannot be read: {problem}") from problem
            for needs in branches:
                branch += 1
                for n, words in enumerate(needs or (frozenset({""}),)):
                    for word in words:
                        users.setdefault(word, []).append((i, branch, 0 if len(needs) < _SETS else n + 1))
        self._patterns = tuple(read)
        self._users = tuple(tuple(uses) for uses in users.values())
        self._words = _automaton(tuple(users), literal=True)

    def match(self, line: str) -> list[int]:
        """Return the indexes of the patterns that match, in order."""
        data = line.encode("utf-8", "replace")
        words = self._words.Match(data) if self._users else None
        return self._try(data, words) if words else []

    def _try(self, data: bytes, words: list[int]) -> list[int]:
        """Try the patterns of which some alternative has all its sets of words met."""
        tried: set[int] = set()
        met: dict[int, int] = {}
        for word in words:
            for pattern, branch, part in self._users[word]:
                if pattern in tried:
                    continue
                if part == 0 or met.get(branch, part) != part:
                    tried.add(pattern)
                else:
                    met[branch] = part
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
