"""The lines of a source from its start on, as long as nothing in it looks like a failure."""

from __future__ import annotations

from crashpath.ingest.assemble import RECORD_BYTES, Kept, trim_bounds

_LEVELLED_ENOUGH = 50
_BENIGN_LEVELS = frozenset({"TRACE", "DEBUG", "INFO", "WARNING"})


class PlainText:
    """A text that may turn out to be one record because no line of it says what it is."""

    __slots__ = ("_benign", "_size", "_unlevelled", "gone", "kept")

    def __init__(self) -> None:
        """Start at the first line of the source."""
        self.kept: list[Kept] = []
        self.gone = 0  # lines that were dropped from the middle
        self._size = self._benign = self._unlevelled = 0

    def add(self, kept: Kept) -> bool:
        """Take the next line; return whether the text may still be a record."""
        self.kept.append(kept)
        line = kept.line
        self._size += len(line.text) + 1
        if line.level in _BENIGN_LEVELS:
            self._benign += 1
            if self._benign >= _LEVELLED_ENOUGH and self._benign > self._unlevelled:
                return False
        elif line.text.strip():
            self._unlevelled += 1
        if self._size > 2 * RECORD_BYTES:
            start, stop = trim_bounds(self.kept)
            del self.kept[start:stop]
            self.gone += stop - start
            self._size = sum(len(item.line.text) + 1 for item in self.kept)
        return True

    @property
    def suspicious(self) -> bool:
        """Whether its levels do not say that all is well."""
        return bool(self.kept) and self._unlevelled > self._benign
