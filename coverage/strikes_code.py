"""Strikes in which code beside a model is wrong: errors that no failure class knows.

This module needs the stdlib alone. Nobody can say that the model is at fault, so the runtime hands them to the caller
as they are.
"""

from __future__ import annotations

import statistics


def mean_of_nothing(argument: str) -> None:
    """Average the scores of a request that has none, as a step around a model does."""
    statistics.mean([])
