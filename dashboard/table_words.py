"""What the tables of a store hold, in the words of docs/words.md."""

from __future__ import annotations

WORDS = {
    "night": "nights",
    "source": "sources (log files read)",
    "crash": "crashes",
    "variant": "variants",
    "signature": "signatures",
    "cluster": "clusters",
    "cluster_event": "changes of clusters (born, joined, classed, …)",
    "embedding": "texts with a vector of the encoder",
    "exemplar": "texts kept as examples",
    "crash_daily": "daily counts of crashes",
    "failed_daily": "daily counts of failed attempts",
    "failed_cohort": "their sums by cohort",
    "stale_day": "days whose failed attempts are to be counted anew",
    "heard": "cohorts that log sources told of",
    "told": "things that digests told, or have still to tell",
    "quarantine": "pieces in quarantine",
    "attempts": "counts of attempts",
    "event_batch": "batches of attempts that the runtime told of",
    "decision": "decisions that people took",
    "drill": "drills",
    "coverage_run": "runs whose path coverage was measured",
    "coverage_hit": "parts of the paths that those runs touched",
    "review": "release reviews",
    "lease": "nights that hold or left a lease",
    "project": "projects",
}
"""By table, in the order in which they come about."""
