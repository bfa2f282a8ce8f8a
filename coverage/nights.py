"""When and where a log of the corpus was written: five nights, two releases, the platforms of a fleet.

Release 2026.11 is out in the first three nights, 2026.12 in the last two and, for a part of the fleet, in the third.
The newer one repairs some failures and brings new ones, so that trends have something to show.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

OLD, NEW = "2026.11", "2026.12"
FIRST = datetime(2026, 11, 23)
REPAIRED = (
    "tokenizers-",
    "transformers-token",
    "cpp-bad-alloc",
    "gunicorn-boot-timeout",
    "python-module-missing",
    "fetch-requests-silent",
)
BROUGHT = ("onnx-opset", "ort-opset", "loader-version", "node-abi", "w-vllm-undefined-symbol", "java-class-version")


@dataclass(frozen=True, slots=True)
class Slot:
    """Night (from 1), release, platform and UTC time of one log."""

    night: int
    release: str
    platform: str
    at: datetime

    def file(self, name: str) -> str:
        """Return the log's path below ``data/``."""
        return f"crashlogs/night{self.night}/{self.release}/{self.platform}/{name}"


def slot_of(fault: str, number: int, platform: str | None) -> Slot:
    """Choose a slot by the fault's id and the number of the log; ``None`` lets the platform be chosen too."""
    rng = random.Random(f"slot:{fault}:{number}")
    if fault.startswith(BROUGHT):
        release = NEW
    elif fault.startswith(REPAIRED):
        release = OLD
    else:
        release = rng.choices((OLD, NEW), (3, 2))[0]
    night = rng.choice((1, 2, 3)) if release == OLD else rng.choices((3, 4, 5), (1, 2, 2))[0]
    where = platform or rng.choices(("linux-cpu", "k8s"), (3, 2))[0]
    at = FIRST + timedelta(
        days=night - 1, hours=rng.randrange(24), minutes=rng.randrange(60), microseconds=rng.randrange(60_000_000)
    )
    return Slot(night, release, where, at)
