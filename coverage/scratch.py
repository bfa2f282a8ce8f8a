"""Scratch folders: each is held by a lock while its owner lives, and is away when the owner ends, however it ends.

An owner that is killed cannot take its folder away, and such a folder may hold gigabytes of weights. So whoever makes
one first takes away those whose owner is gone: of the same user, with the file that is locked, and locked by nobody. A
fork of the owner takes nothing away.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

HELD = ".crashpath-held"
"""The file in a scratch folder that its owner holds; what has none is no scratch folder."""
_NAME = "crashpath-"


class Scratch:
    """A folder for as long as this is open; what is in it goes with it. Raises `OSError` where none can be made."""

    def __init__(self, word: str) -> None:
        sweep()
        self.path, held = _made(word)
        self._away = weakref.finalize(self, _leave, self.path, held, os.getpid())

    def close(self) -> None:
        """Take the folder away. May be called twice; in a fork of the owner it does nothing."""
        self._away()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def sweep() -> None:
    """Take away the scratch folders of owners that are gone; nothing else, and nothing where files have no locks."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_NAME}*"):
        with suppress(OSError):  # another one sweeps it, too, or it may not be looked into
            if _is_mine(folder):
                _take_away_unheld(folder)


def _made(word: str) -> tuple[Path, int]:
    """Make a folder and hold it; another one that swept between the two steps has taken it away: then once more."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{_NAME}{word}-"))
        held = os.open(folder / HELD, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        _lock(held, wait=True)
        if _stands(folder, held):
            return folder, held
        os.close(held)


def _stands(folder: Path, held: int) -> bool:
    try:
        return os.path.samestat(os.stat(folder / HELD, follow_symlinks=False), os.fstat(held))
    except FileNotFoundError:
        return False


def _lock(file: int, *, wait: bool) -> bool:
    """Return whether the lock is held now. Waits where asked to, and then goes on where files have no locks."""
    try:
        import fcntl
    except ImportError:  # not POSIX
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody holds it, or the file system has no locks
        return False
    return True


def _is_mine(folder: Path) -> bool:
    return hasattr(os, "geteuid") and folder.lstat().st_uid == os.geteuid() and not folder.is_symlink()


def _take_away_unheld(folder: Path) -> None:
    held = os.open(folder / HELD, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if _lock(held, wait=False) and _stands(folder, held):
            _take_away(folder)
    finally:
        os.close(held)


def _take_away(folder: Path) -> None:
    """The file that is locked last: what is cut short here is swept by the next one."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != HELD:
            path.unlink()
    (folder / HELD).unlink()
    folder.rmdir()


def _leave(folder: Path, held: int, owner: int) -> None:
    if os.getpid() != owner:
        return
    with suppress(OSError):  # gone already, or in use: the next one sweeps it
        _take_away(folder)
    os.close(held)
