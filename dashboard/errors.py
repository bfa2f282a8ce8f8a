"""Errors that a command expects: each is one sentence with advice, never a traceback.

They are known by name, so that nothing has to be imported to know one that is not there.
"""

from __future__ import annotations


class DashboardError(Exception):
    """Root of the errors of this part.

    DashboardError
    └── InputError      a file or folder given cannot be used
        └── UsageError  an option's value cannot be understood: wrong usage, not a failed run
    """


class InputError(DashboardError):
    """What was given cannot be read or understood."""


class UsageError(InputError):
    """An option was given a value that it cannot take."""


WRONG_USE = ("crashpath.dashboard.errors.UsageError", "crashpath.dashboard.settings.SettingsError")
EXPECTED = (
    "crashpath.dashboard.errors.DashboardError",
    "crashpath.ingest.store_errors.StoreError",
    "crashpath.ingest.facts.FactsError",
    "crashpath.clustering.classifier.ClassifierError",
    "crashpath.clustering.encoder.EncoderError",
    "crashpath.runtime.errors.ServingError",
)


def is_wrong_use(error: BaseException) -> bool:
    """Whether whoever typed the command has to type another one."""
    return _is_any(error, WRONG_USE)


def is_expected(error: BaseException) -> bool:
    """Whether the error's message says all there is to say: no defect of crashpath."""
    return _is_any(error, WRONG_USE + EXPECTED)


def _is_any(error: BaseException, names: tuple[str, ...]) -> bool:
    return any(f"{one.__module__}.{one.__qualname__}" in names for one in type(error).__mro__)
