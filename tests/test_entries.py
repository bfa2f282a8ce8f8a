"""A message ends where the next log entry begins."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crashpath.ingest.analyse import Analyser
from crashpath.ingest.model import Record
from crashpath.ingest.read import split_lines
from crashpath.ingest.rules import load_rules
from crashpath.ingest.split import SplitOptions, Splitter
from crashpath.ingest.whole import one_record

RULES = load_rules()
TRACE = """2026-03-01 00:00:01,000 ERROR server: request 1 failed
Traceback (most recent call last):
  File "/srv/app/serve.py", line 8, in predict
    out = model(x)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x512 and 768x2)
"""
ALONE = "mat1 and mat2 shapes cannot be multiplied (1x512 and 768x2)"
AFTER = {
    "healthy lines and the end of the worker": "2026-03-01 00:00:02,000 INFO server: request 2 took 12 ms\n"
    "2026-03-01 00:00:04,000 ERROR server: worker exited with code 1\n",
    "healthy lines and another failure": "2026-03-01 00:00:02,000 INFO server: request 2 took 12 ms\n"
    "2026-03-01 00:00:04,000 ERROR server: cannot load model\nTraceback (most recent call last):\n"
    '  File "/srv/app/serve.py", line 9, in load\n    open(path)\nFileNotFoundError: [Errno 2] No such file\n',
    "nothing": "",
}


OPTIONS = SplitOptions(as_of=datetime(2026, 3, 2, tzinfo=UTC), is_failure=RULES.is_failure)


def first_record(text: str) -> Record:
    """The first record of a log."""
    splitter = Splitter("x", OPTIONS, 0)
    items = [item for raw in split_lines(iter([text.encode()])) for item in splitter.feed(raw)]
    return next(item for item in (*items, *splitter.close()) if isinstance(item, Record))


@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
def test_what_loggers_say_next_is_no_part_of_the_message(after: str) -> None:
    """The same failure has the same message and signature, whatever is logged after it."""
    analyser = Analyser(RULES, redacting=True)
    found = analyser.analyse(first_record(TRACE + after))
    assert found.parsed.chain[0].message == found.root.message == ALONE
    assert found.signature.id == analyser.analyse(first_record(TRACE)).signature.id


def test_a_message_goes_on_over_lines_without_a_level() -> None:
    """Lines that no logger wrote belong to the message, as does a whole trace at one level."""
    analyser = Analyser(RULES, redacting=False)
    more = "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    assert analyser.analyse(first_record(TRACE + more)).parsed.chain[0].message == f"{ALONE}\n{more.rstrip()}"
    levelled = "".join(f"ERROR 03-01 00:00:01 [core.py:7] {line}\n" for line in (TRACE + more).splitlines()[1:])
    assert analyser.analyse(first_record(levelled)).parsed.chain[0].message == f"{ALONE}\n{more.rstrip()}"


def test_a_line_with_a_time_of_its_own_is_no_part_of_a_message_without_one() -> None:
    """A trace that was printed ends at the next stamped line, though the level there is not one that is known."""
    analyser = Analyser(RULES, redacting=False)
    bare = "".join(line + "\n" for line in TRACE.splitlines()[1:])
    record = one_record(bare + "2026-03-01T00:00:02Z warning worker 7 is replaced\n", source="x", options=OPTIONS)
    assert analyser.analyse(record).parsed.chain[0].message == ALONE
    stamped = "".join(f"2026-03-01T00:00:02Z {line}\n" for line in [*bare.splitlines(), "and a second line of it"])
    record = one_record(stamped, source="x", options=OPTIONS)
    assert analyser.analyse(record).parsed.chain[0].message == f"{ALONE}\nand a second line of it"


@pytest.mark.parametrize(("phase", "expected"), [("load", "load_timeout"), ("infer", "hang")])
def test_a_record_that_names_its_phase_says_what_hung(phase: str, expected: str) -> None:
    """The same words are a hang, or a model that was not ready in time; the memo of the text keeps neither."""
    analyser = Analyser(RULES, redacting=False)
    for told, wanted in (("infer", "hang"), (phase, expected)):
        text = f'{{"level": "error", "phase": "{told}", "msg": "[CRITICAL] WORKER TIMEOUT (pid:4084)"}}'
        record = one_record(text, source="x", options=SplitOptions())
        assert analyser.analyse(record).root.failure_class == wanted
