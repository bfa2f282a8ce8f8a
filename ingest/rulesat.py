"""Which prefix rules can fit at a place in a line, told from a few characters there."""

from __future__ import annotations

from string import digits
from typing import NamedTuple

from crashpath.ingest.prefixes import FIELD_RULES, LEVEL_FIRST, LINE_RULES, Rule

_WORDS = ("TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERR", "FATAL", "CRITICAL", "SEVERE")
THIRDS = {**dict.fromkeys(digits, "0"), "-": "-", "/": "-", ":": ":"}


class Rules(NamedTuple):
    """The rules that may fit after one character; with a level in full there, or by the third character, others."""

    all: tuple[Rule, ...]
    worded: tuple[Rule, ...] | None
    thirds: dict[str, tuple[Rule, ...]] | None


Table = dict[str, Rules]


def rules_at(table: Table, line: str, at: int) -> tuple[Rule, ...] | None:
    """Return the rules of a table that can fit here, ``None`` for none."""
    rules = table.get(line[at : at + 1])
    if rules is None:
        return None
    if rules.thirds is not None:
        return rules.thirds.get(line[at + 2 : at + 3], rules.all)
    if rules.worded is not None and line.startswith(_WORDS, at):
        return rules.worded
    return rules.all


def _table(rules: tuple[Rule, ...]) -> Table:
    thirds = {
        char: tuple(rule for rule in rules if "0" in rule.chars and kind in rule.third) for char, kind in THIRDS.items()
    }
    table: Table = {}
    for char in {char for rule in rules for char in rule.chars}:
        fit = tuple(rule for rule in rules if char in rule.chars)
        if char in digits:
            table[char] = Rules(tuple(rule for rule in fit if " " in rule.third), None, thirds)
        elif char in LEVEL_FIRST:
            table[char] = Rules(tuple(rule for rule in fit if not rule.worded), fit, None)
        else:
            table[char] = Rules(fit, None, None)
    return table


START = _table(LINE_RULES)
AFTER = _table(FIELD_RULES + LINE_RULES)
