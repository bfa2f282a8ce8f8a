"""What ``crashpath review`` prints: the verdict, why, and every figure behind it, in at most ``WIDTH`` columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from crashpath.dashboard.review_model import Reason, Review, UnitReport, Verdict
from crashpath.dashboard.review_tables import (
    Column,
    apart_lines,
    classes_table,
    cohort_problems,
    cohorts_table,
    looks_table,
    movements_table,
    ordered,
    proof_lines,
    rates_table,
    shares_table,
    thresholds_table,
)
from crashpath.dashboard.review_words import (
    MEANING,
    NO_BREACH,
    clean,
    look_line,
    method_lines,
    needed_words,
    no_reason,
    override_words,
    reason_title,
    reason_weight,
    subject_line,
    verdict_words,
)

WIDTH = 80
MOST = 20
"""Reasons, movements and notes that are listed."""
MOST_COHORTS, MOST_LOOKS, MOST_THRESHOLDS = 8, 5, 40
_LEAST_NAME = 20
_GAP = 2
STYLES = {Verdict.GO: "bold green", Verdict.NO_GO: "bold red", Verdict.HOLD: "bold yellow"}
_RESULTS = {"met": "green", "not met": "red", "not shown yet": "yellow", NO_BREACH: ""}

Line = tuple[str, str]
"""Text, and the style that it is shown in."""


def print_review(review: Review, console: Console) -> None:
    """Print a review for a person."""
    for words, style in lines(review):
        console.print(Text(words, style), no_wrap=True, overflow="ignore", crop=False, highlight=False)


def lines(review: Review) -> Iterator[Line]:
    """Yield the report in lines of at most ``WIDTH`` columns, each inert; numbers are never cut in two."""
    yield from _head(review)
    yield from _reasons(review)
    for unit in sorted(review.units, key=lambda one: one.unit != review.unit):
        yield from _unit(unit, unit.unit == review.unit)
    yield from _movements(review)
    yield from _thresholds(review)
    yield from _listed("Apart: on no denominator; it counts against a GO and for no NO-GO", apart_lines(review))
    yield from _proof(review)
    yield from _looks(review)
    yield from _listed("Notes", [clean(one) for one in review.notes])
    yield from _listed("Method", method_lines(review))


def _head(review: Review) -> Iterator[Line]:
    yield from wrapped(verdict_words(review), style=STYLES[review.outcome])
    yield from wrapped(subject_line(review))
    yield from wrapped(look_line(review))
    if review.attempts_needed and review.outcome is Verdict.HOLD:
        yield from wrapped(f"A verdict is likely with {needed_words(review.attempts_needed, review.unit)}.")


def _heading(title: str) -> Iterator[Line]:
    yield "", ""
    yield from wrapped(title, style="bold")


def _reasons(review: Review) -> Iterator[Line]:
    yield from _heading("Reasons")
    if not review.reasons:
        yield no_reason(review), ""
    for number, reason in enumerate(review.reasons[:MOST], 1):
        yield from _reason(number, reason)
    yield from _rest(len(review.reasons) - MOST)


def _reason(number: int, reason: Reason) -> Iterator[Line]:
    first = f"{number:>2}. {reason.verdict}  "
    yield from wrapped(f"{first}{reason_title(reason)}", "    ", STYLES[reason.verdict], first="")
    yield from wrapped(clean(reason.sentence), "    ")
    if weight := reason_weight(reason):
        yield from wrapped(weight, "    ")
    if reason.evidence:
        yield from wrapped("evidence: " + ", ".join(clean(one, 60) for one in reason.evidence), "    ")
    if reason.command:
        yield from command_lines(clean(reason.command))


def _unit(unit: UnitReport, main: bool) -> Iterator[Line]:
    yield from _heading(f"Rates by {clean(unit.unit, 40)}, with 95 % intervals")
    table = rates_table(unit)
    meanings = {str(measure): MEANING[measure] for measure, _ in ordered(unit)}
    rows: list[tuple[str, ...]] = []
    for measure, *rest in table.rows:
        if measure:
            rows.append((f"{measure}: {meanings[measure]}",))
        rows.append((f"  {rest[0]}", *rest[1:]))
    columns = (Column(""), *(Column("", number=i < 2) for i in range(3)))
    yield from grid(columns, rows)
    if unit.attempts_needed and not main:  # of the main one the head says it
        yield from wrapped(f"A verdict is likely with {needed_words(unit.attempts_needed, unit.unit)}.")
    if unit.cohorts:
        yield from _cohorts(unit)
    if unit.classes:
        yield from _classes(unit)


def _cohorts(unit: UnitReport) -> Iterator[Line]:
    table = cohorts_table(unit)
    yield from _heading(table.caption)
    yield from grid(table.columns, table.rows[:MOST_COHORTS], header=True)
    yield from _rest(len(table.rows) - MOST_COHORTS)
    problems = cohort_problems(unit)
    for one in problems[:MOST_COHORTS]:
        yield from wrapped(f"! {one}", "  ", "yellow", first="")
    yield from _rest(len(problems) - MOST_COHORTS)


def _classes(unit: UnitReport) -> Iterator[Line]:
    table = classes_table(unit)
    yield from _heading(table.caption)
    rows = [row if i in table.strong else (f"  {row[0]}", *row[1:]) for i, row in enumerate(table.rows)]
    rows = [(*row[:5], row[5].partition(" ")[0], row[6]) for row in rows]  # all are of the same attempts
    names = [Column("failed", True) if one.name == "failed of" else one for one in table.columns]
    yield from grid(names, rows, header=True, strong=table.strong)


def _movements(review: Review) -> Iterator[Line]:
    if not review.movements:
        return
    yield from _heading("What moved")
    for change, key, title, sentence, p in movements_table(review).rows[:MOST]:
        name = key if title == key else f"{key} · {title}"
        yield cut(f"{change:<9}  {name}"), "bold"
        yield from wrapped(sentence if p == "–" else f"{sentence}; {p}", "           ")
    yield from _rest(len(review.movements) - MOST)


def _thresholds(review: Review) -> Iterator[Line]:
    table = thresholds_table(review)
    if table.rows:
        yield from _heading(table.caption)
    for rule, subject, limit, measured, result in table.rows[:MOST_THRESHOLDS]:
        name = rule if subject == "–" else f"{rule} · {subject}"
        yield cut(f"{result:<{len(NO_BREACH)}}  {name}"), _RESULTS[result]
        yield from wrapped(f"{limit}: {measured}", " " * (len(NO_BREACH) + 2))
    yield from _rest(len(table.rows) - MOST_THRESHOLDS)


def _proof(review: Review) -> Iterator[Line]:
    yield from _heading("Proof: coverage and drills")
    table = shares_table(review.proof)
    yield from grid(table.columns, table.rows[:MOST], header=True) if table.rows else ()
    for line in proof_lines(review.proof)[:MOST]:
        yield from wrapped(line)
    yield from _rest(len(proof_lines(review.proof)) - MOST)


def _looks(review: Review) -> Iterator[Line]:
    table = looks_table(review)
    if table.rows:
        yield from _heading(table.caption)
        yield from grid(table.columns, table.rows[:MOST_LOOKS], header=True)
        yield from _rest(len(table.rows) - MOST_LOOKS)
    yield from _listed("Overrides", [override_words(one) for one in review.overrides])


def _listed(title: str, sentences: Sequence[str]) -> Iterator[Line]:
    if sentences:
        yield from _heading(title)
    for one in sentences[:MOST]:
        yield from wrapped(f"- {one}", "  ", first="")
    yield from _rest(len(sentences) - MOST)


def _rest(count: int) -> Iterator[Line]:
    if count > 0:
        yield f"  … and {count:,} more (--json and --html have all)", ""


def wrapped(text: str, indent: str = "", style: str = "", *, first: str | None = None) -> Iterator[Line]:
    """Yield text in lines; a word that is longer than a line is cut with an ellipsis, a figure stays with its sign."""
    room = WIDTH - cell_len(indent)
    line = indent if first is None else first
    for word in text.replace(" %", "\xa0%").split(" "):
        shown = cut(word.replace("\xa0", " "), room)
        if line.strip() and cell_len(line) + 1 + cell_len(shown) > WIDTH:
            yield line.rstrip(), style
            line = indent + shown
        else:
            line = f"{line} {shown}" if line.strip() else f"{line}{shown}"
    if line.strip():
        yield line.rstrip(), style


def command_lines(command: str) -> Iterator[Line]:
    """Yield a command that can be copied: a line ends in a backslash where it goes on, and never inside quotes."""
    line = "    →"
    for word in _shell_words(command):
        shown = cut(word, WIDTH - 8)
        if cell_len(line) + 1 + cell_len(shown) > WIDTH - 2:
            yield f"{line} \\", "cyan"
            line = "       " + shown
        else:
            line = f"{line} {shown}"
    yield line, "cyan"


def _shell_words(command: str) -> list[str]:
    words, word, quote = [], "", ""
    for character in command:
        if character in "'\"":
            quote = "" if quote == character else quote or character
        if character == " " and not quote:
            words.append(word)
            word = ""
        else:
            word += character
    return [one for one in (*words, word) if one]


def cut(text: str, most: int = WIDTH) -> str:
    """Return text of at most ``most`` columns, cut with an ellipsis."""
    return text if cell_len(text) <= most else set_cell_size(text, most - 1).rstrip() + "…"


def grid(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    header: bool = False,
    strong: frozenset[int] = frozenset(),
) -> Iterator[Line]:
    """Yield rows in columns; the first one is cut so that the others have room. A row of one cell is a title.

    The last columns are left out while there is no room for them.
    """
    names = [one.name for one in columns]
    full = [row for row in rows if len(row) > 1] + ([names] if header else [])
    widths = [max((cell_len(row[i]) for row in full), default=0) for i in range(len(columns))]
    least = min(widths[0], _LEAST_NAME)
    while len(widths) > 2 and _room(widths) < least:
        widths.pop()
    widths[0] = max(least, min(widths[0], _room(widths)))
    if header:
        yield _row(names, columns, widths), "dim"
    for place, row in enumerate(rows):
        yield (cut(row[0]) if len(row) == 1 else _row(row, columns, widths)), "bold" if place in strong else ""


def _room(widths: Sequence[int]) -> int:
    return WIDTH - sum(widths[1:]) - _GAP * (len(widths) - 1)


def _row(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    cells = []
    for cell, column, width in zip(row, columns, widths, strict=False):
        words = cut(cell, width)
        space = " " * (width - cell_len(words))
        cells.append(space + words if column.number else words + space)
    return (" " * _GAP).join(cells).rstrip()
