"""What is red among the drills of a release: faults, route drills and mixes, and the command that repeats each.

A proof names them as text, ``fault/isolation/policy``: the isolation where it was red in one alone, the policy where it
is not the one that a drill has without being told.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.coverage.drillcells import Verdict
from crashpath.coverage.drillstore import ORIGIN
from crashpath.coverage.field import IN_USE, Last
from crashpath.coverage.routestore import ROUTES
from crashpath.dashboard.plurals import many
from crashpath.ingest.schema import Json
from crashpath.ingest.tables_evidence import CoverageRun

_BOTH, _USUAL = "both", "breaker"
"""Isolation and policy of drills that are told nothing else."""
_ROUTE, _MIX = "route ", "mix of "


@dataclass(frozen=True, slots=True)
class Red:
    """Something whose last drill is red. ``what`` is a fault's id, ``route`` and a route drill's, or ``mix of`` N."""

    what: str
    isolation: str = _BOTH
    policy: str = _USUAL

    def __str__(self) -> str:
        """Return it as a proof names it."""
        if self.policy != _USUAL:
            return f"{self.what}/{self.isolation}/{self.policy}"
        return self.what if self.isolation == _BOTH else f"{self.what}/{self.isolation}"

    @classmethod
    def named(cls, text: str) -> Red:
        """Return what a proof names so."""
        what, _, where = text.partition("/")
        isolation, _, policy = where.partition("/")
        return cls(what, isolation or _BOTH, policy or _USUAL)

    @property
    def fault(self) -> str | None:
        """The id of the fault, ``None`` of a route drill or a mix."""
        return None if self.what.startswith((_ROUTE, _MIX)) else self.what

    @property
    def sentence(self) -> str:
        """What is red, and where."""
        what = f"drill of {self.what}"
        if self.what.startswith(_ROUTE):
            what = f"route drill {self.what.removeprefix(_ROUTE)}"
        elif self.what.startswith(_MIX):
            what = f"{self.what} requests"
        where = (
            f"isolation {self.isolation}" if self.isolation != _BOTH else "",
            f"policy {self.policy}" if self.policy != _USUAL else "",
        )
        told = ", ".join(filter(None, where))
        return f"The last {what} is red{f' ({told})' if told else ''}."

    @property
    def arguments(self) -> str:
        """Arguments of ``crashpath drill`` that repeat it, for a shell."""
        given = ["--fault", self.what]
        if self.what.startswith(_ROUTE):
            given = ["--routes"]
        elif self.what.startswith(_MIX):
            given = ["--n", self.what.removeprefix(_MIX)]
        given += ["--isolation", self.isolation] if self.isolation != _BOTH else []
        given += ["--policy", self.policy] if self.policy != _USUAL else []
        return shlex.join(given)


def red_words(red: Iterable[str], drills: int) -> str:
    """Return how many of each kind there are: ``2 faults red in 30 drills, 1 mix red``; nothing where none is."""
    kinds: dict[str, set[str]] = {"fault": set(), "route drill": set(), "mix": set()}
    for one in map(Red.named, red):
        kinds["fault" if one.fault else "route drill" if one.what.startswith(_ROUTE) else "mix"].add(one.what)
    of = {"fault": f" in {many(drills, 'drill')}"}
    return ", ".join(f"{many(len(found), kind)} red{of.get(kind, '')}" for kind, found in kinds.items() if found)


def red_faults(drills: Iterable[Last]) -> list[Red]:
    """Return the faults of the last drills that are red."""
    return _gathered((one.fault, one.isolation, one.policy) for one in drills if not one.passed)


def red_besides(session: Session, release: str, *, since: datetime, until: datetime) -> list[Red]:
    """Return the route drills and mixes of a release that are red, of runs that were stored between two times.

    Of each, the last of a model counts, by isolation and policy, of policies in use, whatever its artefacts. What could
    not be driven is none, and a mix is mended by one of no fewer requests alone.
    """
    query = (
        select(CoverageRun.model, CoverageRun.detail)
        .where(CoverageRun.origin == ORIGIN, CoverageRun.release == release)
        .where(CoverageRun.at >= since, CoverageRun.at <= until)
        .order_by(CoverageRun.at, CoverageRun.id)
    )
    last: dict[tuple[str, str, str, str], str] = {}  # what is red, nothing where it is green
    for model, detail in session.execute(query):
        for one in (detail or {}).get(ROUTES, ()):
            if one["policy"] in IN_USE and one["verdict"] != Verdict.NULL:
                what = f"{_ROUTE}{one['scenario']}"
                last[model, what, one["isolation"], one["policy"]] = what if one["verdict"] == Verdict.RED else ""
        for one in (detail or {}).get("mixes", ()):
            key = (model, _MIX, one["isolation"], _preset(one))
            if _preset(one) in IN_USE:
                last[key] = _mixed(one, last.get(key, ""))
    return _gathered((what, isolation, policy) for (_, _, isolation, policy), what in last.items() if what)


def _mixed(mix: Json, before: str) -> str:
    """Return what is red after a mix: it, or the larger one before it, which fewer requests do not mend."""
    wanted, larger = int(mix["wanted"]), int(before.removeprefix(_MIX) or 0)
    if mix["red"]:
        return f"{_MIX}{max(wanted, larger)}"
    return before if wanted < larger else ""


def _preset(mix: Json) -> str:
    """Return the policy that was asked for: a mix runs a more patient one of its own name."""
    return str(mix["policy"]).partition(",")[0]


def _gathered(found: Iterable[tuple[str, str, str]]) -> list[Red]:
    """Return one for what is red in both isolations under one policy."""
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    for what, isolation, policy in found:
        places[what, policy].add(isolation)
    return [
        Red(what, isolations.pop() if len(isolations) == 1 else _BOTH, policy)
        for (what, policy), isolations in places.items()
    ]
