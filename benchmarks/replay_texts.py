"""What a failed deployment leaves in a log: a text of the corpus with other values, as one JSON line or several.

The form is that of a controller of deployments, which writes one line a failed deployment with the program's output
inside. Some are told more than once: by retries (records of one attempt), or by the kernel's line beside the program's
own (a second witness). Of some that were killed only the kernel tells.
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mix import clocked, corpus, models, varied
from tables import ROOT

RETRIED, KERNEL_TOO, KERNEL_ONLY = 0.04, 0.10, 0.15
"""Shares: of failed attempts that retry, of OOM kills that the kernel tells too, of those that only it tells."""

PHASES = ("prepare", "load", "warmup")
"""What a deployment does until it is up; what fails later is no failed deployment."""

_HOSTS = re.compile(r"\b(infer|node|gpu|edge)-\d\d\b")
_PODS = re.compile(r"(?<=-)(?:x7k2p|q9d4z|hjw2v|m4x8t)\b")
_DATES = re.compile(r"\b20\d\d-\d\d-\d\d(?=[T ])")
_MADE = r"(?:bert|swin|gpt|clip|nomic)-(?:small|base|rank|intent)-v\d"  # the names that mix gives to models
_POD_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Cohort:
    """A platform and a model: its share of the attempts, and its rate as a multiple of the whole release's."""

    platform: str
    model: str
    share: float
    times: float


COHORTS = (
    Cohort("k8s", "bert-intent", 0.5, 1.0),
    Cohort("linux-gpu", "llama-guard-mini", 0.3, 1.2),
    Cohort("linux-cpu", "fraud-scorer", 0.2, 0.7),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A log of the corpus that may be drawn."""

    text: str
    phase: str
    fault: str


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed deployment or crash that is to be written. ``attempt`` is empty where nobody counts attempts."""

    at: datetime
    failure_class: str
    attempt: str


@dataclass(frozen=True, slots=True)
class Told:
    """One line of a log file, and what it truly is. ``role``: own, retry, kernel."""

    at: datetime
    line: bytes
    attempt: str
    failure_class: str
    role: str
    fault: str


Pools = Mapping[str, Sequence[Sample]]


def pools(phases: Sequence[str] | None) -> Pools:
    """Return the corpus by class; with ``phases`` only what failed in one of them, or in one that nobody knows."""
    with (ROOT / "data" / "labels.csv").open(encoding="utf-8", newline="") as file:
        phase_of = {row["file"]: row["phase"] for row in csv.DictReader(file)}
    out: dict[str, list[Sample]] = {}
    for log in corpus():
        phase = phase_of[log.file]
        if phases is None or phase in phases or phase == "unknown":
            out.setdefault(log.failure_class, []).append(Sample(log.text, phase, log.fault))
    return out


def kernel_lines() -> Sequence[Sample]:
    """Return the logs in which the kernel names what it killed for memory."""
    killed = re.compile(r"ut of memory: Kill|Killed process \d+")
    return [sample for sample in pools(None)["oom_host"] if killed.search(sample.text)]


class Teller:
    """Writes failures as the lines that a controller of deployments would collect of them."""

    def __init__(self, samples: Pools, kernel: Sequence[Sample], rng: random.Random) -> None:
        """``kernel`` are logs of OOM kills by the kernel."""
        self._samples = samples
        self._kernel = kernel
        self._models = re.compile(rf"(?<![\w.-])(?:{'|'.join(filter(None, sorted(models())))}|{_MADE})(?![\w-])")
        self.rng = rng

    def deployment(self, failure: Failure, release: str, cohort: Cohort) -> Iterator[Told]:
        """Yield the lines of one failed deployment, the earliest first."""
        rng = self.rng
        killed = failure.failure_class == "oom_host"
        only_kernel = killed and rng.random() < KERNEL_ONLY
        sample = rng.choice(self._kernel if only_kernel else self._samples[failure.failure_class])
        fields = self._fields(release, cohort, failure.attempt)
        fields["phase"] = sample.phase if sample.phase in PHASES else "load"
        text = self._text(sample, failure.at, cohort)
        yield _told(failure, failure.at, fields, text, "kernel" if only_kernel else "own", sample)
        if rng.random() < RETRIED:
            at = failure.at
            for _ in range(rng.randint(1, 5)):
                at += timedelta(seconds=rng.uniform(2, 30))
                yield _told(failure, at, fields, clocked(text, rng), "retry", sample)
        if killed and not only_kernel and rng.random() < KERNEL_TOO:
            witness = rng.choice(self._kernel)
            at = failure.at + timedelta(seconds=rng.uniform(0.1, 2))
            fields = {**fields, "logger": "node-agent"}
            yield _told(failure, at, fields, self._text(witness, at, cohort), "kernel", witness)

    def crash(self, failure: Failure, cohort: Cohort, release: str) -> Told:
        """Return the line of one crash log."""
        sample = self.rng.choice(self._samples[failure.failure_class])
        fields = self._fields(release, cohort, "")
        if sample.phase != "unknown":
            fields["phase"] = sample.phase
        return _told(failure, failure.at, fields, self._text(sample, failure.at, cohort), "own", sample)

    def _fields(self, release: str, cohort: Cohort, attempt: str) -> dict[str, str]:
        rng = self.rng
        pod = f"{cohort.model}-{rng.getrandbits(36):09x}-{''.join(rng.choices(_POD_LETTERS, k=5))}"
        fields = {"level": "error", "logger": "deploy-controller", "release": release, "platform": cohort.platform}
        fields |= {"model": cohort.model, "host": f"node-{rng.randint(1, 96):02}", "pod": pod}
        return fields | ({"attempt_id": attempt} if attempt else {})

    def _text(self, sample: Sample, at: datetime, cohort: Cohort) -> str:
        """Return a text with other values; the program names the model that the controller names."""
        rng = self.rng
        text = _DATES.sub(f"{at:%Y-%m-%d}", varied(sample.text, rng))
        text = self._models.sub(cohort.model, text)
        node, pod = f"{rng.randint(1, 96):02}", "".join(rng.choices(_POD_LETTERS, k=5))
        return _PODS.sub(pod, _HOSTS.sub(lambda found: f"{found[1]}-{node}", text))


def _told(failure: Failure, at: datetime, fields: Mapping[str, str], text: str, role: str, sample: Sample) -> Told:
    document = {"time": at.isoformat(timespec="milliseconds"), **fields, "message": text}
    line = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    return Told(at, line, failure.attempt, failure.failure_class, role, sample.fault)
