"""Rules of the dispatcher, and of the formats that have no test file of their own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashpath.ingest.model import Parsed
from crashpath.ingest.parse import PARSERS, parse
from crashpath.ingest.piece import Format

PYTHON = 'Traceback (most recent call last):\n  File "/srv/a.py", line 1, in f\n    g()\nValueError: bad\n'
JAVA = "a.b.CException: no\n\tat a.b.D.e(D.java:1)\nCaused by: a.b.FException: why\n\tat a.b.D.g(D.java:2)\n"
NODE = (
    "TypeError: no\n    at f (/srv/a.js:1:2)\n    at node:internal/main:1:2 {\n"
    "  [cause]: Error: why\n      at g (/srv/a.js:3:4)\n}\n"
)
GROUP = (
    "  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: g (1 sub-exception)\n"
    "  +-+---------------- 1 ----------------\n    | ValueError: v\n    +------------------------------------\n"
)
GO = (
    "panic: runtime error: invalid memory address\n[signal SIGSEGV: segmentation violation code=0x1]\n\n"
    "goroutine 1 [running]:\nexample.com/app/model.(*Net).Run(0x0, 0x1)\n\t/src/model/net.go:9 +0x1d\n"
    "main.main()\n\t/src/main.go:5 +0x2e\nexit status 2\n"
)
RUST_OLD = "thread 'main' panicked at 'index out of bounds: 3', src/main.rs:1:103\nnote: run with `RUST_BACKTRACE=1`\n"
RUST_NEW = (
    "\nthread 'main' (7) panicked at src/main.rs:1:103:\nno model\nat all\nstack backtrace:\n"
    "   0: rust_begin_unwind\n             at /rustc/59807616/library/std/src/panicking.rs:689:5\n"
    "   1: app::load::h0123456789abcdef\n             at ./src/main.rs:7:9\nnote: Some details are omitted\n"
)
DOTNET = (
    "Unhandled exception. System.InvalidOperationException: outer\n ---> System.IO.IOException: inner\n"
    "   at App.Store.Read(String path) in /src/Store.cs:line 12\n   --- End of inner exception stack trace ---\n"
    "   at App.Program.Main(String[] args) in /src/Program.cs:line 5\n"
)
FAULT = (
    'Fatal Python error: Aborted\n\nCurrent thread 0x01 (most recent call first):\n  File "/srv/a.py", line 7 in f\n'
)
TERMINATE = "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n"
GDB = "#0  0x00000000005e3099 in ns::f (this=0x7f) at /src/a.cc:9\n#1  0x00000000004074cb in main () at /src/m.cc:3\n"
ALL = (PYTHON, JAVA, NODE, GROUP, GO, RUST_OLD, RUST_NEW, DOTNET, FAULT, TERMINATE, GDB)


def shown(parsed: Parsed) -> list[tuple[str, str]]:
    return [(thrown.type, thrown.message) for thrown in parsed.chain]


@pytest.mark.parametrize(
    ("text", "format", "chain", "innermost"),
    [
        (GO, "go", [("panic", "runtime error: invalid memory address")], ("example.com/app/model", "(*Net).Run")),
        (RUST_OLD, "rust", [("panic", "index out of bounds: 3")], ("main", "??")),
        (RUST_NEW, "rust", [("panic", "no model\nat all")], ("panicking", "rust_begin_unwind")),
        (
            DOTNET,
            "dotnet",
            [("System.IO.IOException", "inner"), ("System.InvalidOperationException", "outer")],
            ("App.Store", "Read"),
        ),
        (GDB, "gdb", [("Backtrace", "")], ("a", "ns::f")),
        (TERMINATE, "native", [("std::bad_alloc", "std::bad_alloc")], None),
    ],
)  # fmt: skip
def test_each_format_has_its_chain_and_frames(
    text: str, format: str, chain: list[tuple[str, str]], innermost: tuple[str, str] | None
) -> None:
    """The first cause comes first, its innermost frame last."""
    parsed = parse(text)
    assert (parsed.format, shown(parsed)) == (format, chain)
    frames = parsed.chain[0].frames
    assert (frames[-1].module, frames[-1].function) == innermost if innermost else not frames


def test_a_go_panic_has_its_signal_and_exit_code() -> None:
    """What Go prints beside the panic is read too."""
    assert (parse(GO).signal, parse(GO).exit_code) == ("SIGSEGV", 2)


def test_formats_side_by_side_are_in_order_of_appearance() -> None:
    """A native failure before a traceback comes before it, one after it comes after."""
    assert [t.type for t in parse(TERMINATE + PYTHON).chain] == ["std::bad_alloc", "ValueError"]
    assert [t.type for t in parse(PYTHON + TERMINATE).chain] == ["ValueError", "std::bad_alloc"]


def test_the_record_is_named_by_the_most_telling_format() -> None:
    """Of several formats, the first in ``PARSERS`` that found an exception names the record."""
    assert parse(TERMINATE + PYTHON + FAULT).format == "python_traceback"
    assert parse("Segmentation fault (core dumped)\n" + JAVA).format == "java"


def test_text_that_no_parser_knows_is_plain() -> None:
    """Nothing is dropped: the result is plain, with an empty chain."""
    assert parse("model is slow today\n") == Parsed(Format.PLAIN)
    assert parse("") == Parsed(Format.PLAIN)


def test_every_format_has_a_cue() -> None:
    """Only the last resort is read without a cue, so every other parser can be reached."""
    assert [bool(parser.cues) for parser in PARSERS] == [True] * (len(PARSERS) - 1) + [False]
    formats = {parse(text).format for text in ALL}
    assert formats == {"python_traceback", "java", "node", "go", "rust", "dotnet", "faulthandler", "native", "gdb"}


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_cut_or_mixed_text_never_raises(data: st.DataObject) -> None:
    """Any piece of any format, lines lost, repeated and mixed: parsing gives a result whose lines are in the text."""
    lines = [line for text in ALL for line in text.split("\n")]
    chosen = data.draw(st.lists(st.sampled_from(lines) | st.text(max_size=30), max_size=40))
    text = "\n".join(chosen)
    text = text[data.draw(st.integers(0, 20)) :]
    for thrown in parse(text).chain:
        assert 0 <= thrown.line <= text.count("\n")
        assert thrown.type


@pytest.mark.parametrize("text", ALL)
def test_every_prefix_and_suffix_of_a_format_is_read(text: str) -> None:
    """A record that was cut at any byte, at its head or its tail, is still parsed."""
    for position in range(len(text)):
        for cut in (text[:position], text[position:]):
            assert all(thrown.line <= cut.count("\n") for thrown in parse(cut).chain)


@pytest.mark.parametrize(
    "text",
    [
        'File "a", line 1, in f\n' * 20000,
        "Error: x\n" * 20000,
        "at a.b.c(D.java:1)\n" * 20000,
        "  at f (a.js:1:2)\n" * 20000,
        "#1 0x000000 in f\n" * 10000,
        " " * 200000,
        "\n" * 200000,
        "a" * 250000,
        "a.b." * 60000,
        "CUDA error: " * 15000,
        "Assertion `" * 20000,
        "x: " * 60000 + "Exception",
        "(most recent call last)\n" * 5000,
        "terminate called after throwing an instance of 'x'\n" * 3000,
        "exit code " * 20000,
    ],
    ids=range(15),
)  # fmt: skip
@pytest.mark.timeout(20)
def test_a_hostile_record_takes_linear_time(text: str) -> None:
    """A record of the greatest size (256 KiB) of one repeated line does not stop the night."""
    parse(text[: 256 * 1024])
