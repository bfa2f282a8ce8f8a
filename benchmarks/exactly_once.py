"""Kill a night at random moments, run it again to its end, and compare the store with that of an undisturbed night.

The killed nights are processes of their own; every stage is hit, at a moment within it that a seed chooses. To be
quick, most of them use a light encoder (word hashes) in place of the real one and are everything else that
``crashpath nightly`` is; ``--real`` of them are the real command with the real encoder. At last three nights of the
real command are started at once: one goes first, one says so and stops, one waits.
"""

from __future__ import annotations

import argparse
import logging
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from biglog import write_log
from processes import COMMAND, Held, crashpath, environment, held, sample
from results_file import write_results
from tables import table

from crashpath.dashboard.cli_night import Lines
from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.dashboard.testing import light_clusterer
from crashpath.ingest.store import open_store
from crashpath.ingest.store_errors import StoreError

SEED = 20
START, READ, EMBED, CLUSTER, CLASSIFY, WRITE = "start", "read", "embed", "cluster", "classify", "store clusters"
STAGES = (START, READ, EMBED, CLUSTER, CLASSIFY, WRITE)
PLAN = {START: 1, READ: 8, EMBED: 2, CLUSTER: 4, CLASSIFY: 2, WRITE: 3}
"""Kills a stage, of 20. Batches are written while reading, so ``read`` is the stage of the store, too."""
QUIET_LINES = 15
"""Healthy lines between two failures of the generated log: so many that several batches are written."""

HEAD = ("killed in", "at", "crashes", "vectors", "clusters", "then", "same")


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill: which stage was running, seconds into it, what the store held then, and what the next night made."""

    stage: str
    into: float
    crashes: int
    embedded: int
    clusters: int
    after: Held
    differs: tuple[str, ...]

    def row(self) -> tuple[str, ...]:
        """A line of the table."""
        counts = (str(n) for n in (self.crashes, self.embedded, self.clusters, len(self.after.crashes)))
        return (self.stage, f"{self.into:.2f} s", *counts, "no: " + " ".join(self.differs) if self.differs else "yes")


class Watched:
    """A night in a process, whose stages are known from what it prints. Seconds are the processor's, so that a moment
    means the same on a busy machine."""

    def __init__(self, command: Sequence[str]) -> None:
        self.child = subprocess.Popen(
            command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self._last = 0.0
        self._process = psutil.Process(self.child.pid)
        self.stage, self._since = START, 0.0
        self.seconds: dict[str, float] = {}

    def until(self, stage: str | None) -> bool:
        """Wait for a stage to begin, or for the end; return whether it began."""
        assert self.child.stderr is not None
        while self.stage != stage:
            line = self.child.stderr.readline()
            if not line:
                self._enter("end")
                self.child.wait()
                return False
            word = line.rstrip().removesuffix(" …")
            self._enter(word if word in STAGES else READ)
        return True

    def kill_at(self, seconds: float) -> bool:
        """Kill it when its stage has taken so many seconds; return whether it still ran."""
        while self.child.poll() is None and self._spent() - self._since < seconds:
            time.sleep(0.005)
        self.child.send_signal(signal.SIGKILL)
        self.until(None)
        assert self.child.stderr is not None
        self.child.stderr.close()
        return self.child.returncode == -signal.SIGKILL

    def _spent(self) -> float:
        try:
            times = self._process.cpu_times()
        except psutil.Error:
            return self._last
        self._last = float(times.user + times.system)
        return self._last

    def _enter(self, stage: str) -> None:
        if stage != self.stage:
            now = self._spent()
            self.seconds[self.stage] = now - self._since
            self.stage, self._since = stage, now


def killed_in(command: Sequence[str], stage: str, seconds: float, share: float) -> tuple[str, float]:
    """Run a night and kill it at a share of a stage's usual seconds; return the stage it died in and seconds into it.

    The moment is the seed's; where the next stage had begun nevertheless, that one is named.
    """
    night = Watched(command)
    night.until(stage)
    if not night.kill_at(seconds * share):
        return "end", 0.0
    return next((s for s in reversed(STAGES) if s in night.seconds), START), night.seconds.get(stage, 0.0)


def light(url: str, paths: Sequence[str]) -> list[str]:
    """The command of a night with the light encoder."""
    return [sys.executable, __file__, "--night", url, *paths]


def real(url: str, paths: Sequence[str]) -> list[str]:
    """The command of a real night."""
    return [*COMMAND, "nightly", "--db", url, *paths]


def a_light_night(url: str, paths: Sequence[str]) -> None:
    """Run a night to its end; what ``light`` starts in a process, and what goes on after a kill."""
    with open_store(url) as store:
        sys.stderr.write(f"{READ} …\n")
        run_night(store, paths, NightOptions(), light_clusterer(), clock=lambda: datetime.now(UTC), progress=Lines())


def a_real_night(url: str, paths: Sequence[str]) -> None:
    """Run the real command to its end."""
    done = crashpath("nightly", "--db", url, *paths)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])


def trials(name: str, folder: Path, paths: Sequence[str], plan: Sequence[str], rng: random.Random) -> list[Kill]:
    """Kill one night for each stage of the plan, each on a new store, and print what came of it."""
    command, finish = (real, a_real_night) if name == "real" else (light, _silently)
    calm = Watched(command(f"sqlite:///{folder}/{name}-calm.db", paths))
    calm.until(None)
    wanted = held(f"sqlite:///{folder}/{name}-calm.db")
    print(f"\nundisturbed ({name}): {summary(wanted)}; " + ", ".join(f"{s} {t:.1f} s" for s, t in calm.seconds.items()))
    kills = []
    for number, stage in enumerate(plan):
        url = f"sqlite:///{folder}/{name}-{number}.db"
        share = rng.random()
        died, into = killed_in(command(url, paths), stage, calm.seconds.get(stage, 0.0), share)
        crashes, embedded, clusters = counts(url)
        finish(url, paths)
        after = held(url)
        kills.append(Kill(died, into, crashes, embedded, clusters, after, wanted.differences(after)))
        print("  " + "  ".join(kills[-1].row()), flush=True)
    table(
        f"{len(kills)} nights killed by SIGKILL ({name} encoder), each followed by a night to the end",
        HEAD,
        [kill.row() for kill in kills],
    )
    return kills


def _silently(url: str, paths: Sequence[str]) -> None:
    with open_store(url) as store:
        run_night(store, paths, NightOptions(), light_clusterer(), clock=lambda: datetime.now(UTC))


def counts(url: str) -> tuple[int, int, int]:
    """Return crashes, vectors and clusters in a store that may not be whole yet."""
    try:
        now = held(url)
    except StoreError:
        return 0, 0, 0
    return len(now.crashes), now.embedded, sum(1 for _, name in now.clusters if name != "none")


def summary(one: Held) -> str:
    """A store in a line."""
    return (
        f"{len(one.crashes)} crashes, {len(one.variants)} variants, {len(one.signatures)} signatures, "
        f"{len(one.clusters)} clusters, {len(one.quarantine)} in quarantine"
    )


def at_once(folder: Path, paths: Sequence[str]) -> tuple[bool, list[dict[str, object]]]:
    """Start three real nights at once on one store, the last with ``--wait``; return whether all was well."""
    url = f"sqlite:///{folder}/at-once.db"
    a_real_night(f"sqlite:///{folder}/alone.db", paths)
    commands = [real(url, paths), real(url, paths), [*real(url, paths), "--wait", "600"]]
    children = [
        subprocess.Popen(c, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for c in commands
    ]
    said = [child.communicate() for child in children]
    codes = [child.returncode for child in children]
    last = ["" if code == 0 else err.strip().splitlines()[-1] for code, (_, err) in zip(codes, said, strict=True)]
    same = not held(f"sqlite:///{folder}/alone.db").differences(held(url))
    print("\nThree real nights started at once on one store")
    for name, code, sentence in zip(("first", "second", "third, --wait 600"), codes, last, strict=True):
        print(f"  {name:<18} exit {code}  {sentence}")
    print(f"  store equal to that of one night alone: {'yes' if same else 'no'}")
    refused = [sentence for code, sentence in zip(codes, last, strict=True) if code == 4]
    right = codes[2] == 0 and set(codes) == {0, 4} and all("Another night is writing" in s for s in refused)
    return right and same, [{"code": c, "said": s} for c, s in zip(codes, last, strict=True)]


def plan_of(kills: int) -> list[str]:
    """Stages to kill in, spread as in PLAN."""
    every = [stage for stage, n in PLAN.items() for _ in range(n)]
    return [every[i * len(every) // kills] for i in range(kills)]


def main(arguments: Sequence[str] = ()) -> int:
    """Print the tables, write the figures; 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=150, help="logs of the corpus")
    parser.add_argument("--mib", type=float, default=2, help="size of the generated log")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--real", type=int, default=3, help="kills of the real command")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    rng = random.Random(options.seed)
    logging.getLogger("crashpath.ingest.lease").setLevel(logging.ERROR)  # taking over from the dead is the rule here
    with tempfile.TemporaryDirectory(prefix="crashpath-bench-") as name:
        folder = Path(name)
        logs = folder / "logs"
        sample(logs, options.logs)
        write_log(logs / "big.log", int(options.mib * 2**20), quiet_lines=QUIET_LINES, per_second=1)
        kills = trials("light", folder, [str(logs)], plan_of(options.kills), rng)
        few = folder / "few"
        sample(few, 12)
        write_log(few / "big.log", 2**20, quiet_lines=QUIET_LINES, per_second=1)
        stages = (READ, EMBED, WRITE, CLUSTER, READ)
        kills_real = trials("real", folder, [str(few)], [stages[i % 5] for i in range(options.real)], rng)
        right, codes = at_once(folder, [str(few)])
    bad = [kill for kill in (*kills, *kills_real) if kill.differs]
    hit = {stage: sum(kill.stage == stage for kill in (*kills, *kills_real)) for stage in (*STAGES, "end")}
    print(f"\n{len(kills) + len(kills_real)} kills, {len(bad)} with a difference; stages hit: {hit}")
    write_results(
        "exactly_once",
        {
            "seed": options.seed,
            "kills": len(kills),
            "kills_real_encoder": len(kills_real),
            "different": len(bad),
            "stages_hit": hit,
            "crashes": len(kills[0].after.crashes) if kills else 0,
            "at_once": codes,
        },
    )
    return int(bool(bad) or not right)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--night"]:
        a_light_night(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main(sys.argv[1:]))
