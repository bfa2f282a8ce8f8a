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
    (variant(""), "sig1-91dcaa862d201745"),
    (
        variant("CUDA out of memory. Tried to allocate 2.00 GiB", OWN, kind="torch.cuda.OutOfMemoryError"),
        "sig1-4b94184277e99033",
    ),
    (variant(ORT.format(path="/m/a.onnx", line=7) + "bad", LIBRARY, kind="onnxruntime.Fail"), "sig1-0aaacb904cdb878c"),
    (variant("[Errno 13] Permission denied: '/data'", OWN, kind="PermissionError"), "sig1-1cf4531a61c43744"),
    (variant("boom", OWN, LIBRARY, chain=("KeyError", "ValueError", "EngineDeadError")), "sig1-20f970a3c459ef4d"),
    (variant("Killed process 17 (python3)", kind="SIGKILL", chain=()), "sig1-a41969e391d9f75b"),
    (variant("模型加载失败 第3行", OWN, kind="Exception"), "sig1-75544244729835d6"),
    (variant("mat1 and mat2 shapes cannot be multiplied (4x1024 and 768x512)", OWN), "sig1-e4d5bbedfc467ce4"),
    (variant("exit code 137", kind=""), "sig1-9988dd828abda0ac"),
    (
        variant("Java heap space", Frame("load", "org.acme.Model", True), kind="java.lang.OutOfMemoryError"),
        "sig1-8b49084e74df53e5",
    ),
)


@pytest.mark.parametrize(("given_variant", "expected"), GOLDEN)
def test_ids_of_sig1_never_change(given_variant: Variant, expected: str) -> None:
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
    assert sign(v).id.startswith("sig1-")
    assert len(sign(v).id) == 21


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
    for part in ("sig1-", "root: RuntimeError", "wrapped in: EngineError", "serve.app: predict", "Could not find"):
        assert part in shown
