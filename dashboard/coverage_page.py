"""The page Coverage: what of both paths was exercised, what is proven of the field's failures, what is not."""

from __future__ import annotations

import streamlit as st

from crashpath.dashboard.coverage_view import MOST_RELEASES, figures, offers, view
from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.page_coverage_drills import beside_part, drills_part
from crashpath.dashboard.page_coverage_field import field_part, squares_part
from crashpath.dashboard.page_coverage_gaps import gaps_part, more_part
from crashpath.dashboard.page_coverage_pick import no_evidence, pick
from crashpath.dashboard.page_coverage_report import ages_part, headline_part, latency_part, releases_part
from crashpath.dashboard.page_frame import Look, framed, kept
from crashpath.dashboard.page_moment import moment
from crashpath.dashboard.page_text import as_markdown
from crashpath.dashboard.policy import Policy, policy_in_force


def draw(look: Look) -> None:
    """Show the page."""
    offered = kept(look, offers)
    if not offered:
        no_evidence(look)
        return
    max_age = _max_age(look)
    picked = pick(offered)
    now = moment(look)
    shown = kept(look, view, picked.model, picked.release, max_age, now)
    headline_part(shown.report)
    releases = picked.releases[:MOST_RELEASES]
    releases_part(kept(look, figures, picked.model, releases, max_age, now), len(picked.releases))
    squares_part(shown)
    field_part(shown)
    gaps_part(shown.report)
    ages_part(shown.ages, max_age, now)
    latency_part(shown.report)
    drills_part(shown.drills)
    beside_part(shown.beside)
    more_part(shown.report)


def _max_age(look: Look) -> float:
    """Return how old evidence may be by the policy; by the defaults, which is said, where that cannot be used."""
    try:
        return policy_in_force(None, look.settings.policy)[0].coverage.max_age_days
    except UsageError as error:
        st.warning(f"{as_markdown(str(error), 1000)} The default age is taken.", icon=":material/warning:")
        return Policy().coverage.max_age_days


framed("Coverage", draw)
