"""Volatile values → named placeholders, so that one failure reads the same on any machine.

The masks are data (``masks.toml``), each with examples that the tests read. They are tried in their order, each at
the start of a token that holds a digit, a slash, a backslash, an ``@`` or the ending of a file or a host; words that
hold none of them are never looked at. A mask is one of four things:

- *hinted* (``hints``): replaced anywhere in a text that holds one of its hints; done first;
- *contextual* (``after``): only behind one of its words, as ``exit code 137`` or ``Name:'/Reshape_3'``;
- *keep* (no placeholder): what it matches carries meaning and stays;
- *plain*: what it matches becomes ``placeholder``, or ``to`` with its groups, or has ``inner`` replaced within.

``mask`` is idempotent, and what redaction put in place (``<email>``, ``<user>`` …) survives it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

MEMO_TEXTS = 65_536
"""Distinct texts whose masked form is remembered."""

MEMO_CHARS = 4_096
"""A longer text is masked anew each time: it would weigh more in memory than it saves."""

_LOOK_BACK = 40
_PASSES = 8


@dataclass(frozen=True, slots=True)
class Mask:
    """One entry of ``masks.toml``. ``starts`` says which tokens it can begin at; ``yes`` maps before to after."""

    name: str
    pattern: str
    placeholder: str | None = None
    to: str | None = None
    inner: str | None = None
    starts: tuple[str, ...] = ("digit", "letter", "mark")
    after: tuple[str, ...] = ()
    yes: tuple[tuple[str, str], ...] = ()
    no: tuple[str, ...] = ()
    slash: bool = False
    hints: tuple[str, ...] = ()


def _expand(pattern: str, shared: dict[str, str]) -> str:
    for name, part in shared.items():
        pattern = pattern.replace("{{" + name + "}}", part)
    return pattern


def load_masks() -> tuple[tuple[Mask, ...], dict[str, str]]:
    """Read ``masks.toml``: the masks in their order, and the shared parts of patterns."""
    raw = tomllib.loads(files(__package__).joinpath("masks.toml").read_text(encoding="utf-8"))
    shared: dict[str, str] = {}
    for name, part in raw["shared"].items():
        shared[name] = _expand(part, shared)
    return tuple(_mask(entry, shared) for entry in raw["mask"]), shared


def _mask(entry: dict[str, Any], shared: dict[str, str]) -> Mask:
    known = dict(entry)
    known["pattern"] = _expand(entry["pattern"], shared)
    for name in ("starts", "after", "hints", "no"):
        if name in known:
            known[name] = tuple(known[name])
    known["yes"] = tuple((before, after) for before, after in entry.get("yes", ()))
    return Mask(**known)


Replace = Callable[[str], str]


def _replacer(mask: Mask) -> Replace | str | None:
    """Return the fixed text that a match becomes, or a function of the match, or ``None``: it stays."""
    if mask.inner is not None and mask.placeholder is not None:
        inner, placeholder = re.compile(mask.inner, re.ASCII), mask.placeholder
        return lambda text: inner.sub(placeholder, text)
    if mask.to is not None:
        own, template = re.compile(mask.pattern, re.ASCII), mask.to
        return lambda text: own.sub(template, text, count=1)
    return mask.placeholder


_Contextual = tuple[re.Pattern[str], Replace | str | None, tuple[str, ...]]


class _Masker:
    """The masks, compiled: one alternation a kind of start, and the contextual masks that go before it."""

    def __init__(self, masks: tuple[Mask, ...], shared: dict[str, str]) -> None:
        plain = [mask for mask in masks if not mask.after and not mask.hints]
        self._hinted = tuple(
            (mask.hints, re.compile(mask.pattern, re.ASCII), mask.to or "") for mask in masks if mask.hints
        )
        self._replace = {mask.name: _replacer(mask) for mask in masks}
        self._alternatives = {(kind, slash): _join(kind, slash, plain) for kind in _KINDS for slash in (False, True)}
        self._contextual: dict[tuple[str, str], tuple[_Contextual, ...]] = {}
        for contextual in (mask for mask in masks if mask.after):
            self._add(contextual)
        ending = shared["ending"]
        self._volatile = re.compile(rf"[0-9/\\@.](?:(?<=[0-9/\\@])|(?<=[\w\-]\.){ending})", re.ASCII).search

    def _add(self, mask: Mask) -> None:
        pattern = re.compile(mask.pattern, re.ASCII)
        for kind in mask.starts:
            for word in {phrase.rpartition(" ")[2] for phrase in mask.after}:
                phrases = tuple(phrase for phrase in mask.after if phrase.rpartition(" ")[2] == word)
                known = self._contextual.get((kind, word), ())
                self._contextual[kind, word] = (*known, (pattern, self._replace[mask.name], phrases))

    def __call__(self, text: str) -> str:
        for hints, pattern, to in self._hinted:
            if any(hint in text for hint in hints):
                text = pattern.sub(to, text)
        out: list[str] = []
        done = end = 0
        while (found := self._volatile(text, end)) is not None:
            start = _token_start(text, end, found.start())
            if start < 0:
                end = found.end()
                continue
            end, put = self._at(text, start)
            if put is not None:
                out += (text[done:start], put)
                done = end
        if not done:
            return text
        out.append(text[done:])
        return "".join(out)

    def _at(self, text: str, start: int) -> tuple[int, str | None]:
        """Return where the token at ``start`` ends, and what to put there (``None``: leave it)."""
        first = text[start]
        kind = "digit" if first in _DIGITS else "letter" if first in _LETTERS else "mark"
        before = text[max(0, start - _LOOK_BACK) : start].rstrip(_JOINTS).lower()
        if (word := _LAST_WORD(before, before.rfind(" ") + 1)) is not None:
            for pattern, replace, phrases in self._contextual.get((kind, word.group()), ()):
                if before.endswith(phrases) and (match := pattern.match(text, start)):
                    return match.end(), _put(replace, match.group())
        match = self._alternatives[kind, _SLASH(text, start) is not None].match(text, start)
        if match is not None and match.lastgroup is not None and match.end() > start:
            return match.end(), _put(self._replace[match.lastgroup], match.group())
        skip = _WORD(text, start)
        return (skip.end() if skip else start + 1), None


_TOKEN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_<>~.$:([{-"
_WORD_OR_PLACEHOLDER = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789<>")
_REST = re.compile(r"[\w<>]+", re.ASCII).match
_BEFORE_DAY = frozenset("nbrylgptvced, ")  # the last letters of month names, and what stands before a lone digit
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? "
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* {1,2}"
_NAMED = re.compile(rf"(?<!\w)(?:(?:{_WEEKDAY})?{_MONTH}|{_WEEKDAY})\Z", re.ASCII).search
_KINDS = ("digit", "letter", "mark")
_DIGITS = frozenset("0123456789")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_JOINTS = " \t:=#'\"`(["
_WORD = re.compile(r"\w+|[/\\]+", re.ASCII).match
# A file name has at most 255 bytes; without the bound a long token would be read again from each of its words.
_SLASH = re.compile(r"[^\s'\"`()\[\]{},;|=/\\]{0,256}+[/\\]").match
_LAST_WORD = re.compile(r"(?:[a-z_]+\]?|<id>\))\Z").search


def _token_start(text: str, left: int, at: int) -> int:
    """Return where the token begins that has its first volatile character at ``at``; -1 inside of a word."""
    start = left + len(text[left:at].rstrip(_TOKEN))
    if start and text[start - 1] in _WORD_OR_PLACEHOLDER:
        word = _REST(text, start, at)
        start = word.end() if word else start
        if start == at:
            return -1
    if start > 3 and text[start - 1] == " " and text[start - 2] in _BEFORE_DAY and (named := _NAMED(text[left:start])):
        start = left + named.start()
    return start


def _join(kind: str, slash: bool, masks: list[Mask]) -> re.Pattern[str]:
    fitting = (mask for mask in masks if kind in mask.starts and (slash or not mask.slash))
    return re.compile("|".join(f"(?P<{mask.name}>{mask.pattern})" for mask in fitting), re.ASCII)


def _put(replace: Replace | str | None, text: str) -> str | None:
    return replace(text) if callable(replace) else replace


MASKS, _SHARED = load_masks()
_masker = _Masker(MASKS, _SHARED)


def _settle(text: str) -> str:
    """Mask until nothing changes: what stands beside a placeholder can read as a token of its own."""
    for _ in range(_PASSES):
        masked = _masker(text)
        if masked == text:
            break
        text = masked
    return text


_remembered = lru_cache(maxsize=MEMO_TEXTS)(_settle)


def mask(text: str) -> str:
    """Return ``text`` with its volatile values replaced; ``mask(mask(text)) == mask(text)``."""
    if len(text) > MEMO_CHARS:
        return _settle(text)
    return _remembered(text)
