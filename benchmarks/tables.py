"""What the benchmarks share: where the evaluation data are, tables of 80 columns, vectors kept between runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from crashpath.clustering.encoder import Vectors

ROOT = Path(__file__).resolve().parents[1]
EVALUATION = Path(os.environ.get("CRASHPATH_EVAL_DATA", ROOT / ".." / "shared" / "data"))
CACHE = Path.home() / ".cache" / "crashpath" / "bench-vectors.npz"


def evaluation(*names: str) -> Path | None:
    """Return a file of the evaluation data; where it is absent, say so in a line and return ``None``."""
    path = EVALUATION.joinpath(*names)
    if path.is_file():
        return path
    print(f"skipped: {'/'.join(names)} is not there (CRASHPATH_EVAL_DATA names its folder)")
    return None


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of at most 80 columns; the first column is text, the others are numbers."""
    width = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    room = 80 - sum(width[1:]) - 2 * (len(width) - 1)
    width[0] = min(width[0], room)
    print(f"\n{title}\n" + "─" * min(80, sum(width) + 2 * (len(width) - 1)))
    for row in (head, *rows):
        cells = [row[0][: width[0]].ljust(width[0])]
        cells += [cell.rjust(w) for cell, w in zip(row[1:], width[1:], strict=True)]
        print("  ".join(cells).rstrip())


class FileCache:
    """A ``VectorCache`` in the user's cache folder, so that a benchmark that is run again need not encode again."""

    def __init__(self, path: Path = CACHE) -> None:
        self._path = path
        self._known: dict[str, Vectors] = {}
        if path.is_file():
            with np.load(path, allow_pickle=False) as data:
                self._known = dict(zip(data["keys"].tolist(), data["vectors"], strict=True))

    def get_many(self, encoder: str, texts: Sequence[str]) -> Mapping[str, Vectors]:
        """Return the vectors known for these texts."""
        return {text: self._known[key] for text in texts if (key := _key(encoder, text)) in self._known}

    def put_many(self, encoder: str, vectors: Mapping[str, Vectors]) -> None:
        """Keep vectors, and write the file anew."""
        for text, vector in vectors.items():
            self._known.setdefault(_key(encoder, text), vector)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name("bench-vectors.tmp.npz")
        np.savez(temporary, keys=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))
        os.replace(temporary, self._path)


def _key(encoder: str, text: str) -> str:
    return blake2b(f"{encoder}\0{text}".encode("utf-8", "replace"), digest_size=16).hexdigest()
