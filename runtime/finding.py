"""What a check of `diagnose` is, and what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from crashpath.runtime.look import Look


class Status(StrEnum):
    """``ok``. ``warn``: it can be served, and somebody should know. ``fail``: do not serve it. ``skip``: no answer."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Result:
    """What a check says: status, what it saw, and the exact thing to do (empty where there is nothing to do)."""

    status: Status
    evidence: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One question. ``prevents`` is the id of the failure class that a good answer keeps out of the field.

    ``needs`` are ids of checks before this one: where one of them failed or had no answer, this one has none either.
    """

    id: str
    prevents: str
    asks: str
    run: Callable[[Look], Result]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of one check about one folder."""

    check: str
    prevents: str
    status: Status
    evidence: str
    fix: str


def ok(evidence: str) -> Result:
    """All is well."""
    return Result(Status.OK, evidence)


def warn(evidence: str, fix: str) -> Result:
    """It can be served; ``fix`` makes it better."""
    return Result(Status.WARN, evidence, fix)


def fail(evidence: str, fix: str) -> Result:
    """It must not be served; ``fix`` is what to do."""
    return Result(Status.FAIL, evidence, fix)


def skip(why: str) -> Result:
    """There is no answer here; ``why`` says the reason."""
    return Result(Status.SKIP, why)
