"""What ``crashpath show`` says, in lines of at most ``WIDTH`` columns with a style each. Text of logs is inert."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from crashpath.dashboard.decide_text import entry, muted, resolved
from crashpath.dashboard.inert import inert
from crashpath.dashboard.joined_text import joined, terms_words
from crashpath.dashboard.lineage_text import happened
from crashpath.dashboard.nearness import Near
from crashpath.dashboard.plurals import many
from crashpath.dashboard.rule_text import rule_words
from crashpath.ingest.decisions import Taken
from crashpath.ingest.details import ClusterDetail, CrashDetail, Event, Example, SignatureDetail
from crashpath.ingest.model import Role, Signature
from crashpath.ingest.signature import explain

WIDTH = 80
MARKS = {Role.ROOT: "> ", Role.CASCADE: "~ ", Role.CONFIRMATION: "+ ", Role.CONTEXT: "  "}
STYLES = {Role.ROOT: "bold", Role.CASCADE: "dim", Role.CONFIRMATION: "cyan", Role.CONTEXT: ""}
MOST_LINES = 40
MOST_CHARACTERS = 400
MOST_SIGNATURES = 10
MOST_EVENTS = 20

Line = tuple[str, str]
"""Text, and the style that it is shown in."""


def cluster_lines(found: ClusterDetail, near: Sequence[Near], decisions: Sequence[Taken]) -> Iterator[Line]:
    """A cluster: its class and why, its root line and why, its members and why, its neighbours, what happened to it."""
    row = found.row
    yield f"{row.id} · {row.failure_class} · {many(row.crashes, 'crash')}", "bold"
    yield from _wrapped(inert(row.name or row.root_line))
    if row.name:
        yield from _wrapped(inert(row.root_line), "  ")
    if row.status == "retired":
        yield "retired: it has no members any more", ""
    yield from _class(found)
    yield from _seen(found)
    largest = next((one for one in found.signatures if one.examples), None)
    if largest is not None:
        yield from _example(largest.examples[0])
        yield from _tree(largest)
    yield from _heading(many(len(found.signatures), "signature"))
    for one in found.signatures[:MOST_SIGNATURES]:
        yield f"  {one.id}  {many(one.crashes, 'crash')}{'  stands for the cluster' if one.is_exemplar else ''}", ""
        yield from _joined(one, "    ")
    if len(found.signatures) > MOST_SIGNATURES:
        yield f"  … and {len(found.signatures) - MOST_SIGNATURES:,} more (--json lists all)", ""
    yield from _near(near)
    yield from _lineage(found.events)
    yield from _decisions(decisions)


def signature_lines(found: SignatureDetail, near: Sequence[Near], decisions: Sequence[Taken]) -> Iterator[Line]:
    """A signature: what it is made of, why it is where it is, and what else is near."""
    yield f"{found.id} · {many(found.crashes, 'crash')} · cluster {found.cluster or 'none yet'}", "bold"
    yield f"keyed by {found.algorithm}; first seen {found.first_seen:%Y-%m-%d}, last {found.last_seen:%Y-%m-%d}", ""
    yield from _wrapped(f"compared by: {inert(found.text)}", "  ")
    if found.examples:
        yield from _example(found.examples[0])
    yield from _tree(found)
    yield from _heading("why it is in this cluster" if found.cluster else "not in a cluster yet")
    yield from _joined(found, "  ")
    yield from _near(near)
    yield from _decisions(decisions)


def crash_lines(found: CrashDetail) -> Iterator[Line]:
    """A crash: when, where, and its root line."""
    yield f"crash {found.id} · {found.at:%Y-%m-%d %H:%M:%S} UTC · cluster {found.cluster}", "bold"
    yield from _wrapped(inert(f"{found.source} at byte {found.offset}"))
    facts = (found.release, found.platform, found.model, found.path, found.phase)
    yield from _wrapped(inert("release, platform, model, path, phase: " + ", ".join(facts)))
    yield from _wrapped(inert(f"root: {found.root_type}: {found.root_message}"))
    yield f"signature {found.signature_id}", ""
    if found.example is not None:
        yield from _example(found.example)
    else:
        yield from _rule(found.root_rule)
        yield "No text is kept of it.", ""


def _heading(title: str) -> Iterator[Line]:
    yield "", ""
    yield title, "bold"


def _wrapped(text: str, indent: str = "", first: str | None = None) -> Iterator[Line]:
    start = indent if first is None else first
    lines = textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)
    yield from ((line, "") for line in lines)


def _class(found: ClusterDetail) -> Iterator[Line]:
    yield class_words(found), ""
    for reason in found.evidence:
        yield from _wrapped(f"because {inert(reason)}", "    ", "  ")


def class_words(found: ClusterDetail) -> str:
    """Say which class a cluster has, and who gave it that."""
    row = found.row
    by = {"person": "a person", "rule": "a rule", "classifier": "the classifier"}.get(row.class_by, row.class_by)
    chance = "" if row.probability is None else f", probability {row.probability:.2f}"
    return f"class {row.failure_class}, given by {by}{chance}"


def _seen(found: ClusterDetail) -> Iterator[Line]:
    row = found.row
    if row.first_day is not None:
        told = f"first seen {row.first_day} in {row.first_release}, last {row.last_day} in {row.last_release}"
        yield from _wrapped(inert(told))
    for name, counts in (("release", found.by_release), ("platform", found.by_platform), ("path", found.by_path)):
        shown = ", ".join(f"{count.key} {count.crashes:,}" for count in counts)
        if shown:
            yield from _wrapped(inert(f"by {name}: {shown}"), "  ", "")
    if row.assignee:
        yield from _wrapped(inert(f"cared for by {row.assignee}"))
    if row.resolved_in:
        yield from _wrapped(inert(resolved(row.resolved_in)))
    if row.muted_until:
        yield muted(row.muted_until), ""
    if row.ticket:
        yield from _wrapped(inert(f"ticket {row.ticket}"))


def _example(example: Example) -> Iterator[Line]:
    """The text of a crash, its lines marked, and the rule that chose the root line."""
    yield from _heading(f"root line (crash {example.crash_id})")
    yield from _rule(example.rule)
    yield "> root   ~ cascade   + confirmation", "dim"
    lines = example.text.split("\n")
    first = max(0, min(example.root_line - MOST_LINES // 2, len(lines) - MOST_LINES))
    if first:
        yield f"  … {many(first, 'line')} before", "dim"
    for number, line in enumerate(lines[first : first + MOST_LINES], start=first):
        role = example.roles[number] if number < len(example.roles) else Role.CONTEXT
        yield from _log_line(line, MARKS[role], STYLES[role])
    if (behind := len(lines) - first - MOST_LINES) > 0:
        yield f"  … {many(behind, 'line')} behind", "dim"


def _log_line(line: str, mark: str, style: str) -> Iterator[Line]:
    shown = inert(line[:MOST_CHARACTERS]) + ("…" if len(line) > MOST_CHARACTERS else "")
    room = WIDTH - len(mark)
    for start in range(0, max(1, len(shown)), room):
        yield (mark if not start else "  ") + shown[start : start + room], style


def _rule(rule: str) -> Iterator[Line]:
    for sentence in rule_words(rule):
        yield from _wrapped(inert(sentence), "    ", "  ")


def _tree(one: SignatureDetail) -> Iterator[Line]:
    yield from _heading("made of")
    for line in explain(Signature(one.id, one.text, one.tree), WIDTH - 2).split("\n"):
        yield f"  {inert(line)}", ""


def _joined(one: SignatureDetail, indent: str) -> Iterator[Line]:
    """How a signature came to its cluster, and what it was compared with."""
    told = joined(one)
    yield from _wrapped(told.how, indent + "  ", indent)
    if told.why:
        yield from _wrapped(inert(told.why), indent + "    ", indent + "  ")
    yield from _terms(told.terms, indent + "  ")


def _terms(terms: Iterable[str], indent: str) -> Iterator[Line]:
    for words in terms:
        yield from _wrapped(inert(words), indent + "  ", indent)


def _near(near: Sequence[Near]) -> Iterator[Line]:
    if not near:
        return
    yield from _heading("nearest other clusters")
    for one in near:
        yield from _wrapped(inert(f"{one.cluster} at distance {one.distance:.2f}: {one.label}"), "    ", "  ")
        if one.contradicts:
            yield from _wrapped(f"never one with it: {inert('; '.join(one.contradicts))}", "      ", "    ")
        yield from _terms(terms_words(one.shared, one.differing), "    ")


def _lineage(events: Sequence[Event]) -> Iterator[Line]:
    if not events:
        return
    yield from _heading("what happened to it")
    if len(events) > MOST_EVENTS:
        yield f"  … {many(len(events) - MOST_EVENTS, 'event')} before (--json lists all)", ""
    for event in events[-MOST_EVENTS:]:
        yield from _wrapped(inert(f"{event.at:%Y-%m-%d} {happened(event)}"), " " * 13, "  ")


def _decisions(decisions: Sequence[Taken]) -> Iterator[Line]:
    if not decisions:
        return
    yield from _heading("what people decided")
    for row in decisions:
        yield from _wrapped(inert(entry(row)), "      ", "  ")
