"""Where a crash belongs, from everything that may tell: the record itself, its path, a sidecar, the flags."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

from crashpath.ingest.model import Facts

NAMES = tuple(field.name for field in fields(Facts))
_PATHS = {"ort": "ort", "onnxruntime": "ort", "torchscript": "torchscript"}
PATH_WORDS = tuple(_PATHS)
"""Words that name a path, in any case."""
_PHASES = frozenset({"prepare", "load", "warmup", "infer", "shutdown"})
_PACKED = (".gz", ".zst", ".xz", ".zip")
_PLACE = re.compile(r"\{(\w+)\}|(\*\*/?)|(\*)|(\?)")
_SAID = re.compile(
    r"(?<![\w.-])(release|platform|attempt_id|phase|model_name)[\"']?\s?[=:]\s?[\"'\[(]?([\w.+-][\w.+/-]{0,99})"
)
_WORDS = ("release", "platform", "attempt_id", "phase", "model_name")
_NONE = Facts()
_KEYS = {"model_name": "model"}
_SAID_BYTES = 64 * 1024


class FactsError(Exception):
    """A path pattern names something that is no fact; the text is a sentence with advice."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What the file beside a log tells. ``problem``: a sentence on a broken file; ``advice``: on a key of no use."""

    facts: Facts = _NONE
    problem: str | None = None
    advice: str | None = None


def facts_for_path(path: str, patterns: Sequence[str], sidecar: Facts, flags: Facts) -> Facts:
    """Return what the path, its sidecar and the flags tell, in this order. Raises FactsError for a wrong pattern.

    A pattern is a glob with names, ``logs/{release}/{platform}/*.log``, and is matched against the end of the path.
    A sidecar ``app.log.meta.json`` (also beside ``app.log.gz``) holds one JSON object with the names of facts.
    """
    return from_pattern(path, patterns).over(sidecar).over(flags)


def from_pattern(path: str, patterns: Sequence[str]) -> Facts:
    """Return the facts of the first pattern that fits the path, or none."""
    parts = os.path.normpath(path).replace(os.sep, "/")
    for pattern in patterns:
        found = _compiled(pattern).search(parts)
        if found is not None:
            return make_facts(found.groupdict())
    return Facts()


def read_sidecar(path: str) -> Sidecar:
    """Return what the file beside a log tells, and what is wrong with it; none tells nothing and is not wrong.

    The first that can be read of ``app.log.meta.json`` and ``app.meta.json`` is taken; a broken one before it is told.
    """
    stem, packed = os.path.splitext(path)
    bases = (path, stem, os.path.splitext(stem)[0]) if packed in _PACKED else (path, stem)
    problem = None
    for name in (f"{base}.meta.json" for base in bases):
        if not os.path.isfile(name):
            continue  # a pipe of that name would be waited for
        try:
            with open(name, encoding="utf-8-sig") as file:
                told = json.load(file)
        except (OSError, ValueError, RecursionError) as error:
            wrong = f"cannot be read ({error.strerror})" if isinstance(error, OSError) else "is not JSON"
        else:
            if isinstance(told, dict):
                return Sidecar(_facts_of(told), problem, _advice(name, told))
            wrong = "is no JSON object"
        problem = problem or f"{name} {wrong}, so it tells nothing: write one object with any of {', '.join(NAMES)}."
    return Sidecar(problem=problem)


def _facts_of(told: Mapping[str, object]) -> Facts:
    return make_facts({key: str(value) for key, value in told.items() if isinstance(value, (str, int, float))})


def _advice(name: str, told: Mapping[str, object]) -> str | None:
    """Say which keys of a sidecar tell nothing: those that are no facts, and values that their fact cannot have."""
    other = [key for key in told if key not in NAMES]
    if other:
        near = difflib.get_close_matches(other[0].lower(), NAMES, n=1)
        meant = f"did you mean {near[0]}?" if near else f"facts are {', '.join(NAMES)}."
        return f"{name} has a key {other[0]} that is no fact; {meant}"
    empty = [key for key, value in told.items() if value not in (None, "") and not getattr(_facts_of(told), key)]
    return f"{name} has a {empty[0]} that cannot be one, {told[empty[0]]!r:.60}, so it is left out." if empty else None


def facts_in(text: str) -> Facts:
    """Return what a record's own words tell: ``release=…``, ``platform: …``, ``attempt_id=…`` and the like."""
    if not any(word in text for word in _WORDS):
        return _NONE
    told: dict[str, str] = {}
    for key, value in _SAID.findall(text[:_SAID_BYTES]):
        told.setdefault(_KEYS.get(key, key), value.rstrip("./-"))
    return make_facts(told)


def make_facts(told: dict[str, str]) -> Facts:
    """Make facts of named values; names that are no facts and values that their fact cannot have are left out."""
    known = {name: value.strip() for name, value in told.items() if name in NAMES and value and value.strip()}
    if "path" in known:
        known["path"] = path_named(known["path"]) or ""
    if "phase" in known:
        phase = known["phase"].lower()
        known["phase"] = phase if phase in _PHASES else ""
    return Facts(**{name: value or None for name, value in known.items()})


def path_named(word: str) -> str | None:
    """Return the path that one of ``PATH_WORDS`` names (``onnxruntime`` is ``ort``), ``None`` for any other word."""
    return _PATHS.get(word.strip().lower())


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    names = re.findall(r"\{(\w*)\}", pattern)
    wrong = [name for name in names if name not in NAMES]
    if wrong or len(set(names)) != len(names):
        what = f"names {wrong[0]!r}" if wrong else "names a fact twice"
        raise FactsError(f"The path pattern {pattern!r} {what}: use each of {', '.join(NAMES)} at most once.")
    out, at = "", 0
    for found in _PLACE.finditer(pattern):
        out += re.escape(pattern[at : found.start()])
        name, deep, star, _ = found.groups()
        if name:
            out += f"(?P<{name}>[^/]+?)"
        elif deep:
            out += "(?:.*/)?" if deep.endswith("/") else ".*"
        else:
            out += "[^/]*" if star else "[^/]"
        at = found.end()
    out += re.escape(pattern[at:])
    packed = "".join(("(?:", "|".join(re.escape(end) for end in _PACKED), ")?"))
    return re.compile(rf"(?:^|/){out.lstrip('/')}{packed}$" if not pattern.startswith("/") else rf"^{out}{packed}$")
