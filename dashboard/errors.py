"""Errors that a command expects: each is one sentence with advice, never a traceback."""

from __future__ import annotations

from crashpath.clustering.classifier import ClassifierError
from crashpath.clustering.encoder import EncoderError
from crashpath.dashboard.settings import SettingsError
from crashpath.ingest.facts import FactsError
from crashpath.ingest.store_errors import StoreError
from crashpath.runtime.errors import ServingError


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


WRONG_USE: tuple[type[Exception], ...] = (UsageError, SettingsError)
EXPECTED: tuple[type[Exception], ...] = (
    DashboardError,
    StoreError,
    FactsError,
    ClassifierError,
    EncoderError,
    ServingError,
)
