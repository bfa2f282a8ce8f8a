"""The policy of a review: every threshold, from ``policy.toml``; a key that is not known is refused, never ignored."""

from __future__ import annotations

import os
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.review_model import Measure

FILE_NAME = "policy.toml"
Share = Annotated[float, Field(gt=0, lt=1)]
Ratio = Annotated[float, Field(ge=1, le=1000)]
Unit = Literal["deployment", "load", "request"]
Weight = Literal["NO-GO", "HOLD", "note"]
Doubt = Literal["HOLD", "note"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class UnitLimits(_Part):
    """Highest rates of one unit; ``None`` is not asked."""

    unanswered: Share | None = None
    primary: Share | None = None


class Limits(UnitLimits):
    """Highest rates of a whole release, and what one unit has instead."""

    unanswered: Share | None = 0.0109
    deployment: UnitLimits = UnitLimits()
    load: UnitLimits = UnitLimits()
    request: UnitLimits = UnitLimits()

    def of(self, unit: str, measure: Measure) -> float | None:
        """Return the limit of a measure in a unit: its own, or that of all."""
        own: float | None = getattr(getattr(self, unit), measure)
        common: float | None = getattr(self, measure)
        return common if own is None else own


class Cohorts(UnitLimits):
    """Highest rates of each cohort."""

    unanswered: Share | None = 0.08
    min_share: Annotated[float, Field(ge=0, le=1)] = 0.0


class Baseline(_Part):
    """How many times the baseline's rate a release's may be."""

    required: bool = False
    unanswered: Ratio | None = 1.25
    primary: Ratio | None = None
    floor: Share = 0.001


class Classes(_Part):
    """What classes and clusters may do."""

    new_rate: Share | None = 0.002
    regressed_ratio: Ratio | None = 1.5
    regressed_floor: Share = 0.0005
    resolved_again: Weight = "NO-GO"
    min_count: Annotated[int, Field(ge=1, le=1_000_000)] = 5


class Proven(_Part):
    """What has to be proven of the two paths."""

    required: bool = False
    main: Share | None = None
    fallback: Share | None = None
    routes: Share | None = None
    drills: Share | None = None
    max_age_days: Annotated[float, Field(gt=0)] = 30
    red_drill: Weight = "HOLD"
    max_uncovered: Annotated[float, Field(ge=0, le=1)] | None = None


class Trust(_Part):
    """When the figures themselves are in doubt."""

    unheard: Doubt = "HOLD"
    untold: Doubt = "HOLD"
    unfinished_night: Doubt = "HOLD"
    future: Doubt = "HOLD"


class Policy(_Part):
    """All rules of a review."""

    alpha: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    unit: Unit | None = None
    limits: Limits = Limits()
    cohorts: Cohorts = Cohorts()
    baseline: Baseline = Baseline()
    classes: Classes = Classes()
    coverage: Proven = Proven()
    evidence: Trust = Trust()


def default_text() -> str:
    """Return the commented defaults."""
    return files("crashpath.dashboard").joinpath(FILE_NAME).read_text(encoding="utf-8")


def load_policy(file: Path | None) -> Policy:
    """Read a policy; without a file the defaults hold. Raises ``UsageError`` that names the key and the remedy."""
    if file is None:
        return Policy()
    try:
        with file.open("rb") as opened:
            return Policy.model_validate(tomllib.load(opened))
    except OSError as error:
        raise UsageError(f"The policy {file} cannot be read ({error.strerror}). Name a file that is there.") from error
    except RecursionError as error:
        raise UsageError(
            f"The policy {file} is no TOML (too deep). `crashpath policy` prints one to start from."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The policy {file} is no TOML ({error}). `crashpath policy` prints one to start from.") from (
            error
        )
    except ValidationError as error:
        raise UsageError(
            f"The policy {file} cannot be used: {_first(error)}. `crashpath policy` lists all keys."
        ) from (error)


def policy_in_force(file: Path | None, setting: str | None) -> tuple[Policy, str]:
    """Return the policy and where it comes from: the option, the setting, ``policy.toml`` here, or the defaults.

    Raises ``UsageError`` as ``load_policy``.
    """
    chosen = file or (Path(setting) if setting else None)
    if chosen is None and os.path.lexists(FILE_NAME):  # whatever it is: rules that cannot be read are not left out
        chosen = Path(FILE_NAME)
    rules = load_policy(chosen)
    return rules, f"the defaults, as there is no {FILE_NAME} here" if chosen is None else str(chosen)


def _first(error: ValidationError) -> str:
    first: Any = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"there is no key {key}"
    return f"{key} is {first['input']!r}, and that is not right: {first['msg'].lower()}"
