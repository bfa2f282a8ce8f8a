"""The faults of a device where there is none: what they need, and that their apps are programs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from crashpath.coverage import corpus, cuda_apps, faults_cuda, faults_cuda_memory, faults_cuda_other
from crashpath.coverage.app import Code, write_app
from crashpath.coverage.drillplan import device_is_here
from crashpath.coverage.fault import Arena, Fault, missing
from crashpath.coverage.faults import FAULTS
from crashpath.coverage.strikes import named
from crashpath.coverage.variation import Variation

ON_DEVICE = (*faults_cuda_memory.FAULTS, *faults_cuda.FAULTS, *faults_cuda_other.FAULTS)
CLASSES = ("oom_device", "device_fault", "device_init")


def test_they_are_skipped_where_no_device_is(tmp_path: Path) -> None:
    """Rule: without a device each is skipped with the need that it names, and leaves no log."""
    assert all(fault.needs[0] == "device" for fault in ON_DEVICE)
    if device_is_here():
        pytest.skip("there is a device here")
    assert {missing(fault) for fault in ON_DEVICE} == {"device"}
    jobs = [job for job in corpus.plan(1) if job.label.fault == "cuda-memory-weights"]
    told = corpus.run(tmp_path, jobs, force=True, workers=1)
    assert told == ["cuda-memory-weights: needs device"] * len(jobs)
    assert list(tmp_path.rglob("*.log*")) == []


def test_their_logs_are_those_of_a_host_with_a_device() -> None:
    """Rule: a log of a fault that needs a device is of the platform that has one."""
    ids = {fault.id for fault in FAULTS if "device" in fault.needs}
    assert {job.label.platform for job in corpus.plan(1) if job.label.fault in ids} == {"linux-gpu"}


@pytest.mark.parametrize("failure_class", CLASSES)
def test_each_class_of_a_device_has_many(failure_class: str) -> None:
    """Rule: at least ten faults over three libraries for each class that only a device can have."""
    faults = [fault for fault in ON_DEVICE if fault.failure_class == failure_class]
    assert len(faults) >= 10
    assert len({fault.library for fault in faults}) >= 3


def test_the_strikes_that_are_drilled_are_there() -> None:
    """Rule: a plan names a strike that exists."""
    plans = [fault.drill for fault in FAULTS if fault.drill is not None and fault.drill.strike.startswith("device.")]
    assert len(plans) >= 8
    assert all(callable(named(plan.strike)) for plan in plans)


class _Paper(Arena):
    """An arena whose apps are written and compiled, never run."""

    __slots__ = ()

    def serve(self, code: Code, *, fresh: bool = False, memory_mib: int = 0, as_nobody: bool = False) -> None:
        _compile_all(self, code)


def _compile_all(arena: Arena, code: Code) -> None:
    write_app(arena.root, arena.variation, code)
    for path in arena.root.rglob("*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")


def _without(arena: Arena, code: Code, *_: str) -> None:
    _compile_all(arena, code)


_RUN_ELSEWHERE = ("neighbour", "saved-on-device", "cuda-", "checkpoint", "nccl")
"""Faults whose preparation needs the device itself, or that are no Python."""


@pytest.mark.parametrize("fault", ON_DEVICE, ids=lambda fault: fault.id)
def test_their_apps_are_programs(fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: whatever the seed chooses, the app around the failing call compiles."""
    if any(word in fault.id.removeprefix("cuda-") for word in _RUN_ELSEWHERE):
        pytest.skip("its preparation needs the device")
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "0")  # what a fault sets in its own process is put back
    for name in (
        "CUDA_VISIBLE_DEVICES",
        "JAX_PLATFORMS",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
        "XLA_PYTHON_CLIENT_MEM_FRACTION",
    ):
        monkeypatch.setenv(name, "")
    for module in (cuda_apps, faults_cuda, faults_cuda_other):
        for hide in ("without_libraries", "without_device"):
            if hasattr(module, hide):
                monkeypatch.setattr(module, hide, _without)
    for seed in range(8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        variation = Variation.choose(seed, fault.id)
        fault.run(_Paper(folder, variation, random.Random(seed)))
        assert list(folder.rglob("*.py"))
