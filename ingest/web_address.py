"""Addresses of the web that may be posted to or linked to: http and https alone, and no password in them."""

from __future__ import annotations

from urllib.parse import urlsplit


def checked(address: str) -> str:
    """Return the address. Raises ``ValueError``, which does not repeat it, where it cannot be used."""
    try:
        parts = urlsplit(address)
        port_is_one = parts.port is None or parts.port > 0
    except ValueError:
        raise ValueError("it is no web address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_one:
        raise ValueError("it is no web address that begins with https:// or http://")
    if "@" in parts.netloc:
        raise ValueError("it has a user name or a password before its host, where everybody would read it")
    if not address.isascii() or not address.isprintable() or " " in address:
        raise ValueError("it has blanks or letters that have to be percent-encoded")
    return address


def is_link(text: str) -> bool:
    """Whether a stored text may be shown as a link."""
    try:
        checked(text)
    except ValueError:
        return False
    return True
