"""When a session may leave the main path: presets, and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass

from crashpath.runtime.errors import FAILURES, Failure


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """When the breaker opens and closes again.

    It opens when at least ``minimum`` of the last ``calls`` outcomes are younger than ``window_s`` seconds and a
    share of ``rate`` or more of those failed. After ``open_s`` seconds it lets requests be probed, one at a time, and
    closes after ``probes`` probes in a row that gave the fallback's answer.
    """

    calls: int = 100
    window_s: float = 60.0
    minimum: int = 5
    rate: float = 0.5
    open_s: float = 5.0
    probes: int = 3

    def __post_init__(self) -> None:
        sound = 0 < self.minimum <= self.calls and 0 < self.rate <= 1 and self.probes > 0
        if not sound or self.window_s <= 0 or self.open_s < 0:
            raise ValueError(f"settings of a breaker that could never open or close: {self}")


@dataclass(frozen=True, slots=True)
class Policy:
    """``fall_back_on``: the reasons that may fall back; none of them: the main path is all there is.

    ``sticky``: the first failure switches to the fallback for good. ``once``: the first failure sets a flag and is
    answered by the fallback, each later one goes to the caller.
    """

    name: str
    fall_back_on: frozenset[type[Failure]]
    breaker: BreakerSettings | None = None
    sticky: bool = False
    once: bool = False

    @property
    def falls_back(self) -> bool:
        """Whether any failure is answered by the fallback."""
        return bool(self.fall_back_on)

    def covers(self, failure: Failure) -> bool:
        """Whether this failure's reason, or one that it is a kind of, may fall back."""
        return isinstance(failure, tuple(self.fall_back_on))


_ALL = frozenset(FAILURES)

POLICIES: dict[str, Policy] = {
    one.name: one
    for one in (
        Policy("breaker", _ALL, breaker=BreakerSettings()),
        Policy("sticky", _ALL, sticky=True),
        Policy("account", _ALL, once=True),
        Policy("off", frozenset()),
    )
}


def named(policy: str | Policy) -> Policy:
    """Return the preset of that name, or the policy itself. Raises `ValueError` that lists the presets."""
    if isinstance(policy, Policy):
        return policy
    if policy not in POLICIES:
        raise ValueError(f"no policy is called {policy!r}; there are {', '.join(POLICIES)}")
    return POLICIES[policy]
