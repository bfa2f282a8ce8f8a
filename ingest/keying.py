"""By what variants are keyed: the signature algorithm with its masks, and an id that changes when either does.

The id is stored with every signature (``signature.algorithm``). It only says when to look: whether a store is keyed in
another way is found by signing its variants again (``rekey``), so a change that moves no signature, such as a comment
in ``masks.toml``, asks nothing of anybody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from crashpath.ingest.model import Signature, Variant
from crashpath.ingest.signature import ALGORITHM, sign

MADE_OF = ("signature.py", "guards.py", "mask.py", "masks.toml")
"""Files of this part that decide what the signature of a variant is."""


@dataclass(frozen=True, slots=True)
class Keying:
    """A way of keying variants. ``id`` begins with the algorithm's and is never used for another way."""

    id: str
    sign: Callable[[Variant], Signature]


@lru_cache(maxsize=1)
def keying() -> Keying:
    """Return how this program keys variants: ``sig2+`` and 8 hex digits of what the algorithm is made of."""
    state = hashlib.blake2b(digest_size=4)
    for name in MADE_OF:
        file = files(__package__).joinpath(name)
        content = file.read_bytes() if file.is_file() else b""  # installed without sources: the algorithm's id says it
        state.update(content.replace(b"\r\n", b"\n") + b"\0")
    return Keying(f"{ALGORITHM}+{state.hexdigest()}", sign)
