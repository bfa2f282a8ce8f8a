"""The pages that ``pages`` measures, and the filters of each."""

from __future__ import annotations

from pages_drive import PICTURE, Filter, Look, choose, choose_any, folded, press, write
from pages_store import OWNERS, TRACED
from reviews_store import BASELINE, PLATFORMS, RELEASE

_LISTED = '.st-key-page, [data-testid="stHtml"] [role="img"]'
"""The small picture of days in a row of the list."""
TRENDS = Look("trends", "trends", PICTURE)
TRIAGE = Look("triage", "triage", _LISTED)
CRASHES = Look("triage, crashes", "triage?show=Crashes", '[data-testid="stPageLink"] a[href*="crash="]')
CLUSTER = Look("cluster", "triage?cluster=C-0001", PICTURE)
CRASH = Look("crash", "triage?crash=1", '[data-testid="stHtml"]')
MAP = Look("map", "map", PICTURE)
COVERAGE = Look("coverage", "coverage", PICTURE)
REVIEW = Look("review", f"review?release={RELEASE}&baseline={BASELINE}", PICTURE)
INGEST = Look("ingest health", "ingest", PICTURE)

PAGES = (TRENDS, TRIAGE, MAP, COVERAGE, REVIEW, INGEST)
"""The six pages, in the order of the menu."""
LOOKS = (TRENDS, TRIAGE, CRASHES, CLUSTER, CRASH, MAP, COVERAGE, REVIEW, INGEST)

_COMMON = PLATFORMS[0]
_CLASS = "oom_device"
_HEADLINE = "OOM"


def _picked(look: Look, *options: tuple[str, str]) -> tuple[Filter, ...]:
    """Filters that stand on the page itself."""
    return tuple(Filter(look, f"{key} {option}", choose(key, option)) for key, option in options)


def _folded(look: Look, *options: tuple[str, str]) -> tuple[Filter, ...]:
    """Filters of the list, behind the button of that name."""
    return tuple(Filter(look, f"{key} {option}", folded("Filters", choose(key, option))) for key, option in options)


FILTERS: tuple[Filter, ...] = (
    *_picked(
        TRENDS, ("unit", "load"), ("days", "14"), ("days", "90"), ("days", "all"), ("release", RELEASE),
        ("platform", _COMMON), ("path", "torchscript"), ("by", "release"), ("by", "platform"), ("by", "path"),
        ("measure", "unanswered"), ("headline", _HEADLINE),
    ),
    *_folded(
        TRIAGE, ("mark", "new"), ("release", RELEASE), ("platform", _COMMON), ("model", "model-00"),
        ("path", "torchscript"), ("phase", "load"), ("headline", _HEADLINE), ("class", _CLASS), ("owner", OWNERS[0]),
        ("days", "7"), ("days", "90"), ("days", "all"),
    ),
    Filter(TRIAGE, "search", write("search", "failure 42")),
    Filter(TRIAGE, "search of what all print", write("search", "bytes")),
    Filter(TRIAGE, "since", folded("Filters", write("since", "2026-02-10"))),
    Filter(TRIAGE, "until", folded("Filters", write("until", "2026-02-10"))),
    Filter(TRIAGE, "page 2", press("button", "2")),
    *_folded(
        CRASHES, ("release", RELEASE), ("platform", _COMMON), ("path", "torchscript"), ("class", _CLASS),
        ("owner", OWNERS[0]), ("days", "7"), ("days", "all"),
    ),
    Filter(CRASHES, "search", write("search", "failure 42")),
    Filter(CLUSTER, "nearest clusters", press("tab", "Nearest clusters")),
    Filter(CLUSTER, "class", press("tab", "Class")),
    Filter(CLUSTER, "what happened", press("tab", "What happened")),
    *_picked(MAP, ("class", _CLASS), ("release", RELEASE), ("platform", _COMMON), ("days", "7"), ("days", "90")),
    Filter(MAP, "highlight", write("cluster", "C-0042")),
    *_picked(COVERAGE, ("model", "model-01"), ("release", TRACED[-1])),
    Filter(COVERAGE, "latency of the fallback", press("radio", "fallback")),
    *_picked(REVIEW, ("release", "1.9"), ("baseline", "1.9"), ("unit", "load")),
    *(Filter(INGEST, name.lower(), press("radio", name)) for name in ("Quarantine", "Sources", "Store")),
    Filter(INGEST, "night 30", write("night", "30")),
    Filter(Look(INGEST.name, "ingest?show=Quarantine", '[data-testid="stDataFrame"]'), "a piece", choose_any("piece")),
)  # fmt: skip
