"""Root rules: what a line of a log says about why something failed.

Rules are data, one file a family (``rules_*.toml``). ``class`` is the failure class that a rule tells, ``role`` is
``root`` unless it says otherwise: ``confirmation`` for a second witness, ``cascade`` for what follows from a cause,
``context`` for what only looks like one.
All patterns are RE2 expressions, matched anywhere in one line and without regard to case.

Ranks: 4 states a specific cause · 3 states the kind of failure, which something else may have set off ·
2 states a symptom, such as a signal · 1 says only that something failed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import re2

from crashpath.ingest.classes import CLASSES
from crashpath.ingest.literals import PatternError, Sieve
from crashpath.ingest.model import Phase, Role

# Where several rules of one rank match a line, the first in this order speaks.
FAMILIES = ("noise", "oom", "device", "tokenizer", "graph", "load", "host", "dependency", "process", "kinds")
HIGHEST_RANK, LOWEST_FAILURE_RANK = 4, 2
_ROLES = {role.value: role for role in Role}
_PHASES = frozenset(phase.value for phase in Phase)
_CLASS_IDS = frozenset(c.id for c in CLASSES)


class RuleError(ValueError):
    """A rule file holds something that is not a rule; the message names the rule and says what is wrong."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One piece of knowledge: lines that match ``pattern`` have this role, and tell this class of failure.

    ``libraries`` says whose words these are, ``faults`` which entries of the fault catalogue print lines by which the
    rule decides (or from which it was written); both let an evaluation switch off what it must not know. ``yes`` and
    ``no`` are lines under test. ``opens`` is whether such a line, by itself, opens a record in a stream; ``needs`` is a
    pattern that the record must hold anywhere for the rule to speak.
    """

    id: str
    role: Role
    rank: int
    pattern: str
    failure_class: str | None
    phase: str | None
    libraries: tuple[str, ...]
    faults: tuple[str, ...]
    yes: tuple[str, ...]
    no: tuple[str, ...]
    opens: bool = True
    needs: str | None = None


class Rules:
    """An immutable set of rules that is matched as one."""

    __slots__ = ("_failures", "_sieve", "_vetoes", "rules")

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self._sieve = _sieve(rules)
        self._failures = frozenset(
            i
            for i, r in enumerate(rules)
            if r.opens and r.role in (Role.ROOT, Role.CONFIRMATION) and r.rank >= LOWEST_FAILURE_RANK
        )
        self._vetoes = frozenset(i for i, r in enumerate(rules) if r.role is Role.CONTEXT)

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __reduce__(self) -> tuple[type[Rules], tuple[tuple[Rule, ...]]]:
        return Rules, (self.rules,)

    def match(self, line: str, text: str | None = None) -> tuple[Rule, ...]:
        """Return the rules that match a line, in their order; with ``text``, only those whose needs it meets."""
        found = tuple(self.rules[i] for i in self._sieve.match(line))
        if text is None:
            return found
        return tuple(rule for rule in found if rule.needs is None or re2.search(rule.needs, text))

    def is_failure(self, line: str) -> bool:
        """Whether a line, by itself, tells of a failure (and so opens a record in a stream)."""
        return self._sieve.matches_any(line, self._failures) and not self._sieve.matches_any(line, self._vetoes)

    def without_libraries(self, libraries: Collection[str]) -> Rules:
        """Return the rules that are not in the words of any of these libraries."""
        return self._only(lambda rule: not set(rule.libraries) & set(libraries))

    def without_faults(self, faults: Collection[str]) -> Rules:
        """Return the rules that would be known without these faults: those that also decide another one, or none.

        To drop each rule that decides a held-out fault would leave, for that fault, only rules that miss it.
        """
        unknown = set(faults)
        return self._only(lambda rule: not rule.faults or not unknown.issuperset(rule.faults))

    def deciding_none_of(self, faults: Collection[str]) -> Rules:
        """Return the rules that decide none of these faults: a lower bound, which leaves only rules that miss them."""
        return self._only(lambda rule: not set(rule.faults) & set(faults))

    def _only(self, keep: Callable[[Rule], bool]) -> Rules:
        return Rules(tuple(rule for rule in self.rules if keep(rule)))


def load_rules() -> Rules:
    """Read the rules that come with the program."""
    folder = files("crashpath.ingest")
    read: list[Rule] = []
    for family in FAMILIES:
        name = f"rules_{family}.toml"
        data = tomllib.loads(folder.joinpath(name).read_text(encoding="utf-8"))
        read.extend(_rule(name, entry) for entry in data["rule"])
    seen: set[str] = set()
    for rule in read:
        if rule.id in seen:
            raise RuleError(f"two rules are called {rule.id}")
        seen.add(rule.id)
    return Rules(tuple(read))


def _rule(file: str, entry: dict[str, Any]) -> Rule:
    where = f"{file}: {entry.get('id', '(no id)')}"
    role, failure_class, phase = entry.get("role", Role.ROOT.value), entry.get("class"), entry.get("phase")
    if role not in _ROLES:
        raise RuleError(f"{where}: there is no role {role}")
    if failure_class is not None and failure_class not in _CLASS_IDS:
        raise RuleError(f"{where}: there is no class {failure_class}")
    if phase is not None and phase not in _PHASES:
        raise RuleError(f"{where}: there is no phase {phase}")
    try:
        return Rule(
            id=entry["id"],
            role=_ROLES[role],
            rank=int(entry.get("rank", HIGHEST_RANK)),
            pattern=entry["pattern"],
            failure_class=failure_class,
            phase=phase,
            libraries=tuple(entry.get("libraries", ())),
            faults=tuple(entry.get("faults", ())),
            yes=tuple(entry["yes"]),
            no=tuple(entry["no"]),
            opens=bool(entry.get("opens", True)),
            needs=entry.get("needs"),
        )
    except KeyError as missing:
        raise RuleError(f"{where}: {missing} is missing") from missing


def _sieve(rules: tuple[Rule, ...]) -> Sieve:
    try:
        return Sieve([rule.pattern for rule in rules])
    except PatternError as problem:
        raise RuleError(f"{rules[problem.index].id}: {problem}") from problem
