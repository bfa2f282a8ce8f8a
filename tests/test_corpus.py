"""The corpus: what is in ``data/`` and the program that makes it."""

from __future__ import annotations

import gzip
import random
import re
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path

import pytest
import zstandard

from crashpath.coverage import corpus
from crashpath.coverage.corpus import Label
from crashpath.coverage.faults import FAULTS
from crashpath.coverage.vary import dress
from crashpath.ingest.classes import CLASSES

DATA = Path(__file__).resolve().parents[1] / "data"
AT = datetime(2026, 11, 23, 4, 5, 6)
TRACE = "Traceback (most recent call last):\n" + "".join(
    f'  File "/srv/app/m{i}.py", line {i}, in f{i}\n    g()\n' for i in range(9)
)
ROOT = "ValueError: shapes (3,4) and (5,6) do not fit"


def _labels() -> tuple[Label, ...]:
    return corpus.read_labels(DATA / "labels.csv")


def _text(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    elif path.suffix == ".zst":
        data = zstandard.decompress(data)
    return data.decode()


def test_labels_and_files_agree() -> None:
    """Every log has one row and every row has its log."""
    rows = [label.file for label in _labels()]
    files = [str(path.relative_to(DATA)) for path in (DATA / "crashlogs").rglob("*") if path.is_file()]
    assert sorted(rows) == sorted(files)


def test_the_corpus_is_large_and_wide_enough() -> None:
    """At least 500 logs and 60 real faults; each class has at least four faults over at least two libraries."""
    labels = _labels()
    assert len(labels) >= 500
    assert len({label.fault for label in labels if label.origin == "ran" and not label.fault.startswith("gpu-")}) >= 60
    faults: dict[str, set[str]] = defaultdict(set)
    libraries: dict[str, set[str]] = defaultdict(set)
    for label in labels:
        faults[label.failure_class].add(label.fault)
        libraries[label.failure_class].add(label.library)
    for known in CLASSES:
        assert len(faults[known.id]) >= 4, known.id
        assert len(libraries[known.id]) >= 2, known.id


def test_the_corpus_is_small() -> None:
    """All logs together stay under 8 MiB."""
    assert sum(path.stat().st_size for path in (DATA / "crashlogs").rglob("*") if path.is_file()) < 8 << 20


def test_no_log_tells_of_the_machine_that_made_it() -> None:
    """No path of a checkout or scratch folder, and no text that is empty."""
    for label in _labels():
        text = _text(DATA / label.file)
        assert text.strip(), label.file
        assert not re.search(r"crashpath|faultrun|/tmp/run-|/work/|\.pyenv", text, re.IGNORECASE), label.file


def test_nights_and_releases() -> None:
    """There are five nights and two releases, and the newer one starts later."""
    nights: dict[str, set[int]] = defaultdict(set)
    for label in _labels():
        nights[label.release].add(label.night)
        assert label.file.startswith(f"crashlogs/night{label.night}/{label.release}/{label.platform}/")
    assert set().union(*nights.values()) == {1, 2, 3, 4, 5}
    old, new = sorted(nights)
    assert min(nights[old]) < min(nights[new])
    assert max(nights[old]) < max(nights[new])


def test_labels_are_those_of_the_catalogue() -> None:
    """A log that ran has the class, library and phase that its fault has in the catalogue now."""
    known = {fault.id: (fault.failure_class, fault.library, fault.phase) for fault in FAULTS}
    for label in _labels():
        if label.fault in known:
            assert (label.failure_class, label.library, label.phase) == known[label.fault], label.file


def test_dressing_keeps_the_line_that_states_the_cause() -> None:
    """Whatever is put around a trace, its last line stays; and a seed gives one dress."""
    dresses = set()
    for seed in range(300):
        log = dress(TRACE + ROOT + "\n", rng=random.Random(seed), at=AT, model="bert", framed=False)
        assert ROOT in log
        assert log == dress(TRACE + ROOT + "\n", rng=random.Random(seed), at=AT, model="bert", framed=False)
        dresses.add(log)
    assert len(dresses) > 250


def test_dressing_varies_as_the_field_does() -> None:
    """Colours, CRLF, JSON, prefixes, retries and cut heads all occur, none of them nearly always."""
    seen: Counter[str] = Counter()
    for seed in range(400):
        log = dress(TRACE + ROOT + "\n", rng=random.Random(seed), at=AT, model="bert", framed=False)
        seen["crlf"] += "\r\n" in log
        seen["colour"] += "\x1b[" in log
        seen["json"] += log.lstrip().startswith("{")
        seen["prefix"] += any(mark in log for mark in ("-1  | ", "[pod/", "stderr F", "(Worker pid="))
        seen["retry"] += log.count(ROOT) > 1
        seen["cut"] += "Traceback" not in log
    for what in ("crlf", "colour", "json", "prefix", "retry", "cut"):
        assert 4 <= seen[what] <= 250, (what, seen[what])


def test_stamps_move_with_the_night() -> None:
    """A stamp of the run moves to the log's night; one that is far away, as in a message, stays."""
    text = "2026-05-06 10:00:01,5 ERROR x\nbuilt 2019-01-01 00:00:00\n"
    moved = corpus.move_stamps(text, datetime(2026, 5, 6, 10, 0, 0), AT)
    assert moved == "2026-11-23 04:05:07,5 ERROR x\nbuilt 2019-01-01 00:00:00\n"


@pytest.mark.parametrize("name", ["a.log", "a.log.gz", "a.log.zst"])
def test_logs_are_written_whole(tmp_path: Path, name: str) -> None:
    """A log reads back as it was, compressed or not, and no partial file is left."""
    corpus.write_log(tmp_path / "night1" / name, "one\ntwo é\n")
    assert _text(tmp_path / "night1" / name) == "one\ntwo é\n"
    assert [path.name for path in (tmp_path / "night1").iterdir()] == [name]


def test_a_run_makes_what_is_missing_and_leaves_the_rest(tmp_path: Path) -> None:
    """A second run of one entry changes nothing; a file that was lost is made again, the same."""
    arguments = ["--only", "w-kernel-oom", "--data", str(tmp_path)]
    assert corpus.main(arguments) == 0
    files = {path: path.read_bytes() for path in (tmp_path / "crashlogs").rglob("*") if path.is_file()}
    lost = sorted(files)[0]
    lost.unlink()
    assert corpus.main(arguments) == 0
    assert {path: path.read_bytes() for path in (tmp_path / "crashlogs").rglob("*") if path.is_file()} == files


def test_a_real_fault_becomes_a_labelled_log(tmp_path: Path) -> None:
    """One fault of the catalogue, run for real, gives a log with its own message."""
    assert corpus.main(["--only", "limit-mmap", "--data", str(tmp_path)]) == 0
    labels = corpus.read_labels(tmp_path / "labels.csv")
    assert {label.failure_class for label in labels} == {"oom_host"}
    for label in labels:
        assert "Cannot allocate memory" in _text(tmp_path / label.file)
