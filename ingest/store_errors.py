"""What can go wrong with the store. Each message is one sentence that says what is wrong, then what to do.

StoreError
├── StoreMissing      there is no store at that place
├── NotAStore         the file or database is something else
├── StoreNewer        written by a newer crashpath
├── StoreOutdated     written by an older crashpath; needs an upgrade
├── StoreBusy         another process kept the store locked for longer than the busy timeout
├── StoreUnusable     cannot be opened, read or written (permission, disk, server)
├── BackupImpossible  this kind of store is backed up with its own tool
├── LeaseHeld         another night is writing
├── LeaseLost         this night's lease went to another holder
├── BadAttempts       a row of an attempts file cannot be read
├── NoSuchThing       an id that the store does not know
├── Refused           a decision that cannot be taken, or taken back, as things stand
├── OtherEncoder      the store is tied to another encoder
└── OtherKeying       the store's signatures are made in another way
"""

from __future__ import annotations

# ruff: noqa: N818 (a name says the situation; the root is called an error)


class StoreError(Exception):
    """Root of the store's errors. ``sentence`` says what is wrong, ``advice`` what to do about it."""

    def __init__(self, sentence: str, advice: str = "") -> None:
        super().__init__(f"{sentence} {advice}".strip())
        self.sentence = sentence
        self.advice = advice


class StoreMissing(StoreError):
    """There is no store at that place."""


class NotAStore(StoreError):
    """The file or database is something else."""


class StoreNewer(StoreError):
    """The store was written by a newer crashpath."""


class StoreOutdated(StoreError):
    """The store was written by an older crashpath."""


class StoreBusy(StoreError):
    """Another process kept the store locked for longer than the busy timeout."""


class StoreReadOnly(StoreError):
    """The store was opened for reading alone, and somebody wants to write."""


class StoreUnusable(StoreError):
    """The store cannot be opened, read or written."""


class BackupImpossible(StoreError):
    """This kind of store is backed up with its own tool."""


class LeaseHeld(StoreError):
    """Another night is writing."""


class LeaseLost(StoreError):
    """This night's lease went to another holder."""


class BadAttempts(StoreError):
    """A row of an attempts file cannot be read."""


class NoSuchThing(StoreError):
    """An id that the store does not know."""


class Refused(StoreError):
    """A decision cannot be taken, or taken back, as things stand."""


class OtherEncoder(StoreError):
    """The store is tied to another encoder."""


class OtherKeying(StoreError):
    """The store's signatures are made in another way."""
