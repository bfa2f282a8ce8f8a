"""What may go into a store: texts that any database takes, without secrets and personal data."""

from __future__ import annotations

import re
from collections.abc import Callable

from crashpath.ingest.redact import redact
from crashpath.ingest.schema import UNKNOWN

_VERSION = re.compile(r"v?\d+(\.\d+){1,4}([-+._]?[a-z]{1,5}[-.]?\d{0,8})?", re.IGNORECASE)


def storable(text: str) -> str:
    """Return a text that any database takes: no NUL (PostgreSQL) and no lone surrogates (UTF-8)."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "�").encode("utf-8", "replace").decode("utf-8")


def clean(text: str) -> str:
    """Return a text without secrets and personal data that any store takes, for paths, facts and previews."""
    return storable(redact(text).text)  # a file's name need not be UTF-8


def fact(value: str | None, clean: Callable[[str], str]) -> str:
    """Return a fact as it is stored: cleaned, but a version such as 1.2.3.4 is not taken for an address."""
    if not value:
        return UNKNOWN
    return value if _VERSION.fullmatch(value) else clean(value)
