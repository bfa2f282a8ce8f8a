"""Three failures whose story is planted into the nights: an upgrade rewords one, one turns out to be two, two are one.

Each is a traceback of one code base, with other values every night. The one that is two begins under the same words and
says one word more of its cause every few nights; the two that are one are told by two parts under other words until a
release has both print one sentence.
"""

from __future__ import annotations

import random
from datetime import datetime

REWORD, SPLIT, MERGE = "story-reword", "story-split", "story-merge"
SIDES = (f"{SPLIT}-a", f"{SPLIT}-b")
PARTS = (f"{MERGE}-a", f"{MERGE}-b")
STORIES = (REWORD, SPLIT, *SIDES, MERGE, *PARTS)
FAMILY = {SPLIT, *SIDES}
"""Before the one failure was two, its crashes may be with either."""
_NAMES = ("atlas", "borealis", "comet", "dune", "elm", "fjord", "grove", "heron", "iris", "juniper", "krill", "lark")
_SPLITTING = {
    SIDES[0]: ("tenant", "credit", "expired", "before", "midnight"),
    SIDES[1]: ("replica", "lease", "moved", "after", "failover"),
}


def stories(time: float, at: datetime, rng: random.Random) -> list[tuple[str, str]]:
    """Return truth and log of what the stories print at a time of 0 … 1."""
    out = []
    shard = rng.randrange(10_000, 99_999)
    old = f"checkpoint shard {shard} does not match the index that the exporter wrote"
    new = f"the index that the exporter wrote differs from checkpoint shard {shard}"
    out.append((REWORD, _trace("RuntimeError", new if time > 0.5 else old, "read_shard", at, rng)))
    step = min(5, int(max(0.0, time - 0.3) / 0.1))  # one more word is another from night 24, 30, 36 … of 60
    for side in SIDES:
        words = ["scheduler", "refused", "this", "batch", "because", "queue", "quota", "was", "spent", "already"]
        words[5 : 5 + step] = _SPLITTING[side][:step]
        out.append((side if step > 2 else SPLIT, _trace("SchedulerError", " ".join(words), "submit", at, rng)))
    one = f"tensor arena of {shard} bytes exhausted while planning the decoder graph"
    two = f"planner of the decoder graph ran out of arena space for tensors ({shard} bytes)"
    both = f"tensor arena exhausted: planner of the decoder graph needs space for {shard} bytes"
    if time > 0.6:
        out.append((MERGE, _trace("PlanError", both, "plan", at, rng)))
    else:
        out.append((PARTS[0], _trace("PlanError", one, "plan", at, rng)))
        if time > 0.15:
            out.append((PARTS[1], _trace("PlanError", two, "plan", at, rng)))
    return out


def at_the_end(truth: str) -> str:
    """Return which failure a crash is, seen from the end: the two that became one are one."""
    return MERGE if truth in PARTS else truth


def _trace(kind: str, message: str, function: str, at: datetime, rng: random.Random) -> str:
    line, name = rng.randint(10, 400), rng.choice(_NAMES)
    return (
        f"{at:%Y-%m-%d %H:%M:%S},{rng.randint(100, 999)} ERROR {name}: request failed\n"
        f'Traceback (most recent call last):\n  File "/srv/{name}/engine/core.py", line {line}, in {function}\n'
        f"    return self.backend.{function}(batch)\nengine.errors.{kind}: {message}\n"
    )
