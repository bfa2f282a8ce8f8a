"""Signature: same failure, same key, on any machine, for ever; and it says what it was made of."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashpath.ingest.model import Frame, Parsed, Role, Root, Thrown, Variant
from crashpath.ingest.redact import redact
from crashpath.ingest.signature import TYPES, explain, make_variant, sign, type_name

OWN = Frame("predict", "serve.app", True)
LIBRARY = Frame("run", "onnxruntime.capi", False)
ORT = "[ONNXRuntimeError] : 1 : FAIL : Load model from {path} failed:/src/onnxruntime/core/graph/model.cc:{line} "


def variant(message: str, *frames: Frame, kind: str = "RuntimeError", chain: tuple[str, ...] = ()) -> Variant:
    return Variant(chain or (kind,), kind, message, frames)


GOLDEN = (
    (variant(""), "sig2-e35d6972ff7002aa"),
    (
        variant("CUDA out of memory. Tried to allocate 2.00 GiB", OWN, kind="torch.cuda.OutOfMemoryError"),
        "sig2-6e12cd7ab25b9a4a",
    ),
    (variant(ORT.format(path="/m/a.onnx", line=7) + "bad", LIBRARY, kind="onnxruntime.Fail"), "sig2-108383b097fc1e8a"),
    (variant("[Errno 13] Permission denied: '/data'", OWN, kind="PermissionError"), "sig2-5c11f64bf917373b"),
    (variant("boom", OWN, LIBRARY, chain=("KeyError", "ValueError", "EngineDeadError")), "sig2-8e6b0f1f8016323a"),
    (variant("Killed process 17 (python3)", kind="SIGKILL", chain=()), "sig2-5c7379794eb713ba"),
    (variant("模型加载失败 第3行", OWN, kind="Exception"), "sig2-e19fb8e24c86ad4b"),
    (variant("mat1 and mat2 shapes cannot be multiplied (4x1024 and 768x512)", OWN), "sig2-8bdf4a63c5fc9391"),
    (variant("exit code 137", kind=""), "sig2-b59b61af7d3adb94"),
    (
        variant("Java heap space", Frame("load", "org.acme.Model", True), kind="java.lang.OutOfMemoryError"),
        "sig2-4a7faca8c9fa5a9b",
    ),
)


@pytest.mark.parametrize(("given_variant", "expected"), GOLDEN)
def test_ids_of_sig2_never_change(given_variant: Variant, expected: str) -> None:
    """Rule: an id that was stored stays the id of that variant; a change of this list needs a new algorithm id."""
    assert sign(given_variant).id == expected


def test_what_tells_failures_apart_is_in_the_key() -> None:
    """Rule: another type, message, own frame or wrapper is another signature."""
    base = variant("boom 1", OWN, chain=("RuntimeError", "EngineError"))
    others = [
        replace(base, root_type="ValueError", chain=("ValueError", "EngineError")),
        replace(base, root_message="bang 1"),
        replace(base, frames=(Frame("load", "serve.app", True),)),
        replace(base, chain=("RuntimeError",)),
    ]
    assert len({sign(v).id for v in [base, *others]}) == 5


def test_error_codes_tell_failures_apart() -> None:
    """Rule: a code is meaning, so errno 13 and errno 28 are two failures, and so are 401 and 503."""
    assert sign(variant("[Errno 13] failed")).id != sign(variant("[Errno 28] failed")).id
    assert sign(variant("401 Client Error")).id != sign(variant("503 Service Unavailable")).id


volatile = st.fixed_dictionaries(
    {
        "path": st.integers(0, 9999).map(lambda x: f"/{('home', 'srv', 'opt')[x % 3]}/run{x}/model_{x % 7}.onnx"),
        "line": st.integers(1, 9999),
        "pid": st.integers(1, 4_194_304),
        "addr": st.integers(2**32, 2**48 - 1).map(hex),
        "size": st.floats(0.1, 900, allow_nan=False).map(lambda x: f"{x:.2f} GiB"),
    }
)


@settings(max_examples=40)
@given(volatile, volatile)
def test_paths_lines_pids_addresses_and_sizes_do_not_change_it(a: dict[str, object], b: dict[str, object]) -> None:
    """Rule: what differs from run to run is not in the key."""
    text = ORT + "object at {addr} needs {size} (pid {pid})"
    assert sign(variant(text.format(**a), OWN)).id == sign(variant(text.format(**b), OWN)).id


@settings(max_examples=60)
@given(st.text(max_size=200), st.text(max_size=40), st.lists(st.text(max_size=20), max_size=6))
def test_any_variant_has_one_signature(message: str, kind: str, chain: list[str]) -> None:
    """Rule: signing never fails, is repeatable, and names the algorithm."""
    v = Variant(tuple(chain), kind, message, (OWN,))
    assert sign(v) == sign(replace(v))
    assert sign(v).id.startswith("sig2-")
    assert len(sign(v).id) == 21


def test_guards_are_passed() -> None:
    """Rule: the caller of a frame that only checks is the place; one frame alone stays, whatever it is."""
    check = Frame("checkState", "com.acme.Preconditions", True)
    assert sign(variant("", check, OWN)).id == sign(variant("", OWN)).id
    assert sign(variant("", check)).id != sign(variant("")).id


def test_copies_of_a_function_are_one() -> None:
    """Rule: numbers at the end of a function's name do not count."""
    first, second = (Frame(name, "serve.app", True) for name in ("job_17", "job_4"))
    assert sign(variant("", first)).id == sign(variant("", second)).id
    assert (
        sign(variant("", Frame("conv2d", "serve.app", True))).id
        != sign(variant("", Frame("conv", "serve.app", True))).id
    )


def test_a_library_stands_for_a_message_that_says_nothing() -> None:
    """Rule: where neither message nor own code says anything, the innermost library that is not everywhere does."""
    libc = Frame("??", "libc", False)
    for silent in ("", "SEGV_MAPERR", "SIGSEGV"):
        places = {
            sign(variant(silent, Frame("??", name, False), kind="SIGSEGV")).id for name in ("libtflite", "libcudnn")
        }
        assert len(places) == 2
    assert sign(variant("bad shape", LIBRARY)).id == sign(variant("bad shape")).id
    parsed = Parsed(
        format="gdb", chain=(Thrown("SIGSEGV", "", 0, (Frame("??", "libtflite", False), libc)),), signal="SIGSEGV"
    )
    root = Root("SIGSEGV", "SEGV_MAPERR", 0, "segfault", None, ())
    assert [frame.module for frame in make_variant(parsed, root).frames] == ["libtflite"]


def test_what_a_shell_says_of_a_dead_job() -> None:
    """Rule: script, line, pid and flags are left out; the signal's words and the program stay."""
    ids = {
        sign(variant(f"{script}: line {line}: {pid} Illegal instruction (core dumped) python -m acme.serve {flags}")).id
        for script, line, pid, flags in (("run.sh", 18, 2214, "--port 80"), ("/opt/start.sh", 4, 991, "--model $model"))
    }
    assert len(ids) == 1
    other = "run.sh: line 18: 2214 Illegal instruction (core dumped) ./whisper --port 80"
    assert sign(variant(other)).id not in ids


def test_library_frames_and_order_of_work_do_not_change_it() -> None:
    """Rule: frames of libraries do not count, and neither does what was signed before."""
    variants = [v for v, _ in GOLDEN]
    first = {v: sign(v).id for v in variants}
    random.Random(7).shuffle(variants)
    assert {v: sign(v).id for v in variants} == first
    assert sign(variant("boom", LIBRARY, OWN)).id == sign(variant("boom", OWN)).id


@pytest.mark.parametrize(
    "message",
    [
        "Permission denied: '/home/jdoe/models/encoder/weights.bin'",
        "connect to 10.2.3.4:8001 refused",
        "connection to gpu-3.prod.internal:8001 lost",
        "mail to ops@example.org bounced",
        "CUDNN failure 3 ; hostname=WORKSTATION ; expr=x",
        "peer fe80::42:acff:fe11:2 is gone",
    ],
)
def test_redacted_text_has_the_signature_of_the_original(message: str) -> None:
    """Rule: redaction and masking agree, so that a store and a command without redaction name one failure alike."""
    redacted = redact(message)
    assert redacted.counts
    assert sign(variant(redacted.text)).id == sign(variant(message)).id


def test_types_lose_the_modules_that_they_moved_through() -> None:
    """Rule: one exception that a library moved between modules is one type; a bare name keeps its library."""
    assert type_name("torch.cuda.OutOfMemoryError") == type_name("torch.OutOfMemoryError") == "OutOfMemoryError"
    assert type_name("onnxruntime.capi.onnxruntime_pybind11_state.Fail") == "onnxruntime.Fail"
    assert type_name("std::bad_alloc") == "std::bad_alloc"


def _root(line: int, kind: str, message: str) -> Root:
    return Root(kind, message, line, "r", None, (Role.CONTEXT,) * 9)


def test_a_variant_starts_at_the_root_and_goes_outward() -> None:
    """Rule: causes before the root are not in the variant; frames are the innermost own ones, innermost first."""
    outer = Frame("main", "serve.app", True)
    chain = (
        Thrown("KeyError", "x", 2),
        Thrown("ValueError", "boom", 5, (outer, OWN, LIBRARY)),
        *(Thrown(f"Wrapped{i}", "", 6 + i) for i in range(5)),
    )
    made = make_variant(Parsed("python", chain), _root(5, "ValueError", "boom"))
    assert made.chain == ("ValueError", "Wrapped0", "Wrapped1", "Wrapped2")
    assert len(made.chain) == TYPES
    assert made.frames == (OWN, outer)


def test_without_exception_the_signal_or_the_exit_code_stands_in() -> None:
    """Rule: a death without words still has a signature that tells 137 from 139."""
    killed = make_variant(Parsed("exit", exit_code=137), _root(0, "", ""))
    crashed = make_variant(Parsed("exit", exit_code=139), _root(0, "", ""))
    assert sign(killed).id != sign(crashed).id
    assert make_variant(Parsed("native", signal="SIGSEGV"), _root(0, "", "")).root_type == "SIGSEGV"


def test_explain_shows_every_part_within_the_width() -> None:
    """Rule: the tree names types, message and frame, and fits 80 columns."""
    long = "Could not find an implementation for the node " * 6
    shown = explain(sign(variant(long, OWN, chain=("RuntimeError", "EngineError"))))
    assert max(len(line) for line in shown.splitlines()) <= 80
    for part in ("sig2-", "root: RuntimeError", "wrapped in: EngineError", "serve.app: predict", "Could not find"):
        assert part in shown
