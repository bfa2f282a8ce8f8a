"""The forms of the panel of decisions: what a cluster is, how it stands, and what belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta

import streamlit as st
from sqlalchemy.orm import Session

from crashpath.dashboard import cautions
from crashpath.dashboard.acting import Choices, Done, by, choices, take, typed_clusters
from crashpath.dashboard.decide_text import muted, unchanged
from crashpath.dashboard.page_action_state import Deciding, attempt, field
from crashpath.dashboard.page_frame import kept
from crashpath.dashboard.page_text import as_markdown, one_line
from crashpath.dashboard.plurals import many
from crashpath.dashboard.who import LONGEST, LONGEST_NOTE
from crashpath.dashboard.who import one_line as clean
from crashpath.ingest import deciding as decide
from crashpath.ingest import marking
from crashpath.ingest.classes import CLASSES, UNCLASSIFIED
from crashpath.ingest.decisions import By, Kind
from crashpath.ingest.said import LONGEST_LINK
from crashpath.ingest.tables_evidence import Decision

_TITLES = {one.id: one.title for one in CLASSES} | {UNCLASSIFIED: "No class"}
_LAST_DAY = date(2999, 12, 31)
_THIS, _CHOSEN = "this", "chosen"


def what_it_is(deciding: Deciding) -> None:
    """Show the forms for its name, its class and who takes care of it."""
    name, failure_class, owner = st.columns(3)
    with name, st.form("decide-name", border=False):
        _name(deciding)
    with failure_class, st.form("decide-class", border=False):
        _class(deciding)
    with owner, st.form("decide-owner", border=False):
        _owner(deciding)


def _name(deciding: Deciding) -> None:
    key = field(deciding.key("name"), deciding.found.row.name or "")
    text = st.text_input("Name", key=key, max_chars=LONGEST, help="Stays whatever joins it. An empty one is none.")
    if st.form_submit_button("Save name", icon=":material/edit:"):

        def act() -> Done:
            wanted = clean(text or "", "Name")
            return _one(deciding, "name", wanted, lambda session, by: decide.name(session, deciding.number, wanted, by))

        attempt(deciding, act, [key])


def _class(deciding: Deciding) -> None:
    stored = deciding.found.row.failure_class
    known = [*_TITLES, *([] if stored in _TITLES else [stored])]
    key = field(deciding.key("class"), stored)
    chosen = st.selectbox(
        "Failure class", known, key=key, format_func=lambda one: f"{one} · {_TITLES.get(one, 'of another version')}",
        help="No classifier changes it any more.",
    )  # fmt: skip
    if st.form_submit_button("Set class", icon=":material/label:"):
        attempt(
            deciding,
            lambda: _one(
                deciding, "assign", chosen, lambda session, by: decide.assign(session, deciding.number, chosen, by)
            ),
            [key],
        )


def _owner(deciding: Deciding) -> None:
    key = field(deciding.key("owner"), deciding.found.row.assignee or "")
    text = st.text_input("Who takes care of it", key=key, max_chars=LONGEST, help="An empty one is nobody.")
    if st.form_submit_button("Give to", icon=":material/person:"):

        def act() -> Done:
            wanted = clean(text or "", "Who takes care of it")
            return _one(
                deciding, "assign", wanted,
                lambda session, by: decide.assign(session, deciding.number, None, by, assignee=wanted),
            )  # fmt: skip

        attempt(deciding, act, [key])


def how_it_stands(deciding: Deciding) -> None:
    """Show the forms for the release with the fix, for how long it is muted, its ticket and notes."""
    first, second = st.columns(2)
    with first:
        with st.form("decide-resolve", border=False):
            _resolve(deciding)
        with st.form("decide-mute", border=False):
            _mute(deciding)
    with second:
        with st.form("decide-ticket", border=False):
            _ticket(deciding)
        with st.form("decide-note", border=False):
            _note(deciding)


def _resolve(deciding: Deciding) -> None:
    stored = deciding.found.row.resolved_in
    known = _choices(deciding).releases
    key = field(deciding.key("resolve"), stored)
    chosen = st.selectbox(
        "Resolved in release", [*known, *([] if stored is None or stored in known else [stored])], key=key,
        index=None, accept_new_options=True, format_func=one_line, placeholder="Choose or type a release",
        help="The release that has the fix, which may be one to come. Seen in it or later, the cluster is regressed. "
        "Clear it to take it away.",
    )  # fmt: skip
    if st.form_submit_button("Resolve", icon=":material/task_alt:"):

        def act() -> Done:
            wanted = clean(chosen or "", "Release")
            return _one(
                deciding, "resolve", wanted,
                lambda session, by: marking.resolve(session, deciding.number, wanted, by),
                lambda session, _: cautions.of_release(session, deciding.number),
            )  # fmt: skip

        attempt(deciding, act, [key])


def _mute(deciding: Deciding) -> None:
    until = deciding.found.row.muted_until
    tomorrow = datetime.now(UTC).date() + timedelta(1)
    key = field(deciding.key("mute"), until.date() if until is not None and until.date() >= tomorrow else None)
    if st.session_state[key] is not None and st.session_state[key] < tomorrow:  # a page that is open since yesterday
        st.session_state[key] = None
    day = st.date_input(
        "Muted until (UTC day)", None, min_value=tomorrow, max_value=_LAST_DAY, key=key, format="YYYY-MM-DD",
        help="Nights do not tell of it before that day begins. It is stored, counted and reviewed as ever.",
    )  # fmt: skip
    if until is not None:
        st.caption(as_markdown(f"Now: {muted(until)}"))
    with st.container(horizontal=True):
        mute = st.form_submit_button("Mute", icon=":material/notifications_off:")
        unmute = until is not None and st.form_submit_button("Unmute", icon=":material/notifications:")
    if mute and day is None:
        st.error("Choose the day until which it is muted.", icon=":material/error:")
    elif mute or unmute:
        moment = None if unmute or day is None else datetime.combine(day, time(), UTC)
        attempt(
            deciding,
            lambda: _one(
                deciding, "mute", moment, lambda session, by: marking.mute(session, deciding.number, moment, by)
            ),
            [key],
        )


def _ticket(deciding: Deciding) -> None:
    key = field(deciding.key("ticket"), deciding.found.row.ticket or "")
    text = st.text_input(
        "Link to a ticket", key=key, max_chars=LONGEST_LINK, placeholder="https://…",
        help="Where it is followed up. An empty one is none.",
    )  # fmt: skip
    if st.form_submit_button("Save link", icon=":material/link:"):

        def act() -> Done:
            wanted = clean(text or "", "The link", LONGEST_LINK)
            return _one(
                deciding, "ticket", wanted,
                lambda session, by: marking.ticket(session, deciding.number, wanted, by),
                lambda _, made: cautions.of_link(wanted, made.value),
            )  # fmt: skip

        attempt(deciding, act, [key])


def _note(deciding: Deciding) -> None:
    key = field(deciding.key("note"), "")
    text = st.text_area(
        "Note", key=key, max_chars=LONGEST_NOTE, placeholder="What the next one should know", height=100,
        help="Stands above these forms, and among the decisions. Secrets and addresses of people are replaced.",
    )  # fmt: skip
    if st.form_submit_button("Write note", icon=":material/edit_note:"):

        def act() -> Done:
            wanted = clean(text or "", "The note", LONGEST_NOTE)
            return _one(
                deciding, "note", wanted, lambda session, by: marking.note(session, deciding.number, wanted, by)
            )

        attempt(deciding, act, [key])


def sides(deciding: Deciding) -> None:
    """Show the forms that put clusters together and apart."""
    together, apart = st.columns(2)
    with together, st.form("decide-merge", border=False):
        _merge(deciding)
    with apart, st.form("decide-split", border=False):
        _split(deciding)


def _merge(deciding: Deciding) -> None:
    known = {one.id: one for one in _choices(deciding).others}

    def shown(one: str) -> str:
        other = known.get(one)
        return one_line(one if other is None else f"{one} · {other.failure_class} · {other.title}", 120)

    key = field(deciding.key("merge"), [])
    chosen = st.multiselect(
        "These are the same failure", list(known), key=key, format_func=shown, accept_new_options=True,
        placeholder="Choose clusters, or type an id", select_all=False,
        help="Clusters of its class come first. What is like them will follow.",
    )  # fmt: skip
    stays = st.radio(
        "Which one stays", [_THIS, _CHOSEN], key=field(deciding.key("stays"), _THIS), horizontal=True,
        format_func=lambda one: f"{deciding.id}, this one" if one == _THIS else "the one chosen",
    )  # fmt: skip
    if st.form_submit_button("Merge", icon=":material/merge:"):

        def act() -> Done:
            others = typed_clusters(chosen)
            if stays == _CHOSEN and len(others) == 1:
                target, sources = others[0], [deciding.number]
            else:
                target, sources = deciding.number, others
            return _some(deciding, lambda session, by: decide.merge(session, target, sources, by))

        if stays == _CHOSEN and len(chosen) > 1:
            st.error("Choose the one that stays alone, or let this one stay.", icon=":material/error:")
        else:
            attempt(deciding, act, [key, deciding.key("stays")])


def _split(deciding: Deciding) -> None:
    own = {one.id: one for one in deciding.found.signatures}
    alone = deciding.found.row.signatures < 2
    if alone:
        st.caption("It has one signature: there is nothing to split.")

    def shown(one: str) -> str:
        member = own.get(one)
        told = one if member is None else f"{one[:13]}… · {many(member.crashes, 'crash')} · {member.text}"
        return one_line(told, 120)

    key = field(deciding.key("split"), [])
    chosen = st.multiselect(
        "These are another failure", list(own), key=key, placeholder="Choose signatures, or type an id",
        select_all=False, accept_new_options=True, format_func=shown, disabled=alone,
        help="They leave for a new cluster, which begins with the class of this one.",
    )  # fmt: skip
    if st.form_submit_button("Split out", icon=":material/call_split:", disabled=alone):
        attempt(
            deciding,
            lambda: _some(deciding, lambda session, by: (decide.split(session, deciding.number, list(chosen), by),)),
            [key],
        )


def _one(
    deciding: Deciding,
    kind: Kind,
    wanted: object,
    act: Callable[[Session, By], Decision | None],
    known: Callable[[Session, Decision], Sequence[str]] = lambda session, made: (),
) -> Done:
    decided = by(deciding.who, deciding.why)
    already = unchanged(kind, deciding.id, wanted)
    return take(deciding.look.store, deciding.number, decided, lambda session, by: (act(session, by),), already, known)


def _some(deciding: Deciding, act: Callable[[Session, By], Sequence[Decision]]) -> Done:
    return take(deciding.look.store, deciding.number, by(deciding.who, deciding.why), act, "Nothing was recorded.")


def _choices(deciding: Deciding) -> Choices:
    return kept(deciding.look, choices, deciding.number)
