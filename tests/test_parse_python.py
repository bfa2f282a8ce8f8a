"""Rules of Python tracebacks, on what real interpreters print and on what logs leave of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from crashpath.ingest.model import Parsed, Thrown
from crashpath.ingest.parse import parse

FRAMES = """\
  File "/srv/app/serve.py", line 10, in main
    run(model)
  File "/opt/v/lib/python3.10/site-packages/onnxruntime/capi/session.py", line 20, in run
    return self._sess.run(names, feed)
"""


def run_python(folder: Path, source: str) -> str:
    script = folder / "prog.py"
    script.write_text(source)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    return done.stderr


def types(parsed: Parsed) -> list[str]:
    return [thrown.type for thrown in parsed.chain]


def first(parsed: Parsed) -> tuple[str, str]:
    return parsed.chain[0].type, parsed.chain[0].message


def names(thrown: Thrown) -> list[tuple[str, str]]:
    return [(frame.module, frame.function) for frame in thrown.frames]


def test_a_real_chain_has_its_first_cause_first(tmp_path: Path) -> None:
    """``from`` and ``during handling`` both put the exception that came first at the head of the chain."""
    text = run_python(
        tmp_path,
        """
def inner():
    {}["k"]
def middle():
    try:
        inner()
    except KeyError as e:
        raise ValueError("bad value") from e
try:
    middle()
except ValueError:
    raise RuntimeError("load failed")
""",
    )
    parsed = parse(text)
    assert parsed.format == "python_traceback"
    assert [(t.type, t.message) for t in parsed.chain] == [
        ("KeyError", "'k'"),
        ("ValueError", "bad value"),
        ("RuntimeError", "load failed"),
    ]
    assert names(parsed.chain[0]) == [("prog", "middle"), ("prog", "inner")]
    assert [text.split("\n")[t.line] for t in parsed.chain] == [
        "KeyError: 'k'",
        "ValueError: bad value",
        "RuntimeError: load failed",
    ]


def test_a_message_keeps_its_lines_and_notes(tmp_path: Path) -> None:
    """A message of several lines, and the notes of its exception, are one message."""
    text = run_python(tmp_path, 'e = OSError("first\\nsecond")\ne.add_note("a note")\nraise e\n')
    assert [t.message for t in parse(text).chain] == ["first\nsecond\na note"]


def test_a_real_group_has_its_members_first(tmp_path: Path) -> None:
    """Members of an exception group are causes; nested groups come before the group around them."""
    text = run_python(
        tmp_path,
        """
def caught(e):
    try:
        raise e
    except Exception as x:
        return x
inner = ExceptionGroup("inner", [caught(TypeError("t")), OSError("never raised")])
raise ExceptionGroup("outer", [caught(ValueError("v")), inner])
""",
    )
    assert types(parse(text)) == ["ValueError", "TypeError", "OSError", "ExceptionGroup", "ExceptionGroup"]
    assert parse(text).chain[-1].message.startswith("outer")
    for thrown in parse(text).chain:
        assert thrown.type in text.split("\n")[thrown.line]


def test_a_real_remote_traceback_is_the_cause(tmp_path: Path) -> None:
    """What a worker process raised is one exception, with the worker's frames; its carrier is not in the chain."""
    text = run_python(
        tmp_path,
        """
import multiprocessing as mp
def work(x):
    return 1 / x
if __name__ == "__main__":
    with mp.get_context("fork").Pool(1) as pool:
        pool.map(work, [0])
""",
    )
    assert "RemoteTraceback" in text
    parsed = parse(text)
    assert types(parsed) == ["ZeroDivisionError"]
    assert names(parsed.chain[0])[-1] == ("prog", "work")


def test_a_real_syntax_error_has_its_file(tmp_path: Path) -> None:
    """A ``File`` line without a function is a frame too."""
    parsed = parse(run_python(tmp_path, "def f(:\n"))
    assert types(parsed) == ["SyntaxError"]
    assert names(parsed.chain[0]) == [("prog", "<module>")]


@pytest.fixture(scope="module")
def torchscript(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The tracebacks of four TorchScript failures: scripted, saved and loaded, raised in script, traced."""
    source = """
import io, traceback, warnings
warnings.simplefilter("ignore")
import torch
class M(torch.nn.Module):
    def helper(self, x, y):
        return x + y
    def forward(self, x, y):
        return self.helper(x, y) * 2
def raising(x: int) -> int:
    if x > 1:
        raise ValueError("too big")
    return x
def show(f):
    try:
        f()
    except Exception:
        print(traceback.format_exc(), "-----", sep="\\n")
m = torch.jit.script(M())
b = io.BytesIO(); torch.jit.save(m, b); b.seek(0)
a, c = torch.rand(3), torch.rand(4)
show(lambda: m(a, c))
show(lambda: torch.jit.load(b)(a, c))
show(lambda: torch.jit.script(raising)(3))
t = torch.jit.trace(lambda q: q.view(3, 2), torch.rand(6), check_trace=False)
show(lambda: t(torch.rand(7)))
"""
    script = tmp_path_factory.mktemp("ts") / "prog.py"
    script.write_text(source)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=240, check=False)
    return done.stdout.split("-----\n")[:4]


@pytest.mark.parametrize(
    ("which", "kind", "function"),
    [
        (0, "RuntimeError", "helper"),
        (1, "RuntimeError", "helper"),
        (2, "ValueError", "raising"),
        (3, "RuntimeError", "<lambda>"),
    ],
)  # fmt: skip
def test_the_torchscript_interpreter_wraps_the_cause(
    torchscript: list[str], which: int, kind: str, function: str
) -> None:
    """What failed inside the graph is the cause, with the original code's frames; the interpreter wraps it."""
    parsed = parse(torchscript[which])
    assert parsed.format == "torchscript"
    assert types(parsed)[0] == kind
    assert names(parsed.chain[0])[-1] == ("prog", function)
    assert "TorchScript interpreter" in parsed.chain[-1].message
    assert len(parsed.chain) == 2


def test_frames_without_a_header_are_read() -> None:
    """A log that begins in the middle of a traceback still gives the exception and the frames that are left."""
    parsed = parse(FRAMES + "RuntimeError: no luck\n")
    assert types(parsed) == ["RuntimeError"]
    assert len(parsed.chain[0].frames) == 2


def test_a_cut_traceback_keeps_its_frames() -> None:
    """Where the exception was cut off, the type is ``Traceback``; words on the header's line are the message."""
    assert first(parse("Traceback (most recent call last):\n" + FRAMES)) == ("Traceback", "")
    led = parse("worker 3 failed: queue closed, Traceback (most recent call last):\n" + FRAMES)
    assert first(led) == ("Traceback", "worker 3 failed: queue closed")
    named = parse("ValueError: bad shape Traceback (most recent call last):\n" + FRAMES)
    assert first(named) == ("ValueError", "bad shape")
    assert len(named.chain[0].frames) == 2


def test_an_exception_above_its_frames_is_read() -> None:
    """Some writers print the exception first and the frames below it, without a header."""
    parsed = parse("ValueError: Got 3 Expected 4\n\n" + FRAMES)
    assert types(parsed) == ["ValueError"]
    assert len(parsed.chain[0].frames) == 2


@pytest.mark.parametrize("spoil", ["indent", "double", "margin"])
def test_a_spoiled_layout_gives_the_same(spoil: str) -> None:
    """Lost indentation, a blank line between every line, or a deeper margin do not change what is read."""
    clean = (
        "Traceback (most recent call last):\n"
        + FRAMES.replace("run(model)\n", "run(model)\n    ^^^^^^^^^^\n")
        + ("app.errors.LoadError: no luck\n")
    )
    spoiled = {
        "indent": "\n".join(line.strip() for line in clean.split("\n")),
        "double": clean.replace("\n", "\n\n"),
        "margin": "\n".join("    " + line for line in clean.split("\n")),
    }[spoil]
    ours, theirs = parse(clean).chain, parse(spoiled).chain
    assert [(t.type, t.message, t.frames) for t in ours] == [(t.type, t.message, t.frames) for t in theirs]
    assert len(ours[0].frames) == 2


def test_unrelated_tracebacks_are_in_order_of_appearance() -> None:
    """Two tracebacks without a link are two exceptions, the first printed first; a repeat is not kept."""
    one = "Traceback (most recent call last):\n" + FRAMES + "ValueError: one\n"
    two = "Traceback (most recent call last):\n" + FRAMES + "TypeError: two\n"
    assert types(parse(one + "some line\n" + two + one)) == ["ValueError", "TypeError"]


def test_an_original_traceback_is_the_cause() -> None:
    """The traceback that a data loader or a spawned process puts into a message is the cause."""
    head = "Traceback (most recent call last):\n" + FRAMES
    loader = head + "ValueError: Caught KeyError in DataLoader worker process 0.\nOriginal " + head + "KeyError: 'x'\n"
    assert types(parse(loader)) == ["KeyError", "ValueError"]
    spawned = head + (
        "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the following error:\n"
    )
    assert types(parse(spawned + head + "KeyError: 'x'\n")) == [
        "KeyError",
        "torch.multiprocessing.spawn.ProcessRaisedException",
    ]


def test_a_ray_task_error_holds_its_cause() -> None:
    """Ray prints the remote frames without a header, below the line of its own error."""
    text = (
        "Traceback (most recent call last):\n" + FRAMES
        + "ray.exceptions.RayTaskError(ValueError): ray::Replica.call() (pid=812, ip=10.0.0.4)\n"
        + FRAMES.replace("main", "remote") + "ValueError: bad batch\n"
    )  # fmt: skip
    parsed = parse(text)
    assert types(parsed) == ["ValueError", "ray.exceptions.RayTaskError(ValueError)"]
    assert names(parsed.chain[0])[0] == ("serve", "remote")


def test_a_bare_exception_is_linked_by_the_sentence_between() -> None:
    """An exception whose own traceback was cut is still the cause of the next, and the result of the one before."""
    link = "\nThe above exception was the direct cause of the following exception:\n\n"
    head = "Traceback (most recent call last):\n" + FRAMES
    assert types(parse("hub.GatedRepoError: 401\n" + link + head + "OSError: gated\n")) == [
        "hub.GatedRepoError",
        "OSError",
    ]
    assert types(parse(head + "KeyError: 'x'\n" + link + "RuntimeError: warm-up\n")) == ["KeyError", "RuntimeError"]


def test_a_message_stops_where_other_output_begins() -> None:
    """A line of another program, a prompt or the shell's word of a crash is not part of the message."""
    for other in (
        "Segmentation fault (core dumped)",
        "2026-01-02 03:04:05 next",
        "user@host:~$ ls",
        "run.sh: line 3: 99 Aborted",
    ):
        parsed = parse("Traceback (most recent call last):\n" + FRAMES + "ValueError: one\ntwo\n" + other + "\n")
        assert parsed.chain[0].message == "one\ntwo"


def test_a_notebook_is_a_python_traceback() -> None:
    """Jupyter's layout gives the same type, function names and modules as a plain traceback."""
    parsed = parse(
        "---------------------------------------------------------------------------\n"
        "NotImplemented                            Traceback (most recent call last)\n"
        "Input In [8], in <cell line: 1>()\n"
        "----> 1 ort.InferenceSession('q.onnx')\n\n"
        "File ~/v/lib/python3.8/site-packages/onnxruntime/capi/session.py:347, in Session.__init__(self)\n"
        "    346 try:\n--> 347     self._create()\n\n"
        "NotImplemented: [ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : no kernel for ConvInteger(10)\n"
    )
    assert types(parsed) == ["onnxruntime.NotImplemented"]
    assert names(parsed.chain[0]) == [("<notebook>", "<module>"), ("onnxruntime.capi.session", "__init__")]


def test_a_pybind_list_is_a_stack() -> None:
    """``At:`` lists the frames innermost first below the exception that a C++ host caught."""
    parsed = parse(
        "Failed to initialize stub: PermissionError: [Errno 13] Permission denied: '/data'\n\nAt:\n"
        "  /usr/lib/python3.10/os.py(225): makedirs\n  /models/pre/1/model.py(72): initialize\n\nE later\n"
    )
    assert first(parsed) == ("PermissionError", "[Errno 13] Permission denied: '/data'")
    assert names(parsed.chain[0]) == [("model", "initialize"), ("os", "makedirs")]


def test_a_rich_box_is_a_traceback() -> None:
    """The frames in a box and the exception below it belong together."""
    parsed = parse(
        "╭────────────── Traceback (most recent call last) ──────────────╮\n"
        "│ /srv/app/cli.py:12 in main                                     │\n"
        "│                                                                │\n"
        "│   11 def main():                                               │\n"
        "│ /opt/v/lib/python3.10/site-packages/hub/download.py:99 in get  │\n"
        "╰────────────────────────────────────────────────────────────────╯\n"
        "PermissionError: denied: '/data'\n"
    )
    assert types(parsed) == ["PermissionError"]
    assert names(parsed.chain[0]) == [("cli", "main"), ("hub.download", "get")]


def test_bare_exception_lines_are_plain_text() -> None:
    """An exception line without any stack is read, with the lines of its message; prose is not an exception."""
    parsed = parse("OSError: gated repo.\nMake sure to have access.\n")
    assert (parsed.format, first(parsed)) == ("plain", ("OSError", "gated repo.\nMake sure to have access."))
    assert parse("the model was not ready in time\nError rate is 3 %\n").chain == ()
