"""Figures as a person reads them."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB")


def size(count: int) -> str:
    """Return bytes in a unit that suits them: ``812 bytes``, ``1.4 KiB``, ``23.5 GiB``."""
    if abs(count) < 1024:
        return many(count, "byte")
    amount = float(count)
    for unit in _UNITS:
        amount /= 1024
        if abs(amount) < 1000 or unit == _UNITS[-1]:
            break
    return f"{amount:,.1f} {unit}"


def many(count: int, noun: str) -> str:
    """Return the number and the noun in the form that goes with it: ``1 input``, ``2 inputs``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
