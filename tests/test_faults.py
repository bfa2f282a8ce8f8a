"""The catalogue: what every entry must say, how many there must be, and that a run shows a real failure."""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crashpath.coverage.app import Code, write_app
from crashpath.coverage.fault import Arena, Fault, missing
from crashpath.coverage.faultrun import FaultError, run_fault
from crashpath.coverage.faults import FAULTS, fault_by_id
from crashpath.coverage.variation import Chain, Variation
from crashpath.ingest.classes import CLASSES, UNCLASSIFIED
from crashpath.ingest.model import Phase

REPOSITORY = Path(__file__).resolve().parents[1]
QUICK = (
    "python-module-missing",
    "python-circular-import",
    "python-pickle-broken",
    "python-memory-limit",
    "python-watchdog",
    "python-not-ready",
    "python-download-refused",
    "numpy-shapes",
    "numpy-mapped-file-shrinks",
    "numpy-forbidden",
    "tokenizers-truncated",
    "safetensors-header-invalid",
    "ort-kernel-missing",
    "ort-provider-library",
)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder that every user can reach, as some faults drop root's rights."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        yield folder


def test_ids_are_unique_and_speaking() -> None:
    """An id names one entry for ever, so there is one entry an id, and ids are plain words."""
    twice = [fault_id for fault_id, count in Counter(fault.id for fault in FAULTS).items() if count > 1]
    assert twice == []
    assert [f.id for f in FAULTS if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", f.id)] == []


def test_classes_and_phases_are_known() -> None:
    """A fault's class is one of the product's (or none, where no cause shows), its phase a word that crashes use."""
    classes = {UNCLASSIFIED, *(entry.id for entry in CLASSES)}
    phases = {str(phase) for phase in Phase}
    assert [f.id for f in FAULTS if f.failure_class not in classes] == []
    assert [f.id for f in FAULTS if f.phase not in phases] == []


def test_there_are_enough_for_every_class() -> None:
    """At least 60 faults; at least 4 over 2 libraries for each class that can fail without a device."""
    assert len(FAULTS) >= 60
    thin = {}
    for entry in CLASSES:
        if entry.id in ("oom_device", "device_fault"):
            continue  # nothing here has a device: their logs are written or were taken elsewhere
        faults = [fault for fault in FAULTS if fault.failure_class == entry.id]
        libraries = {fault.library for fault in faults}
        if len(faults) < 4 or len(libraries) < 2:
            thin[entry.id] = (len(faults), sorted(libraries))
    assert thin == {}


def test_an_unknown_id_is_named() -> None:
    """Asking for an entry that is not there says which."""
    with pytest.raises(KeyError, match="no-such-fault"):
        fault_by_id("no-such-fault")


def test_variation_follows_the_seed() -> None:
    """The same seed and fault give the same values on any day; another seed gives others."""
    assert Variation.choose(3, "x") == Variation.choose(3, "x")
    assert len({Variation.choose(seed, "x").layout.root for seed in range(40)}) >= 5
    assert {Variation.choose(seed, "x").chain for seed in range(200)} == set(Chain)


def test_every_wrapping_gives_a_program(tmp_path: Path) -> None:
    """Whatever the layout, depth and chaining, the app that is written compiles."""
    for seed in range(120):
        variation = Variation.choose(seed, "wrap")
        phase = ("load", "infer", "prepare")[seed % 3]
        root = tmp_path / str(seed)
        write_app(root, variation, Code.of("return [size, name]", "import json", phase=phase, size=seed, name="x"))
        for path in root.rglob("*.py"):
            compile(path.read_text(encoding="utf-8"), str(path), "exec")


def test_a_missing_need_is_said() -> None:
    """A fault that needs what is not here does not run, and says what it needs."""
    fault = Fault("x-y", "hang", "infer", "x", "x", lambda arena: None, needs=("no-such-program",))
    assert missing(fault) == "no-such-program"
    with pytest.raises(FaultError, match="no-such-program"):
        run_fault(fault, 1)


@pytest.mark.parametrize("fault_id", QUICK)
def test_a_run_fails_for_real_and_leaves_nothing(fault_id: str, scratch: Path) -> None:
    """A run prints something and fails, shows no path of this machine, and removes its scratch folder."""
    fault = fault_by_id(fault_id)
    if need := missing(fault):
        pytest.skip(f"missing: {need}")
    outcome = run_fault(fault, 1, scratch=scratch)
    assert outcome.text.strip()
    assert not outcome.timed_out
    assert outcome.signal or outcome.exit_code
    assert str(REPOSITORY) not in outcome.text
    assert str(scratch) not in outcome.text
    assert "crashpath" not in outcome.text
    assert list(scratch.iterdir()) == []


def test_two_seeds_differ_in_what_varies_alone(scratch: Path) -> None:
    """Two runs of one fault end with the same kind of error, in other places and with other values."""
    fault = fault_by_id("numpy-memory-limit")
    texts = [run_fault(fault, seed, scratch=scratch).text for seed in (1, 2)]
    assert texts[0] != texts[1]
    assert all("Unable to allocate" in text for text in texts)


def test_a_fault_without_end_is_ended(scratch: Path) -> None:
    """At the time limit the run and what it started are ended, and the outcome says so."""
    source = fault_by_id("ort-endless-loop")
    impatient = Fault(source.id, "hang", "infer", source.library, source.title, source.run, timeout_s=0.2)
    outcome = run_fault(impatient, 1, scratch=scratch)
    assert outcome.timed_out
    assert (outcome.exit_code, outcome.signal) == (None, None)
    assert list(scratch.iterdir()) == []


def test_an_arena_places_files_below_the_app(tmp_path: Path) -> None:
    """Names are filled in from the variation, and folders are there."""
    variation = Variation.choose(5, "a")
    path = Arena(tmp_path, variation, random.Random(5)).path("models/{model}/{stem}.onnx")
    assert path.parent.is_dir()
    assert path == tmp_path / variation.layout.root / "models" / variation.model / f"{variation.stem}.onnx"
