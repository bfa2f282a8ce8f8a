"""Wrong input through the real command line: an exit code as documented, one clear sentence, nothing else lost.

Each case lies beside two good logs, whose two crashes must be in the store afterwards: at once where the night could
run, and after the cause is gone where it could not. Exit codes: 0 done, 2 wrong use, 4 the run failed, 5 partial.
Cases that need a mount are left out where this is not root, and said so.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memory import one_line
from processes import crashpath, held
from results_file import write_results
from tables import table
from traces import distinct

from crashpath.ingest.store import HEAD

GOOD = (
    'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 8, in load\n    with open(path) as file:\n'
    "FileNotFoundError: [Errno 2] No such file or directory: '/opt/models/{case}/model.onnx'\n",
    "2026-03-01 10:00:00,000 INFO server: started\n2026-03-01 10:00:01,000 ERROR server: request {case} failed\n"
    'Traceback (most recent call last):\n  File "/srv/app/serve.py", line 31, in infer\n    return model(x)\n'
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x512 and 768x2)\n",
)
DONE, USAGE, FAILED, PARTIAL = 0, 2, 4, 5
_ORDINARY = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")
"""Root without what lets it read and write everything, so that permissions hold for it as for anyone."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a case happens: a folder with good logs, the case's own file beside them, and a store."""

    folder: Path
    logs: Path
    store: Path

    @property
    def bad(self) -> Path:
        """The file that is wrong."""
        return self.logs / "wrong.log"


@dataclass(frozen=True, slots=True)
class Case:
    """``make`` sets it up, returns further arguments; ``says`` must match what is printed; ``records``: its own."""

    name: str
    make: Callable[[Place], Sequence[object]]
    code: int
    says: str
    records: int = 0
    ordinary: bool = False
    undo: Callable[[Place], None] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case gave."""

    name: str
    code: int
    expected: int
    sentence: str
    wrong: tuple[str, ...]


def written(data: bytes) -> Callable[[Place], Sequence[object]]:
    """A file with these bytes."""

    def make(place: Place) -> Sequence[object]:
        place.bad.write_bytes(data)
        return ()

    return make


def long_line(place: Place) -> Sequence[object]:
    """300 MB without an end of line."""
    one_line(place.bad, 300 * 10**6)
    return ()


def binary(place: Place) -> Sequence[object]:
    """The first bytes of a program."""
    place.bad.write_bytes(Path(sys.executable).resolve().read_bytes()[:65536])
    return ()


def locked_folder(place: Place) -> Sequence[object]:
    """A folder of another user."""
    folder = place.logs / "locked"
    folder.mkdir()
    (folder / "inside.log").write_text(GOOD[0].format(case="locked"))
    folder.chmod(0)
    return ()


def locked_file(place: Place) -> Sequence[object]:
    """A file that may not be read."""
    place.bad.write_text(GOOD[0].format(case="locked"))
    place.bad.chmod(0)
    return ()


def missing(place: Place) -> Sequence[object]:
    """A path that is not there."""
    return (place.folder / "nowhere.log",)


def cut_gzip(place: Place) -> Sequence[object]:
    """A compressed log that ends early; what stands before the end is a whole failure."""
    text = GOOD[0].format(case="first") + "".join(f"{i} {i * 7919 % 1009} healthy\n" for i in range(20_000))
    data = gzip.compress(text.encode())
    (place.logs / "wrong.log.gz").write_bytes(data[: len(data) // 2])
    return ()


def other_schema(version: str) -> Callable[[Place], Sequence[object]]:
    """A store that another version wrote."""

    def make(place: Place) -> Sequence[object]:
        with sqlite3.connect(place.store) as connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", (version,))
        return ()

    return make


def this_schema(place: Place) -> None:
    """Make the store one of this version again."""
    other_schema(HEAD)(place)


def no_store(place: Place) -> Sequence[object]:
    """A file in the store's place that is something else."""
    place.store.rename(place.store.with_suffix(".aside"))
    place.store.write_text("notes, and no database\n" * 500)
    return ()


def store_back(place: Place) -> None:
    """Put the store where it was; what lay there was not touched."""
    place.store.with_suffix(".aside").replace(place.store)


def damaged(place: Place) -> Sequence[object]:
    """A store whose pages were overwritten."""
    shutil.copy(place.store, place.store.with_suffix(".aside"))
    with place.store.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    return ()


def sealed(place: Place) -> Sequence[object]:
    """A store in a folder that may not be written."""
    place.store.chmod(0o444)
    place.store.parent.chmod(0o555)
    return ()


def unsealed(place: Place) -> None:
    """Let the folder be written again."""
    place.store.parent.chmod(0o755)
    place.store.chmod(0o644)


def no_room(place: Place) -> Sequence[object]:
    """A disk with no room for the night's crashes: the rest of it is taken by another file."""
    place.bad.write_text("\n".join(distinct(random.Random(3), 1200)))
    with (place.store.parent / "filler").open("wb", buffering=0) as file:
        free = shutil.disk_usage(place.store.parent).free - 256 * 1024
        file.write(b"\0" * free)
    return ()


def room(place: Place) -> None:
    """Free the disk, and take away the log that needs more than there is."""
    (place.store.parent / "filler").unlink()
    place.bad.unlink()


def wrong_option(place: Place) -> Sequence[object]:
    """An option that there is not."""
    return ("--no-such-option",)


ERROR = b"2026-03-01 10:00:02,000 ERROR loader: tokenizer caf\xe9 cannot be loaded: \xff\xfe is no vocabulary\n"
UTF16 = "2026-03-01 10:00:02,000 ERROR loader: RuntimeError: shape [1, 512] is invalid for input\r\n".encode("utf-16")
CASES = (
    Case("empty file", written(b""), DONE, r"1 empty"),
    Case("binary file", binary, PARTIAL, r"wrong\.log is not a text log"),
    Case("single line of 300 MB", long_line, DONE, "", records=1),
    Case("invalid UTF-8", written(ERROR), DONE, "", records=1),
    Case(
        "bytes that are no text", written(ERROR + b"ok\n" * 400 + bytes(range(128, 256)) * 8), PARTIAL, "quarantine", 1
    ),
    Case("UTF-16", written(UTF16), DONE, "", records=1),
    Case("folder without permission", locked_folder, PARTIAL, r"may not be listed .* permissions\.", ordinary=True),
    Case("file without permission", locked_file, PARTIAL, r"may not be read: change its permissions", ordinary=True),
    Case("missing path", missing, PARTIAL, r"nowhere\.log does not exist: check the path\."),
    Case("truncated .gz", cut_gzip, PARTIAL, r"damaged gzip file", records=1),
    Case("unknown option", wrong_option, USAGE, r"No such option"),
    Case("store of a newer schema", other_schema("9999"), FAILED, r"newer crashpath", undo=this_schema),
    Case("store that is no database", no_store, FAILED, r"not a SQLite database", undo=store_back),
    Case("store that is damaged", damaged, FAILED, r"damaged", undo=store_back),
    Case("read-only store folder", sealed, FAILED, r"cannot be (used|written|opened)", ordinary=True, undo=unsealed),
    Case("full disk", no_room, FAILED, r"(full|free space)", undo=room),
)


def outcome(case: Case, folder: Path, base: Path) -> Outcome:
    """Run one case in a folder of its own, over a copy of a store that knows the good logs' failures."""
    logs = folder / "logs"
    logs.mkdir()
    for number, text in enumerate(GOOD):
        (logs / f"good-{number}.log").write_text(text.format(case=folder.name))
    with store_folder(folder, tiny=case.make is no_room) as home:
        place = Place(folder, logs, home / "crashpath.db")
        shutil.copy(base, place.store)
        arguments = ["nightly", logs, *case.make(place), "--db", f"sqlite:///{place.store}"]
        done = crashpath(*arguments, before=_ORDINARY if case.ordinary and os.geteuid() == 0 else ())
        wrong = []
        if done.returncode != case.code:
            wrong.append(f"exit {done.returncode}, not {case.code}")
        if not re.search(case.says, done.stdout + done.stderr):
            wrong.append(f"does not say {case.says!r}")
        if "Traceback (most" in done.stderr or "defect of crashpath" in done.stderr:
            wrong.append("an error that nobody foresaw")
        if re.search(r"<[a-z_]+>", done.stderr):
            wrong.append("a sentence in which words were redacted")
        said = [line for line in done.stderr.splitlines() if line.startswith("crashpath: ")]
        if len(said) != (case.code != DONE):
            wrong.append(f"{len(said)} sentences")
        if case.code in (USAGE, FAILED):
            if case.undo is not None:
                case.undo(place)
            again = crashpath("nightly", logs, "--db", f"sqlite:///{place.store}")
            if again.returncode:
                wrong.append(f"exit {again.returncode} after the cause was gone: {again.stderr[-300:]}")
        wrong += lost(case, f"sqlite:///{place.store}", logs)
        for path in logs.rglob("*"):
            path.chmod(0o755)
    sentence = said[0].removeprefix("crashpath: ") if said else first_of(done.stdout, case.says)
    return Outcome(case.name, done.returncode, case.code, sentence.replace(str(folder), "…"), tuple(wrong))


def first_of(text: str, pattern: str) -> str:
    """The line of the summary that matches."""
    return next((" ".join(line.split()) for line in text.splitlines() if pattern and re.search(pattern, line)), "")


def lost(case: Case, url: str, logs: Path) -> list[str]:
    """Say which crashes are missing, or too many, of the good logs and of the case's own."""
    crashes = [Path(crash[0]) for crash in held(url).crashes if Path(crash[0]).parent == logs]
    found = {name: sum(path.name == name for path in crashes) for name in ("good-0.log", "good-1.log")}
    wrong = [f"{n} crashes of {name}, not 1" for name, n in found.items() if n != 1]
    own = sum(path.name.startswith("wrong.log") for path in crashes)
    if case.code in (DONE, PARTIAL) and own != case.records:
        wrong.append(f"{own} crashes of its own, not {case.records}")
    return wrong


@contextmanager
def store_folder(folder: Path, tiny: bool) -> Iterator[Path]:
    """A folder for a store; ``tiny``: on a disk of 8 MiB, which only root can mount."""
    home = folder / "store"
    home.mkdir()
    if tiny:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", home], check=True)
    try:
        yield home
    finally:
        if tiny:
            subprocess.run(["umount", home], check=True)


def impossible(case: Case) -> str | None:
    """Why a case cannot be run here, or ``None``."""
    if case.make is no_room and os.geteuid() != 0:
        return "a small disk can be mounted by root only"
    if case.ordinary and os.geteuid() == 0 and shutil.which(_ORDINARY[0]) is None:
        return "permissions do not hold for root, and setpriv is not installed"
    return None


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table and write the figures; 1 where a case is not as documented."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="cases with this word in their name")
    options = parser.parse_args(arguments)
    found, skipped = [], {}
    with tempfile.TemporaryDirectory(prefix="crashpath-bench-") as name:
        start = Path(name) / "first"
        start.mkdir()
        for number, text in enumerate(GOOD):
            (start / f"good-{number}.log").write_text(text.format(case="first"))
        base = Path(name) / "base.db"
        first = crashpath("nightly", start, "--db", f"sqlite:///{base}")
        if first.returncode:
            raise RuntimeError(first.stderr[-2000:])
        for number, case in enumerate(case for case in CASES if options.only in case.name):
            if reason := impossible(case):
                skipped[case.name] = reason
                continue
            folder = Path(name) / f"case-{number}"
            folder.mkdir()
            found.append(outcome(case, folder, base))
            print(
                f"  {found[-1].name}: exit {found[-1].code} {'; '.join(found[-1].wrong) or 'as documented'}", flush=True
            )
    rows = [(one.name, str(one.code), str(one.expected), "NO" if one.wrong else "yes") for one in found]
    table("Wrong input beside good logs", ("case", "exit", "documented", "as documented, nothing lost"), rows)
    for one in found:
        print(f"  {one.name}: {one.sentence or '(read as a log)'}")
        for problem in one.wrong:
            print(f"    NOT AS DOCUMENTED: {problem}")
    for case_name, reason in skipped.items():
        print(f"  skipped {case_name}: {reason}")
    cases = {o.name: {"code": o.code, "expected": o.expected, "said": o.sentence, "wrong": o.wrong} for o in found}
    if not options.only:
        write_results("inputs", {"cases": cases, "skipped": skipped})
    return int(any(one.wrong for one in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
