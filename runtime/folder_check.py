"""Read the values of ``model.toml``: each has its type and range, or one sentence names it and says what is allowed."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeGuard

from crashpath.runtime.errors import ModelFolderError

ADVICE = "crashpath export writes a whole one"
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
"""What numpy, ONNX Runtime and torch all have."""
LONGEST_NAME = 255
MOST_SIZE = 1 << 40
_MOST_DIMENSIONS = 32
_DIGEST = 64
_SHOWN = 60
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Table:
    """One table of ``model.toml``. ``name`` is how its keys are told, ``limits.`` or empty for the outermost.

    Every method returns the value of a key, or raises `ModelFolderError`; one with a default takes that where the
    key is not there.
    """

    file: Path
    name: str
    raw: Mapping[str, object]

    def table(self, key: str, known: Collection[str] | None = None) -> Table | None:
        """A table in this one, ``None`` where it is not there. With ``known`` it may have no other keys."""
        if key not in self.raw:
            return None
        inner = self._table(self.raw[key], key)
        for one in inner.raw:
            if known is not None and one not in known:
                raise inner.wrong(one, inner.raw[one], "left out", f"{key} has {', '.join(known)}")
        return inner

    def tables(self, key: str) -> tuple[Table, ...]:
        """A list of at least one table."""
        found = self._value(key)
        if not isinstance(found, list) or not found:
            raise self.wrong(key, found, "a list of at least one table")
        return tuple(self._table(one, f"{key}[{place}]") for place, one in enumerate(found))

    def text(self, key: str) -> str:
        """A name: printable, not empty, not longer than `LONGEST_NAME`."""
        return self._name(key, self._value(key))

    def choice(self, key: str, allowed: Collection[str]) -> str:
        """One of some words."""
        found = self._value(key)
        if not isinstance(found, str) or found not in allowed:
            raise self.wrong(key, found, f"one of {', '.join(allowed)}")
        return found

    def flag(self, key: str, default: bool) -> bool:
        """``true`` or ``false``."""
        found = self._value(key, default)
        if not isinstance(found, bool):
            raise self.wrong(key, found, "true or false")
        return found

    def whole(self, key: str, low: int, high: int, default: object = _MISSING) -> int:
        """A whole number in a range, both ends included."""
        found = self._value(key, default)
        if not _is_whole(found, low, high):
            raise self.wrong(key, found, f"a whole number from {low} to {high:,}")
        return found

    def number(self, key: str, default: float, *, high: float, zero: bool = False) -> float:
        """A finite number above 0, with ``zero`` also 0, up to ``high``."""
        found = self._value(key, default)
        good = isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(_float(found))
        if not good or not 0 <= _float(found) <= high or (found == 0 and not zero):
            raise self.wrong(key, found, f"a number {'from' if zero else 'above'} 0 up to {high:,.0f}")
        return _float(found)

    def shape(self, key: str) -> tuple[int | str, ...]:
        """A list of sizes and words; a word that is a number is a size in quotes by mistake."""
        found = self._value(key)
        if not isinstance(found, list) or len(found) > _MOST_DIMENSIONS:
            raise self.wrong(key, found, f"a list of at most {_MOST_DIMENSIONS} sizes and words")
        for one in found:
            word = isinstance(one, str) and _is_name(one) and not one.strip().lstrip("+-").isdecimal()
            if not word and not _is_whole(one, 0, MOST_SIZE):
                allowed = "a list of fixed sizes (whole numbers from 0) and words for free dimensions"
                raise self.wrong(key, found, allowed, f"{shown(one)} is neither")
        return tuple(found)

    def file_name(self, key: str) -> str:
        """A path of a file inside of the folder."""
        return self._file(key, self._value(key))

    def digests(self) -> tuple[tuple[str, str], ...]:
        """All keys as file names and their values as sha256, sorted."""
        outer, key = Table(self.file, "", self.raw), f"a key of {self.name.removesuffix('.')}"
        for name, digest in self.raw.items():
            outer._file(key, name)
            if not isinstance(digest, str) or len(digest) != _DIGEST or not set(digest) <= set("0123456789abcdef"):
                raise self.wrong(shown(name), digest, f"a sha256 of {_DIGEST} hex digits in lower case")
        return tuple(sorted((name, str(digest)) for name, digest in self.raw.items()))

    def wrong(self, key: str, value: object, allowed: str, more: str = "") -> ModelFolderError:
        """Return the error that names the key, the value and what is allowed."""
        why = f" ({more})" if more else ""
        told = f"{self.file}: {self.name}{_clear(key)} is {shown(value)}, and has to be {allowed}{why}"
        return ModelFolderError(f"{told}; correct it, or: {ADVICE}")

    def _value(self, key: str, default: object = _MISSING) -> object:
        found = self.raw.get(key, default)
        if found is _MISSING:
            raise ModelFolderError(f"{self.file} does not say {self.name}{key}; {ADVICE}")
        return found

    def _table(self, value: object, key: str) -> Table:
        if not isinstance(value, dict):
            raise self.wrong(key, value, "a table")
        return Table(self.file, f"{self.name}{key}.", value)

    def _name(self, key: str, value: object) -> str:
        if not isinstance(value, str) or not _is_name(value):
            raise self.wrong(key, value, f"a text of 1 to {LONGEST_NAME} printable characters")
        return value

    def _file(self, key: str, value: object) -> str:
        name = self._name(key, value)
        path = PurePosixPath(name)
        long = any(len(part.encode()) > LONGEST_NAME for part in path.parts)
        if not path.parts or path.is_absolute() or ".." in path.parts or long:
            raise self.wrong(key, name, "the path of a file inside of the folder")
        return name


def shown(value: object) -> str:
    """Return a value of ``model.toml`` as a few characters, whatever it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists in lists without end
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _clear(key: str) -> str:
    """A key of the file as it may stand in a message."""
    return key if key.isprintable() and len(key) <= _SHOWN + 2 else shown(key)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and not text.isspace()


def _is_whole(value: object, low: int, high: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # asked before: an int or a float
    except OverflowError:  # a whole number beyond all floats
        return math.inf
