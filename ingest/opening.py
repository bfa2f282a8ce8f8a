"""What a line is for the splitter: the head of a trace, an error, aftermath, or none of these.

These are the shapes that every runtime prints; which *sentences* are failures is known by the root rules, which the
splitter is given as a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum

from crashpath.ingest.prefix import ERROR_LEVELS


class Kind(IntEnum):
    """What a line does to a record."""

    PLAIN = 0
    BENIGN = 1
    ERROR = 2  # by its level alone
    FAILURE = 3  # a root rule knows it
    AFTERMATH = 4
    CONNECTOR = 5
    FRAME = 6
    PYTHON = 7  # from here on heads of traces
    NOTEBOOK = 8
    NATIVE = 9
    KERNEL = 10
    THROWN = 11


_TRACEBACK = "Traceback (most recent call last)"
INTERPRETER = "Traceback of TorchScript"
_CONNECTOR = re.compile(
    r"\s*\|?\s*(?:During handling of the above exception|The above exception was the direct cause of"
    r"|Caused by[: ]|Suppressed: |\.\.\. \d+ (?:more|common frames)|--- End of (?:inner )?exception stack"
    r"|-- Process \d+ terminated with the following error)"
)
_NATIVE = re.compile(
    r"Fatal Python error: |\*\*\* (?:SIG\w+|Aborted|Signal|Process received signal|Check failure|Error in)"
    r"|terminate called|libc\+\+abi: |panic: |fatal error: |thread '[^']*' .*panicked at"
    r"|goroutine \d+ \[running\]|=+(?:\d+=*)?ERROR: \w+Sanitizer|==\d+==\s*ERROR: "
    r"|\*\*\* stack smashing|#\s+A fatal error has been detected|\*\*\* \*\*\* \*\*\*|Fatal signal \d+"
    r"|Thread \d+ \".*\" received signal|Program (?:received|terminated with) signal|FATAL ERROR: |<--- Last few GCs"
    r"|Fatal error|Check failed: |Assertion .*failed|GGML_ASSERT|double free|free\(\): |malloc(?:\(\)|_|: )"
    r"|corrupted [sdu]|BUG: |Oops: |general protection|traps: |Timeout \(\d+:\d\d:\d\d"
)
_THROWN = re.compile(r"^(?:Exception in thread |Unhandled [Ee]xception|Uncaught )|\n\s+at [\w$./<]+\(")
_NATIVE_FIRST = frozenset("F*tleEUpgT=#AP<CGdfmcBO")
_THROWN_FIRST = frozenset("EU")
_DIED = re.compile(
    r"(?:.{0,200}\s)?(?:Segmentation fault|Illegal instruction|Bus error|Floating point exception|Aborted|Killed)"
    r"(?:\s+\(core dumped\)(?:\s.*)?|)$"
)
_DIED_WORDS = re.compile(r"fault|instruction|[Bb]us error|exception|Aborted|Killed")
_FRAME = re.compile(
    r'\s+at (?:[\w$.<>/ \[\]-]+\(|async |file:|/|[\w.]+ )|\s*File "[^"]+", line \d+|\s*#\d+\s+(?:0x[0-9a-f]+|pc )'
    r"|\s+\.\.\. \d+ more|\s+@\s+0x|\s*frame #\d+: "
)
_FRAME_FIRST = frozenset(" \tF#f")
_KERNEL = re.compile(r".{0,80}invoked oom-killer: |oom-kill:constraint=|(?:Memory cgroup )?[Oo]ut of memory: Kill")
KERNEL_END = re.compile(r"(?:Memory cgroup )?[Oo]ut of memory: Kill|Killed process \d+")
AFTERMATH = re.compile(
    r"EngineDeadError|EngineCore (?:failed|died|encountered)|Engine core (?:proc|initialization)|died unexpectedly"
    r"|[Ww]orker (?:died|exit|fail)|[Ww]orker .{0,40}(?:was sent SIG|exited with|terminated|disconnected)"
    r"|process has terminated|worker process died|Main process exited|Failed with result|Scheduled restart"
    r"|Start request repeated|oom_reaper: |Back-off restarting|exitcode ?[:=]|exit status \d|returned non-zero exit"
    r"|exit(?:ed|ing)?(?: with)?(?: exit)?[ -](?:code|status)[ :=]+-?\d|ChildFailedError|RayTaskError|ActorDiedError"
    r"|WorkerCrashedError|BrokenProcessPool|BrokenPipeError|KeyboardInterrupt|SystemExit"
    r"|leaked (?:semaphore|shared_memory)|destroy_process_group|Shutting down|Sending process .* SIG"
    r"|closing signal SIG|Received signal|core dumped|dumped core|Application startup failed|Reason: Worker failed"
    r"|Fatal signal|oomd killed \d|Process \S+ \(pid \d+\) has died|Process \d+ exited due to signal"
    r"|pid: \d+, tid: \d+, name: "
)
_FINAL_NOTEBOOK = re.compile(
    r"(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)|[A-Z][\w.]*|[a-z_]\w*(?:\.\w+)+)(?:: |$)"
)
_NATIVE_GOES_ON = re.compile(
    r"\s|$|Thread |Current thread|Extension modules|#\d|PC: @|@|\*\*\*|===|==\d+|SUMMARY: |Shadow|=>|freed by"
    r"|previously|(?:READ|WRITE) of size|goroutine|created by|main\.|stack backtrace|note: |pid: |signal \d|backtrace:"
    r"|Build fing|Revision|ABI|Process|Timestamp|Cmdline|Abort message|Cause: |[rx]\d|\d+: |PID: |java\.|kotlin\."
    r"|android\.|-{3,} |-{3,}$|<--- |\[\w+:\w+\]|#(?:\s|$)"
)
KERNEL_LINES = 600
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


def kind_of(text: str, level: str | None, is_failure: Callable[[str], bool]) -> Kind:
    """Classify a line that stands outside a trace. ``text`` has no prefixes; newlines in it come from a logger."""
    if _TRACEBACK in text:
        return _traceback_kind(text)
    if text.startswith(INTERPRETER):
        return Kind.PYTHON
    first = text[:1]
    if first in _FRAME_FIRST and _FRAME.match(text):
        return Kind.FRAME
    if not text or text.isspace():
        return Kind.PLAIN
    # "above exception", "Caused by", "Suppressed: ", "... 5 more", "-- Process 1": a substring test beats the pattern
    if ("bove ex" in text or "used by" in text or "pressed: " in text or "... " in text or "-- " in text) and (
        _CONNECTOR.match(text)
    ):
        return Kind.CONNECTOR
    if ("oom" in text or "ut of memory: K" in text) and _KERNEL.match(text):
        return Kind.KERNEL
    if first in _NATIVE_FIRST and _NATIVE.match(text):
        return Kind.NATIVE
    if (first in _THROWN_FIRST or "\n" in text) and _THROWN.search(text, 0, 2000):
        return Kind.THROWN
    return _sentence_kind(text, level, is_failure)


def _sentence_kind(text: str, level: str | None, is_failure: Callable[[str], bool]) -> Kind:
    if level in ERROR_LEVELS or text.startswith("FATAL EXCEPTION"):
        if AFTERMATH.search(text, 0, 2000):
            return Kind.AFTERMATH
        return Kind.FAILURE if is_failure(text) else Kind.ERROR
    if _DIED_WORDS.search(text, 0, 400) and _DIED.match(text):
        return Kind.AFTERMATH
    if is_failure(text):
        return Kind.AFTERMATH if AFTERMATH.search(text, 0, 2000) else Kind.FAILURE
    return Kind.PLAIN if level is None else Kind.BENIGN


def _traceback_kind(text: str) -> Kind:
    head = text.lstrip(" |+-")
    if head.startswith(_TRACEBACK) or "\n" in text:
        return Kind.PYTHON
    return Kind.NOTEBOOK if text.rstrip().endswith(")") and "  " in text else Kind.PYTHON


def trace_goes_on(text: str, mode: Kind) -> bool:
    """Tell whether a line still belongs to the trace that ``mode`` opened; the line that ends it does not."""
    if mode is Kind.PYTHON:
        return text[:1] in " \t|+" or text == "" or text.startswith(('File "', INTERPRETER))
    if mode is Kind.NOTEBOOK:
        return _FINAL_NOTEBOOK.match(text) is None
    if mode is Kind.FRAME or mode is Kind.THROWN:
        return text[:1] in " \t" or _FRAME.match(text) is not None
    return _NATIVE_GOES_ON.match(text) is not None


def same_words(text: str) -> str:
    """Return the text with its numbers gone, to tell a repeat from another failure."""
    return _NUMBER.sub("#", text.strip()[:400])
