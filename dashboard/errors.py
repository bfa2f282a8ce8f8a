"""Errors that a command expects: each is one sentence with advice, never a traceback."""

from __future__ import annotations

from crashpath.clustering.classifier import ClassifierError
from crashpath.clustering.encoder import EncoderError
from crashpath.dashboard.settings import SettingsError
from crashpath.ingest.facts import FactsError
from crashpath.ingest.store_errors import StoreError


class DashboardError(Exception):
    """Root of the errors of this part.

    DashboardError
    └── InputError    a file, folder or option given cannot be used
    """


class InputError(DashboardError):
    """What was given cannot be read or understood."""


EXPECTED: tuple[type[Exception], ...] = (
    DashboardError,
    SettingsError,
    StoreError,
    FactsError,
    ClassifierError,
    EncoderError,
)
