"""A real night runs on the store that is looked at: pages, notes of people and the night, each beside the others.

The night reads the corpus of crash logs and forms clusters anew. It is run twice, on a copy of the store each: alone,
and while one person goes from page to page and writes notes. Every page is cold all the time: a night writes often.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pages_drive import tab, visit, visitor
from pages_looks import LOOKS
from pages_takes import Take, Takes, Watched, watched
from playwright.sync_api import Browser, BrowserContext
from processes import COMMAND, CORPUS, crashpath, environment

CORES = 2


@dataclass(frozen=True, slots=True)
class Beside:
    """Pages while a night ran, seconds of notes without and with a night, and the night: seconds, and how it ended."""

    pages: tuple[Takes, ...]
    notes_alone: tuple[float, ...]
    notes: tuple[float, ...]
    night_alone: float
    night: float
    ended: str


def beside(browser: Browser, store: Path, folder: Path, takes: int) -> Beside:
    """Run both nights."""
    with _copied(store, folder) as db:
        notes_alone = tuple(_note(db, number) for number in range(takes))
        begun = time.perf_counter()
        _ended(_night(db, folder), folder)
        alone = time.perf_counter() - begun
    with _copied(store, folder) as db, watched(db, folder) as server, visitor(browser) as context:
        for look in LOOKS:
            with tab(context) as page:
                visit(page, server.url, look)
        begun = time.perf_counter()
        night = _night(db, folder)
        found: dict[str, list[Take]] = {look.name: [] for look in LOOKS}
        notes: list[float] = []
        for name, take in _until(night, server, context, notes):
            found[name].append(take)
        ended = _ended(night, folder)
        seconds = time.perf_counter() - begun
    pages = tuple(Takes(name, "address", "night", tuple(done)) for name, done in found.items() if done)
    return Beside(pages, notes_alone, tuple(notes), alone, seconds, ended)


def _until(
    night: subprocess.Popen[bytes], server: Watched, context: BrowserContext, notes: list[float]
) -> Iterator[tuple[str, Take]]:
    """Go from page to page until the night is over, and write a note after each round."""
    while True:
        for look in LOOKS:
            with tab(context) as page:
                take = server.take(lambda: visit(page, server.url, look))  # noqa: B023  called here
            if night.poll() is not None:
                return
            yield look.name, take
        seconds = _note(server.db, len(notes))
        if night.poll() is not None:
            return
        notes.append(seconds)


def _night(db: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [*COMMAND, "nightly", str(CORPUS), "--db", db, "--json"]
    with (folder / "night.json").open("wb") as out:
        return subprocess.Popen(command, env=environment(CORES), stdout=out, stderr=subprocess.DEVNULL)


def _ended(night: subprocess.Popen[bytes], folder: Path) -> str:
    """Wait for a night and return how it ended."""
    code = night.wait()
    told = (folder / "night.json").read_text(encoding="utf-8")
    if code not in (0, 5):
        raise RuntimeError(f"The night ended with {code}: {told[-500:]}")
    return str(json.loads(told)["status"])


def _note(db: str, number: int) -> float:
    begun = time.perf_counter()
    done = crashpath("note", "C-0002", f"seen at {time.monotonic_ns()} {number}", "--who", "bench", "--db", db)
    if done.returncode:
        raise RuntimeError(f"The note was refused: {done.stderr[-500:]}")
    return time.perf_counter() - begun


@contextmanager
def _copied(store: Path, folder: Path) -> Iterator[str]:
    copy = folder / "night.db"
    shutil.copyfile(store, copy)
    yield f"sqlite:///{copy}"
    for file in folder.glob("night.db*"):
        file.unlink()
