"""What people write beside a decision, as it may be stored: without secrets and personal data, as any log."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from crashpath.ingest.redact import redact
from crashpath.ingest.storable import storable
from crashpath.ingest.web_address import checked

LONGEST_LINK = 2000
"""Characters of a link; browsers and proxies take at least so many."""
_ADDRESS = re.compile(r"([^\s@<>]+)@[^\s@<>]+")
_PUBLIC = "https://github.com"
"""Stands for the host of a link while the rest of it is cleaned: no rule takes it for somebody's own."""
_PLACES = frozenset({"internal_host", "ipv4", "ipv6"})
"""What is replaced in logs because it tells where something runs. A link without it would lead nowhere."""


def said(text: str) -> str:
    """Return a name or a reason as it is stored."""
    return redact(storable(text)).text


def person(text: str) -> str:
    """Return who decides or takes care of something: of an e-mail address what is before the @, which tells who."""
    return said(_ADDRESS.sub(r"\1", text))


def link(address: str) -> str:
    """Return a link as it is stored: its host stays; secrets and personal data behind it are replaced.

    Raises ``ValueError``, which does not repeat it, for one that cannot be used or whose host holds a secret.
    """
    if len(checked(address)) > LONGEST_LINK:
        raise ValueError(f"it has more than {LONGEST_LINK:,} characters")
    host = urlsplit(address).netloc
    if {kind for kind, _ in redact(f"https://{host}").counts} - _PLACES:
        raise ValueError("its host looks like a secret")
    scheme, _, rest = address.partition("://")
    return f"{scheme.lower()}://{host}{said(_PUBLIC + rest[len(host) :]).removeprefix(_PUBLIC)}"
