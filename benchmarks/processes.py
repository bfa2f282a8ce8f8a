"""What the benchmarks of whole nights share: the real command line in a process, a sample of the corpus, and what a
store holds, in words that do not depend on when or in which order it came in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path

from sqlalchemy import func, select

from crashpath.ingest.store import open_store
from crashpath.ingest.tables import (
    Cluster,
    Crash,
    CrashDaily,
    Embedding,
    Exemplar,
    Quarantine,
    Signature,
    Source,
    Variant,
)

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "data" / "crashlogs"
COMMAND = (sys.executable, "-c", "from crashpath.dashboard.cli import main; main()")
"""The command line, as the installed script starts it."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a store holds. Sequences are sorted and keep what is there twice; ``days`` are by path and offset."""

    crashes: tuple[tuple[str, int, int, str, str], ...]
    days: Mapping[tuple[str, int], tuple[date, bool]]
    variants: tuple[str, ...]
    signatures: tuple[str, ...]
    clusters: frozenset[tuple[frozenset[str], str]]
    quarantine: tuple[tuple[str, int, int, str], ...]
    daily: int
    examples: int
    embedded: int

    def differences(self, other: Held, but: Sequence[str] = ()) -> tuple[str, ...]:
        """Name what is not the same in another store."""
        names = (f.name for f in fields(self) if f.name not in but)
        return tuple(name for name in names if getattr(self, name) != getattr(other, name))


def held(url: str) -> Held:
    """Read a store."""
    with open_store(url, create=False) as store, store.read() as session:
        crashes = session.execute(
            select(
                Source.path, Crash.offset, Crash.end, Variant.key, Variant.signature_id, Crash.day, Crash.at_inferred
            )
            .join(Source, Source.id == Crash.source_id)
            .join(Variant, Variant.id == Crash.variant_id)
        ).all()
        members: dict[int | None, set[str]] = {}
        for signature, cluster in session.execute(select(Signature.id, Signature.cluster_id)):
            members.setdefault(cluster, set()).add(signature)
        classes: dict[int | None, str] = {
            c[0]: c[1] for c in session.execute(select(Cluster.id, Cluster.failure_class))
        }
        quarantined = session.execute(
            select(Source.path, Quarantine.offset, Quarantine.end, Quarantine.sha256).join(
                Source, Source.id == Quarantine.source_id
            )
        )
        return Held(
            crashes=tuple(sorted((c[0], c[1], c[2], c[3], c[4]) for c in crashes)),
            days={(c[0], c[1]): (c[5], c[6]) for c in crashes},
            variants=tuple(sorted(session.scalars(select(Variant.key)))),
            signatures=tuple(sorted(session.scalars(select(Signature.id)))),
            clusters=frozenset((frozenset(ids), classes.get(cluster, "none")) for cluster, ids in members.items()),
            quarantine=tuple(sorted((q[0], q[1], q[2], q[3]) for q in quarantined)),
            daily=session.scalar(select(func.sum(CrashDaily.crashes))) or 0,
            examples=session.scalar(select(func.count()).select_from(Exemplar)) or 0,
            embedded=session.scalar(select(func.count()).select_from(Embedding)) or 0,
        )


def sample(folder: Path, count: int) -> list[Path]:
    """Copy every n-th log of the corpus into a folder, with its time, and return the copies."""
    logs = sorted(path for path in CORPUS.rglob("*") if path.is_file() and ".log" in path.name)
    copies = []
    for path in logs[:: max(1, len(logs) // count)][:count]:
        target = folder / path.relative_to(CORPUS)
        target.parent.mkdir(parents=True, exist_ok=True)
        copies.append(Path(shutil.copy2(path, target)))
    return copies


def environment(threads: int = 1) -> dict[str, str]:
    """The environment of a night on so many threads, of every library that has some."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CRASHPATH_")}
    return kept | {name: str(threads) for name in names}


def crashpath(
    *arguments: object, threads: int = 1, cwd: Path | None = None, before: Sequence[str] = (), stdin: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end. ``before`` is what starts it with other rights."""
    return subprocess.run(
        [*before, *COMMAND, *map(str, arguments)],
        env=environment(threads),
        cwd=cwd,
        stdin=stdin,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
