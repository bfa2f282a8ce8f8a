"""What is picked on the page Triage: widgets whose values stand in the address, so that a view can be linked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from crashpath.dashboard.page_frame import arrived, link
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.triage_view import Asked, Known
from crashpath.dashboard.triage_words import MARKS
from crashpath.ingest.classes import CLASSES, HEADLINES, UNCLASSIFIED, headline_of
from crashpath.ingest.cluster_filter import NOBODY, ClusterFilter
from crashpath.ingest.clusters import cluster_number
from crashpath.ingest.store_errors import NoSuchThing
from crashpath.ingest.trends import Filters

DAYS = ("7", "14", "30", "90", "all")
USUAL = "30"
NO_OWNER = "(nobody)"
FILTERS = (
    "search", "mark", "release", "platform", "class", "headline", "model", "path", "phase", "owner", "days", "since",
    "until", "clusters",
)  # fmt: skip
"""Parameters of the address that narrow the list."""
_COHORT = ("release", "platform", "model", "path", "phase")


@dataclass(frozen=True, slots=True)
class Picked:
    """What is asked for, in what words, and ``address``: the parameters that stand for it."""

    asked: Asked
    words: tuple[str, ...]
    address: tuple[tuple[str, str], ...]

    @property
    def back(self) -> dict[str, str]:
        """The parameter by which a page behind the list knows the way back to this view of it."""
        return {"back": urlencode(self.address)} if self.address else {}


@dataclass(frozen=True, slots=True)
class Options:
    """What may be picked: what is known of clusters, and the values of each dimension of crashes."""

    known: Known
    values: tuple[tuple[str, tuple[str, ...]], ...]

    def of(self, name: str) -> tuple[str, ...]:
        """Return the values of a dimension."""
        return dict(self.values)[name]


def pick(options: Options, last: date) -> Picked:
    """Show the pickers; ``last`` is the last of the days that are counted back from."""
    if arrived():
        for name in FILTERS:
            if name not in st.query_params and name in st.session_state:
                del st.session_state[name]
    unknown: list[str] = []
    known = options.known
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.text_input(
            "Search in root lines", key="search", bind="query-params", placeholder="a text, or C-0042", width=320
        )
        slot = st.popover(_label(), icon=":material/filter_list:")
        if _address():
            link("triage", "Clear all filters", icon=":material/filter_list_off:")
    with slot, st.container(horizontal=True):
        mark = _one("Mark", "mark", tuple(MARKS), unknown)
        cohort = {name: _one(name.capitalize(), name, options.of(name), unknown) for name in _COHORT}
        headline = _one("Headline", "headline", HEADLINES, unknown)
        classes = tuple(dict.fromkeys([*(one.id for one in CLASSES), UNCLASSIFIED, *known.classes]))
        failure_class = _one("Class", "class", classes, unknown)
        owner = _one("Owner", "owner", (NO_OWNER, *known.owners), unknown)
        days = _days(unknown)
        since, until = _day("Since", "since", unknown), _day("Until", "until", unknown)
    numbers = _clusters(st.query_params.get("clusters"), unknown)
    if since is not None and until is not None and since > until:
        unknown.append(f"Since {since} is after until {until}, so that no day is left")
    for words in unknown:
        st.warning(as_markdown(f"{words}."), icon=":material/link_off:")
    narrowed = any(value is not None for value in (since, until, *cohort.values()))
    window = None if days == "all" or since is not None or until is not None else int(days)
    start = since if window is None else last - timedelta(window - 1)
    asked = Asked(
        Filters(
            since=start,
            until=until,
            release=cohort["release"],
            platform=cohort["platform"],
            model=cohort["model"],
            path=cohort["path"],
            phase=cohort["phase"],
        ),
        ClusterFilter(
            classes=_classes(failure_class, headline, classes),
            owner=None if owner is None else NOBODY if owner == NO_OWNER else owner,
            numbers=numbers,
            search=search.strip() or None,
        ),
        mark,
        all_marked=not narrowed,
    )
    named = {"mark": mark, **cohort, "headline": headline, "class": failure_class, "owner": owner}
    told = [f"{name} {value}" for name, value in named.items() if value is not None]
    told += [f"“{search.strip()}” in the root line"] if search.strip() else []
    told += [f"{len(numbers)} chosen clusters"] if numbers is not None else []
    told.append(_window_words(since, until, window, last))
    return Picked(asked, tuple(told), _address())


def way_back() -> dict[str, str]:
    """Return the filters of the list that led here."""
    return {name: value for name, value in parse_qsl(st.query_params.get("back", "")) if name in FILTERS}


def _address() -> tuple[tuple[str, str], ...]:
    return tuple((name, st.query_params[name]) for name in FILTERS if st.query_params.get(name))


def _label() -> str:
    chosen = sum(1 for name, _ in _address() if name != "search")
    return f"Filters ({chosen})" if chosen else "Filters"


def _one(label: str, key: str, options: Sequence[str], unknown: list[str]) -> str | None:
    """Show a picker that may be left empty; a value in the address that is none of the options is said."""
    asked = st.query_params.get(key)
    if asked and asked not in {one_line(one) for one in options}:
        unknown.append(f"{label} “{one_line(asked, 80)}” in the address is not known here and is left out")
    return st.selectbox(
        label, options, index=None, key=key, bind="query-params", placeholder="any", format_func=one_line, width=200
    )


def _days(unknown: list[str]) -> str:
    asked = st.query_params.get("days")
    if asked and asked not in DAYS:
        unknown.append(f"Last days “{one_line(asked, 80)}” in the address is none of {', '.join(DAYS)}")
    help = "Crashes of these days are counted and ranked. Without meaning where since or until is given."
    place = DAYS.index(USUAL)
    chosen = st.selectbox("Last days", DAYS, index=place, key="days", bind="query-params", help=help, width=200)
    return chosen or USUAL


def _day(label: str, key: str, unknown: list[str]) -> date | None:
    asked = st.query_params.get(key)
    if asked and _date(asked) is None:
        unknown.append(f"{label} “{one_line(asked, 80)}” in the address is no day such as 2026-01-31")
    chosen = st.date_input(
        label, value=None, min_value=date(1970, 1, 1), max_value=date(2999, 12, 31), key=key, bind="query-params",
        format="YYYY-MM-DD", width=200,
    )  # fmt: skip
    return chosen if isinstance(chosen, date) else None


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _clusters(asked: str | None, unknown: list[str]) -> tuple[int, ...] | None:
    """Return the clusters that were chosen on the map."""
    if not asked:
        return None
    numbers = set()
    for one in asked.split(","):
        try:
            numbers.add(cluster_number(one))
        except NoSuchThing:
            unknown.append(f"“{one_line(one, 40)}” in the address is no cluster's id")
    return tuple(sorted(numbers))


def _classes(failure_class: str | None, headline: str | None, every: Sequence[str]) -> tuple[str, ...] | None:
    chosen = None if failure_class is None else (failure_class,)
    if headline is None:
        return chosen
    return tuple(one for one in chosen or every if headline_of(one) == headline)


def _window_words(since: date | None, until: date | None, window: int | None, last: date) -> str:
    if since is not None and since == until:
        return f"{since} alone"
    if since is not None or until is not None:
        return " ".join([*([f"since {since}"] if since else []), *([f"until {until}"] if until else [])])
    return "all days" if window is None else f"the last {window} days (up to {last})"
