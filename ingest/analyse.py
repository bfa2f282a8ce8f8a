"""One record to all that ingest knows of it: redact, parse, find the root line, sign.

A night repeats itself: most records differ from an earlier one only in what stood before the lines (time, process),
which the splitter has taken off. What was worked out for a text is therefore kept by the digest of that text.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from hashlib import blake2b

from crashpath.ingest.entries import end_messages
from crashpath.ingest.event_text import event_root
from crashpath.ingest.model import Analysis, Facts, Parsed, Record, Role, Root, Signature, Variant
from crashpath.ingest.parse import parse
from crashpath.ingest.phases import in_circumstances
from crashpath.ingest.piece import Format
from crashpath.ingest.redact import redact
from crashpath.ingest.root import find_root
from crashpath.ingest.rows import storable_variant
from crashpath.ingest.rules import Rules
from crashpath.ingest.signature import make_variant, sign

MEMO_ENTRIES = 8192
_UNREAD_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class _Known:
    """What depends on the text alone, and so is the same for every record that has it."""

    text: str
    redactions: int
    parsed: Parsed
    root: Root
    variant: Variant
    signature: Signature


class Analyser:
    """Analyses records with one set of root rules; with redaction where a store is fed."""

    def __init__(self, rules: Rules, *, redacting: bool, memo_entries: int = MEMO_ENTRIES) -> None:
        self._rules = rules
        self._redacting = redacting
        self._memo: OrderedDict[bytes, _Known] = OrderedDict()
        self._memo_entries = memo_entries

    def analyse(self, record: Record) -> Analysis:
        """Return the analysis of a record; with redaction, the record in it has the redacted text."""
        key = _digest(record)
        known = self._memo.get(key)
        if known is None:
            known = self._known(record)
            self._memo[key] = known
            if len(self._memo) > self._memo_entries:
                self._memo.popitem(last=False)
        else:
            self._memo.move_to_end(key)
        facts = record.facts.over(Facts(phase=known.root.phase))
        root = known.root
        if facts.phase != root.phase:  # who wrote the record knows what was going on, where the stack does not show it
            root = replace(root, failure_class=in_circumstances(root.failure_class, "", facts.phase))
        return Analysis(
            record=replace(record, text=known.text, facts=facts),
            parsed=known.parsed,
            root=root,
            variant=known.variant,
            signature=known.signature,
            redactions=known.redactions,
        )

    def _known(self, record: Record) -> _Known:
        """Work a record out; one that a parser or a rule cannot stand is kept as plain text, and says so in its rule.

        A night that died of one record would die of it every night.
        """
        try:
            return self._work_out(record)
        except Exception as error:  # noqa: BLE001  the one record boundary of ingest: nothing is dropped
            return self._unread(record, f"defect:{type(error).__name__}")

    def _unread(self, record: Record, rule: str) -> _Known:
        redacted = redact(record.text)
        text = redacted.text if self._redacting else record.text
        parsed = Parsed(Format.PLAIN)
        lines = text.split("\n")
        at = next((n for n, line in enumerate(lines) if line.strip()), 0)
        roles = tuple(Role.ROOT if n == at else Role.CONTEXT for n in range(len(lines)))
        root = Root("", lines[at].strip()[:_UNREAD_CHARACTERS], at, rule, None, roles)
        variant = storable_variant(make_variant(parsed, root))
        redactions = sum(n for _, n in redacted.counts) if self._redacting else 0
        return _Known(text, redactions, parsed, root, variant, sign(variant))

    def _work_out(self, record: Record) -> _Known:
        text, redactions = record.text, 0
        if self._redacting:
            redacted = redact(text)
            text, redactions = redacted.text, sum(n for _, n in redacted.counts)
        # A redacted key block is fewer lines than it was, and then the marks no longer belong to the lines.
        marks = record.marks if text.count("\n") == record.text.count("\n") else ()
        parsed = end_messages(parse(text), text, marks)
        root = event_root(text) or find_root(text, parsed, self._rules, marks)
        variant = storable_variant(make_variant(parsed, root))
        return _Known(text, redactions, parsed, root, variant, sign(variant))


def _digest(record: Record) -> bytes:
    """Digest of the text, and of what parsers and root rules see of the marks: levels, and which lines have a time."""
    state = blake2b(record.text.encode("utf-8", "surrogatepass"), digest_size=16)
    for mark in record.marks:
        state.update((mark.level or "").encode() + (b"\0" if mark.at is None else b"\1"))
    return state.digest()
