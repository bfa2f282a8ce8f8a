"""Take off what loggers, runtimes and collectors put in front of a line: time, level, process, container, host.

Prefixes stack (container runtime, then worker, then logger), so rules are tried again on what is left. Which rules are
tried depends on one character and a substring, so a line without prefix costs no regular expression. A rule takes off
only what a logger wrote; where a line might mean it (an exception type, an error code), the line stays whole.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from crashpath.ingest.known import recall, remember
from crashpath.ingest.prefixes import ANSI, BARE_COLOUR, Rule
from crashpath.ingest.rulesat import AFTER, START, rules_at

LEVELS: Final = {
    **dict.fromkeys(("T", "V", "TRACE", "VERBOSE"), "TRACE"),
    **dict.fromkeys(("D", "DEBUG"), "DEBUG"),
    **dict.fromkeys(("I", "INFO", "INFORMATION", "NOTICE", "LOG"), "INFO"),
    **dict.fromkeys(("W", "WARN", "WARNING"), "WARNING"),
    **dict.fromkeys(("E", "ERR", "ERROR", "SEVERE"), "ERROR"),
    **dict.fromkeys(("F", "A", "C", "FATAL", "CRITICAL", "CRIT", "EMERG", "ALERT", "PANIC", "DPANIC"), "FATAL"),
}
"""Level words of the field and the one word that marks carry for them."""

ERROR_LEVELS: Final = frozenset({"ERROR", "FATAL"})
_MOST_PREFIXES = 8
_LOGFMT_FIELD = re.compile(r'([A-Za-z_][\w.]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?:\s+|$)')
_LOGFMT_STARTS = ("time=", "ts=", "t=", "level=", "lvl=", "timestamp=")
_ESCAPES = {"n": "\n", "t": "\t", "r": ""}
_ESCAPE = re.compile(r"\\(.)")


class Stripped(NamedTuple):
    """A line without what stood in front of it. ``writer`` joins stacked writers, outermost first, by `` > ``."""

    text: str
    level: str | None = None
    writer: str | None = None
    stamp: str | None = None
    host: str | None = None


def level_of(word: str) -> str | None:
    """Return the one word for a level in any logger's spelling, ``None`` for a word that is none."""
    return LEVELS.get(word.upper())


def strip_line(line: str) -> Stripped:
    """Return the line without colours and prefixes, and what they said. ``text`` of a logfmt line may have newlines."""
    line = _without_colours(line)
    rules = rules_at(START, line, 0)
    if rules is None:
        return _logfmt(Stripped(line)) if line.startswith(_LOGFMT_STARTS) else Stripped(line)
    known = recall(line)
    if known is not None:
        end = known.end
        after = rules_at(known.table, line, end)
        if after is None or _first(after, line, end) is None:
            stripped = Stripped(line[end:], known.level, known.writer, known.stamp)
            return _logfmt(stripped) if line.startswith(_LOGFMT_STARTS, end) else stripped
    return _strip(line, rules)


def _strip(line: str, rules: tuple[Rule, ...] | None) -> Stripped:
    level = stamp = host = writer = None
    spans: list[tuple[int, int]] = []
    alone = True
    at = 0
    table = START
    for _ in range(_MOST_PREFIXES):
        hit = _first(rules, line, at) if rules else None
        if hit is None:
            break
        rule, found = hit
        if rule.level and (value := found[rule.level]):
            level = LEVELS.get(value) or LEVELS.get(value.upper(), level)
        if rule.stamp:
            stamp = stamp or found[rule.stamp]
        if rule.host:
            host = host or found[rule.host]
        if rule.writer and (value := found[rule.writer]):
            writer = f"{writer} > {value}" if writer else value
            spans.append(found.span(rule.writer))
        if rule.kept:
            alone = False
            break
        alone = alone and rule.alone
        at = found.end()
        table = AFTER if rule.more else START
        rules = rules_at(table, line, at)
    if alone and at:
        remember(line[:at], table, level, stamp, writer, spans)
    stripped = Stripped(line[at:], level, writer, stamp, host)
    return _logfmt(stripped) if line.startswith(_LOGFMT_STARTS, at) else stripped


def _first(rules: tuple[Rule, ...], line: str, at: int) -> tuple[Rule, re.Match[str]] | None:
    for rule in rules:
        if rule.needle in line:
            found = rule.match(line, at)
            if found is not None:
                return rule, found
    return None


def _without_colours(line: str) -> str:
    if "\x1b" in line:
        return ANSI.sub("", line)
    if "[0m" in line:  # colours whose escape character was lost on the way
        return BARE_COLOUR.sub("", line)
    return line


def _logfmt(line: Stripped) -> Stripped:
    """Read ``time=… level=… msg="…" error="…"``: message and error are the text, the rest of it stays behind."""
    fields = {key: _unquoted(value) for key, value in _LOGFMT_FIELD.findall(line.text)}
    message = fields.get("msg") or fields.get("message")
    if message is None:
        return line
    said = [message]
    said += [
        fields[key] for key in ("error", "err", "cause", "reason") if fields.get(key) and fields[key] not in message
    ]
    text = ": ".join(said)
    for key in ("stack", "stacktrace", "exception"):
        if fields.get(key):
            text += "\n" + fields[key]
    stamp = line.stamp or fields.get("time") or fields.get("ts") or fields.get("timestamp") or fields.get("t")
    level = level_of(fields.get("level") or fields.get("lvl") or "") or line.level
    return Stripped(text, level, line.writer, stamp, line.host)


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    return _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), value[1:-1])
