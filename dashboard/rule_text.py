"""What the rule that chose a root line says, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from crashpath.ingest.event_text import RULE as EVENT_RULE
from crashpath.ingest.rules import Rule, load_rules

RANKS = {
    4: "such a line states a specific cause",
    3: "such a line states the kind of failure, which something else may have set off",
    2: "such a line states a symptom",
    1: "such a line says only that something failed",
}
WITHOUT = {
    "chain-first-cause": "no rule knows a cause here: the first cause in the chain of exceptions",
    "highest-level-line": "no rule knows a cause here: the line at the highest level",
    "signal-or-exit-line": "no rule knows a cause here: the line that tells how the process died",
    "first-line": "no rule knows a cause here: the first words",
    EVENT_RULE: "the runtime's own event names its class",
}
"""How a root line is chosen where no rule of the files decides."""


def rule_words(rule: str) -> Iterator[str]:
    """Return the rule's id with what it says, whose words it knows, and a line that it was written for."""
    known = _rules().get(rule)
    if known is None:
        if rule.startswith("defect:"):
            yield f"{rule}: the record could not be worked out and was kept as plain text"
        else:
            yield f"{rule}: {WITHOUT.get(rule, 'a rule that this version of crashpath does not have')}"
        return
    told = f", and tells of {known.failure_class}" if known.failure_class else ""
    of = f" (in the words of {', '.join(known.libraries)})" if known.libraries else ""
    witness = "; a second witness, root where nothing else is" if known.role.value == "confirmation" else ""
    yield f"rule {rule}: {RANKS.get(known.rank, 'it is weighed by its rank')}{told}{of}{witness}"
    if known.needs:
        yield f"it speaks only in a record that holds {known.needs}"
    if known.yes:
        yield f"written for lines such as: {known.yes[0]}"


@lru_cache(maxsize=1)
def _rules() -> dict[str, Rule]:
    return {rule.id: rule for rule in load_rules()}
