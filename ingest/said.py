"""What people write beside a decision, as it may be stored: without secrets and personal data, as any log."""

from __future__ import annotations

import re

from crashpath.ingest.redact import redact
from crashpath.ingest.storable import storable

_ADDRESS = re.compile(r"([^\s@<>]+)@[^\s@<>]+")


def said(text: str) -> str:
    """Return a name or a reason as it is stored."""
    return redact(storable(text)).text


def person(text: str) -> str:
    """Return who decides or takes care of something: of an e-mail address what is before the @, which tells who."""
    return said(_ADDRESS.sub(r"\1", text))
