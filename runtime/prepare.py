"""The step before the model: raw input → feed (tokenise, fetch), with a second way of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crashpath.runtime.values import Arrays

Prepare = Callable[[Any], Arrays]


@dataclass(frozen=True, slots=True)
class PrepareStep:
    """Two ways to make a feed; both must give the same feed. ``fallback`` is ``None`` where there is no second way.

    What ``main`` raises is named by the registry of reasons: a known failure (a tokenizer that cannot be built, a
    place that cannot be reached) goes to ``fallback``; an `InputError` and an unknown error go to the caller.
    They run on the caller's thread and cannot be cut: what they take comes off the request's deadline.
    """

    main: Prepare
    fallback: Prepare | None = None
