"""Errors that a command expects: each is one sentence with advice, never a traceback."""

from __future__ import annotations

from crashpath.dashboard.settings import SettingsError


class DashboardError(Exception):
    """Root of the errors of this part.

    DashboardError
    └── InputError    a file, folder or option given cannot be used
    """


class InputError(DashboardError):
    """What was given cannot be read or understood."""


EXPECTED: tuple[type[Exception], ...] = (DashboardError, SettingsError)
