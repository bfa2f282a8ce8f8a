"""What becomes of a line that is held against an open record."""

from __future__ import annotations

from enum import Enum


class Fate(Enum):
    """What a line does to the record that its writer has open."""

    JOINED = "joined"
    BETWEEN = "not of the open trace, and does not end it"
    CLOSE_BEFORE = "close before it, and look at it afresh"
    SPLIT = "its last lines are another failure"
