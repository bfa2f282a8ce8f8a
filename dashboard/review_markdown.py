"""A release review as Markdown for the comment of a pull request: the verdict, why, rates, what moved, the policy.

Text of logs and people stays text: it makes no link, no table, no HTML, and calls nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from crashpath.dashboard import review_words as words
from crashpath.dashboard.review_model import Reason, Review, UnitReport
from crashpath.dashboard.review_tables import (
    Table,
    apart_lines,
    classes_table,
    cohort_problems,
    cohorts_table,
    movements_table,
    proof_lines,
    rates_table,
    shares_table,
    thresholds_table,
)

MOST = 58_000
"""Characters; what a comment may have on the usual hosts is 65,536."""
MOST_ROWS, MOST_COHORTS, MOST_REASONS = 40, 10, 20
_MOST_CELL = 200
_SPECIAL = re.compile(r"([\\`*_\[\]<#|~&$]|^[-+>=]|(?<=^\d)[.)]|(?<=^\d\d)[.)])")
_CALLS = re.compile(r"@|#(?=\d)|(?i:(?<=\bGH)-)|:(?=/)|(?i:(?<=www)\.)")
_APART = "&#8203;"
"""A space without a width. Hosts look for people, issues and addresses in what is shown, so a backslash is no help."""
_CUT = "\n… The rest did not fit: `crashpath review` with `--json` or `--html` has all.\n"


def markdown(review: Review) -> str:
    """Return the comment, of at most ``MOST`` characters: a section that does not fit is left out, and that is said."""
    parts: list[str] = []
    room, left = MOST - len(_CUT), ""
    for section in _sections(review):
        block = "\n".join(section) + "\n\n"
        if len(block) > room:
            left = _CUT
            continue
        parts.append(block)
        room -= len(block)
    return "".join(parts).rstrip() + "\n" + left


def safe(text: str, most: int = _MOST_CELL) -> str:
    """Return text of logs or people that is shown as it is, on one line."""
    escaped = _SPECIAL.sub(r"\\\1", words.clean(text, most))
    return _CALLS.sub(lambda found: found[0] + _APART, escaped)


def span(text: str, most: int = _MOST_CELL) -> str:
    """Return text in a code span that none of its own backticks can end; nothing for no text."""
    line = words.clean(text, most)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    return f"{fence} {line} {fence}" if "`" in line else f"`{line}`" if line else ""


def _sections(review: Review) -> Iterator[list[str]]:
    yield _head(review)
    yield from _reasons(review)
    for unit in sorted(review.units, key=lambda one: one.unit != review.unit):
        yield _rates(unit)
    if review.movements:
        yield ["### What moved", "", *table(movements_table(review), MOST_ROWS)]
    yield from (folded(title, lines) for title, lines in _folded(review) if lines)


def _head(review: Review) -> list[str]:
    verdict, _, decided = words.verdict_words(review).partition(", ")
    lines = [f"## {verdict}" + (f", {safe(decided, 400)}" if decided else "")]
    lines += ["", safe(words.subject_line(review)), safe(words.look_line(review))]
    if review.attempts_needed and str(review.outcome) == "HOLD":
        lines += ["", f"A verdict is likely with {words.needed_words(review.attempts_needed, review.unit)}."]
    return lines


def _reasons(review: Review) -> Iterator[list[str]]:
    yield ["### Reasons"] if review.reasons else ["### Reasons", "", words.no_reason(review)]
    for reason in review.reasons[:MOST_REASONS]:
        yield _reason(reason)
    if len(review.reasons) > MOST_REASONS:
        yield [f"- … and {len(review.reasons) - MOST_REASONS:,} more"]


def _reason(reason: Reason) -> list[str]:
    told = words.reason_weight(reason)
    lines = [f"- **{reason.verdict}** {safe(words.reason_title(reason))}: {safe(reason.sentence, 400)}"]
    lines += [f"  ({told})"] if told else []
    lines += ["  evidence: " + ", ".join(span(one, 60) for one in reason.evidence[:10])] if reason.evidence else []
    return lines + ([f"  → {span(reason.command, 400)}"] if reason.command else [])


def _rates(unit: UnitReport) -> list[str]:
    lines = [f"### Rates by {safe(unit.unit, 40)}", "", *table(rates_table(unit), MOST_ROWS)]
    problems = cohort_problems(unit)
    lines += ["", *(f"- {safe(one)}" for one in problems[:MOST_COHORTS])] if problems else []
    return lines + ([f"- … and {len(problems) - MOST_COHORTS:,} more"] if len(problems) > MOST_COHORTS else [])


def _folded(review: Review) -> Iterator[tuple[str, list[str]]]:
    limits = thresholds_table(review)
    yield f"{limits.caption}: {len(limits.rows):,}", table(limits, MOST_ROWS)
    if review.main is not None:
        cohorts, classes = cohorts_table(review.main), classes_table(review.main)
        yield cohorts.caption, table(cohorts, MOST_COHORTS)
        yield classes.caption, table(classes, MOST_ROWS)
    yield "Apart: on no denominator", _listed(apart_lines(review))
    covered = table(shares_table(review.proof), MOST_ROWS)
    yield "Proof: coverage and drills", [*covered, "", *_listed(proof_lines(review.proof))]
    yield "Overrides", _listed([words.override_words(one) for one in review.overrides])
    yield "Notes and method", _listed([*review.notes, *words.method_lines(review)])


def _listed(sentences: Sequence[str]) -> list[str]:
    lines = [f"- {safe(one, 400)}" for one in sentences[:MOST_ROWS]]
    return lines + ([f"- … and {len(sentences) - MOST_ROWS:,} more"] if len(sentences) > MOST_ROWS else [])


def folded(title: str, lines: Sequence[str]) -> list[str]:
    """Return a section that opens when it is asked for."""
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]


def table(one: Table, most: int) -> list[str]:
    """Return the first rows of a table; nothing of one without rows."""
    if not one.rows:
        return []
    lines = [_row([column.name for column in one.columns])]
    lines.append("|" + "|".join("---:" if column.number else "---" for column in one.columns) + "|")
    for place, row in enumerate(one.rows[:most]):
        cells = [safe(cell) for cell in row]
        lines.append(_row([f"**{cells[0]}**" if place in one.strong and cells[0] else cells[0], *cells[1:]]))
    return lines + (["", f"… and {len(one.rows) - most:,} more"] if len(one.rows) > most else [])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
