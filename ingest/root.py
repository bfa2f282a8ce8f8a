"""Root line: which line of a record states the cause, why it was chosen, and the role of every other line.

Candidates are the exceptions of the parsed chain and every line that a root rule knows. The best rank wins,
whichever stands first; among equals the first cause of the chain, else the earliest line. What only follows
from something else (a cascade) never replaces it, and a second witness (a confirmation) is the root only where
nothing better stands in the record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from crashpath.ingest.model import Mark, Parsed, Role, Root, Thrown
from crashpath.ingest.phases import in_circumstances, phase_of
from crashpath.ingest.rules import HIGHEST_RANK, Rule, Rules
from crashpath.ingest.wording import echoes, head, meaningful

FIRST_CAUSE_RANK = 1.5  # an exception that no rule knows says more than "something failed", less than a symptom
WEAK_RANK = 1.0  # below it stand guesses from healthy lines, which any line at a level of failure outweighs
BEFORE_DEATH_RANK = 2.5  # a specific cause that was logged as if it were nothing says more than the death after it
_BENIGN = {"WARN": 1.0, "WARNING": 1.0, "INFO": 3.0, "NOTICE": 3.0, "DEBUG": 3.0, "TRACE": 3.0, "VERBOSE": 3.0}
_LEVELS = ("EMERG", "FATAL", "PANIC", "CRITICAL", "ALERT", "SEVERE", "ERROR", "WARN", "WARNING")
_SEVERE = frozenset(_LEVELS[:7])
_SIGNAL_CLASS = dict.fromkeys(("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS"), "native_crash")
_KILLED = frozenset(
    {"bare-killed", "kernel-oom-killed", "kubernetes-oomkilled", "segfault", "illegal-instruction", "bus-error"}
)
_DEATHS = _KILLED | {"abort"}
"""Rules of lines that tell how a process died; one aborts itself also because it waited too long."""
_SIGNAL_LINE = re.compile(r"\W*(?:\w+ )?[Ss]ignal \d+ \(SIG[A-Z]+\)")  # Android tells the words later
_IN_VAIN = frozenset({"network_auth", "hang", "load_timeout"})
_SOURCE = ("    ", "\t")  # what a traceback puts in front of the source line under a frame
_INNERMOST = 5  # frames, and lines above an exception, that tell what was being built
_MESSAGE = 8192  # characters of a message that rules see


class _Line(NamedTuple):
    """What the rules said of one line: the rule that speaks for it as a cause, and the line's lesser role."""

    best: Rule | None
    role: Role

    @property
    def confirms(self) -> bool:
        return self.role is Role.CONFIRMATION


class _Candidate(NamedTuple):
    rank: float
    confirms: bool
    order: float
    line: int
    rule: Rule | None
    thrown: Thrown | None


_NOTHING = _Line(None, Role.CONTEXT)


def find_root(text: str, parsed: Parsed, rules: Rules, marks: Sequence[Mark] = ()) -> Root:
    """Return the root of a record.

    ``text`` and ``marks`` are those of the record; ``marks`` may be empty, else it has one entry a line.
    """
    lines = text.split("\n")
    skip = echoes(lines)
    seen = [_NOTHING if skip[i] or not line else _judge(rules.match(line, text)) for i, line in enumerate(lines)]
    spans = _spans(parsed.chain, len(lines))
    found = [*_from_chain(parsed.chain, rules, text), *_from_lines(seen, spans, parsed.chain, marks)]
    found = _before_death([*found, *_before_abort(found, seen, parsed, marks)])
    if found:
        best = _in_full(min(found, key=_preference), found, lines)
        if best.rank >= WEAK_RANK or not _severe_words(seen, marks):
            return _rooted(best, lines, seen, parsed)
    return _fallback(lines, seen, parsed, marks)


def _preference(one: _Candidate) -> tuple[float, bool, float]:
    return -one.rank, one.confirms, one.order


def _in_full(best: _Candidate, found: list[_Candidate], lines: list[str]) -> _Candidate:
    """Return the exception that says why a process died, where the line is only a frame or names the signal."""
    if best.thrown is not None or best.rule is None:
        return best
    if best.rule.id == "native-frames-only":
        whole = [one for one in found if one.thrown is not None and one.thrown.frames and one.line < best.line]
        return min(whole, key=_preference, default=best)._replace(rule=best.rule)
    if _SIGNAL_LINE.match(lines[best.line]) is None:
        return best
    told = [one for one in found if one.thrown is not None and one.thrown.message and one.rule == best.rule]
    return min(told, key=_preference, default=best)


def _before_abort(
    found: list[_Candidate], seen: list[_Line], parsed: Parsed, marks: Sequence[Mark]
) -> list[_Candidate]:
    """Return what a program said before it aborted (a fatal error, its last FATAL line) where no rule knows more."""
    abort = next((one for one in found if one.rule is not None and one.rule.id == "abort"), None)
    if abort is None or any(one.rank > abort.rank for one in found) or parsed.signal not in (None, "SIGABRT"):
        return []
    until = range(min(abort.line, len(marks)))
    line = max((i for i in until if marks[i].level == "FATAL" and seen[i] == _NOTHING), default=-1)
    if line >= 0:
        return [abort._replace(line=line, order=line - 0.5, thrown=None)]
    said = (one for one in found if one.thrown is not None and one.thrown.type == "Fatal error" and one.rule is None)
    return [one._replace(rank=abort.rank, rule=abort.rule) for one in said if one.line < abort.line]


def _before_death(found: list[_Candidate]) -> list[_Candidate]:
    """Leave out who could not reach, or waited in vain for, a process whose death was told before: that follows."""
    deaths = [one.order for one in found if one.rule is not None and one.rule.id in _KILLED]
    first = min(deaths, default=None)
    if first is None:
        return found
    return [one for one in found if one.order <= first or one.rule is None or one.rule.failure_class not in _IN_VAIN]


def _severe_words(seen: list[_Line], marks: Sequence[Mark]) -> bool:
    """Whether a line at a level of failure says something of its own."""
    return any(mark.level in _SEVERE and line.role is not Role.CASCADE for mark, line in zip(marks, seen, strict=False))


def _judge(hits: tuple[Rule, ...]) -> _Line:
    """Choose the rule that speaks: a benign look-alike silences all, a cascade all but a specific cause."""
    if not hits:
        return _NOTHING
    roles = {rule.role for rule in hits}
    if Role.CONTEXT in roles:
        return _NOTHING
    best: Rule | None = None
    for rule in hits:
        if rule.role in (Role.ROOT, Role.CONFIRMATION) and (best is None or rule.rank > best.rank):
            best = rule
    if Role.CASCADE in roles and (best is None or (best.role is Role.ROOT and best.rank < HIGHEST_RANK)):
        return _Line(None, Role.CASCADE)
    return _Line(best, Role.CONFIRMATION if best and best.role is Role.CONFIRMATION else Role.CASCADE)


def _spans(chain: tuple[Thrown, ...], count: int) -> list[range]:
    """Lines that each exception of the chain takes: its own and those of its message."""
    return [range(t.line, min(count, t.line + 1 + t.message.count("\n"))) for t in chain]


def _slots(chain: tuple[Thrown, ...]) -> list[int]:
    """Places in the order of telling: the first cause takes the first, even if the format prints it last."""
    return sorted(t.line for t in chain)


def _from_chain(chain: tuple[Thrown, ...], rules: Rules, text: str) -> list[_Candidate]:
    found: list[_Candidate] = []
    unknown = True  # whether every exception so far was one that no rule knows
    for thrown, slot in zip(chain, _slots(chain), strict=True):
        said = _of_exception(thrown, rules, text)
        if said.best is not None:
            found.append(_Candidate(said.best.rank, said.confirms, slot - 0.5, thrown.line, said.best, thrown))
        elif unknown and said.role is Role.ROOT:
            found.append(_Candidate(FIRST_CAUSE_RANK, False, slot - 0.5, thrown.line, None, thrown))
            unknown = False
    return found


def _of_exception(thrown: Thrown, rules: Rules, text: str) -> _Line:
    """Judge an exception by its first line, then by its whole message, where advice must not silence the rest."""
    first, _, rest = thrown.message[:_MESSAGE].partition("\n")
    hits = rules.match(f"{thrown.type}: {first}", text)
    said = _judge(hits)
    if said.best is None and rest:
        whole = rules.match(f"{thrown.type}: {first} {rest}".replace("\n", " "), text)
        said = _judge(tuple(rule for rule in whole if rule.role is not Role.CONTEXT))
    return said if said.best or hits else _Line(None, Role.ROOT)


def _from_lines(
    seen: list[_Line], spans: list[range], chain: tuple[Thrown, ...], marks: Sequence[Mark]
) -> list[_Candidate]:
    graded = any(mark.level in _SEVERE for mark in marks)
    slots = _slots(chain)
    death = max((i for i, line in enumerate(seen) if line.best is not None and line.best.id in _DEATHS), default=-1)
    found: list[_Candidate] = []
    for i, line in enumerate(seen):
        rule = line.best
        if rule is None:
            continue
        place = next((n for n, span in enumerate(spans) if i in span), None)
        thrown = None if place is None else chain[place]
        order: float = i if place is None else slots[place]
        rank: float = rule.rank
        if graded and thrown is None and rule.role is Role.ROOT:
            rank = max(0.5, rank - _BENIGN.get(marks[i].level or "", 0.0))
            if rule.rank == HIGHEST_RANK and i < death:  # apps log at any level why they abort
                rank = max(rank, BEFORE_DEATH_RANK)
        found.append(_Candidate(rank, line.confirms, order, i, rule, thrown))
    return found


def _rooted(best: _Candidate, lines: list[str], seen: list[_Line], parsed: Parsed) -> Root:
    rule, thrown, shown = best.rule, best.thrown, phase_of(parsed)
    kind, message = (thrown.type, thrown.message) if thrown else head(lines[best.line])
    return Root(
        type=kind,
        message=meaningful(message),
        line=best.line,
        rule=rule.id if rule else "chain-first-cause",
        failure_class=in_circumstances(rule.failure_class, _stack(thrown, lines, parsed), shown) if rule else None,
        roles=_roles(best.line, rule, lines, seen, parsed),
        phase=(rule.phase if rule and not shown else None) or shown,
    )


def _stack(thrown: Thrown | None, lines: list[str], parsed: Parsed) -> str:
    """Return the innermost frames of the exception that is or follows the root, and the source lines under them."""
    if thrown is None:
        if not parsed.chain:
            return ""
        thrown = parsed.chain[-1]
    frames = " ".join(f"{f.module}.{f.function}" for f in thrown.frames[-_INNERMOST:])
    above = lines[max(0, thrown.line - _INNERMOST) : thrown.line]
    return f"{frames} {' '.join(line for line in above if line.startswith(_SOURCE))}"


def _fallback(lines: list[str], seen: list[_Line], parsed: Parsed, marks: Sequence[Mark]) -> Root:
    """Choose a line where no rule knows a cause: an exception, the highest level, the death, the first words."""
    why, line, thrown = "first-line", _first_words(lines), None
    highest = _highest_level(lines, seen, marks)
    if parsed.chain:
        why, thrown = "chain-first-cause", parsed.chain[0]
        line = thrown.line
    elif highest is not None:
        why, line = "highest-level-line", highest
    elif parsed.signal or parsed.exit_code is not None:
        why, line = "signal-or-exit-line", _death_line(lines, parsed)
    kind, message = (thrown.type, thrown.message) if thrown else head(lines[line])
    return Root(
        type=kind,
        message=meaningful(message),
        line=line,
        rule=why,
        failure_class=_SIGNAL_CLASS.get(parsed.signal or "") if why == "signal-or-exit-line" else None,
        roles=_roles(line, None, lines, seen, parsed),
        phase=phase_of(parsed),
    )


def _first_words(lines: list[str]) -> int:
    return next((i for i, line in enumerate(lines) if line.strip()), 0)


def _highest_level(lines: list[str], seen: list[_Line], marks: Sequence[Mark]) -> int | None:
    """Return the last line at the highest level from ``WARN`` up; a cascade only where there is nothing else."""
    grades = [
        (-_LEVELS.index(mark.level), seen[i].role is not Role.CASCADE, i)
        for i, mark in enumerate(marks[: len(lines)])
        if mark.level in _LEVELS and lines[i].strip()
    ]
    return max(grades)[2] if grades else None


def _death_line(lines: list[str], parsed: Parsed) -> int:
    words = re.compile(
        rf"{re.escape(parsed.signal or 'signal')}|\bexit(?:ed)?\b.*\b{parsed.exit_code}\b", re.IGNORECASE
    )
    return next((i for i, line in enumerate(lines) if words.search(line)), _first_words(lines))


def _roles(root: int, rule: Rule | None, lines: list[str], seen: list[_Line], parsed: Parsed) -> tuple[Role, ...]:
    """Give every line its role: what tells of the same kind again confirms, what tells of another follows."""
    roles = [line.role for line in seen]
    own = lines[root].strip()
    for i, line in enumerate(seen):
        same = rule is not None and line.best is not None and line.best.failure_class == rule.failure_class
        if same or (own and lines[i].strip() == own):
            roles[i] = Role.CONFIRMATION
        elif line.best is not None and line.role is Role.CASCADE and i < root:
            roles[i] = Role.CONTEXT
    for thrown in parsed.chain:
        if roles[min(thrown.line, len(roles) - 1)] is Role.CONTEXT:
            roles[min(thrown.line, len(roles) - 1)] = Role.CASCADE
    roles[root] = Role.ROOT
    return tuple(roles)
