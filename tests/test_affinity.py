"""Distances: what makes two failures near, and what forbids them to be one."""

from __future__ import annotations

import numpy as np
import pytest

from crashpath.clustering.affinity import CONFLICT, Space, cosine, distances, softer, square
from crashpath.clustering.encoder import FakeEncoder
from crashpath.clustering.items import Item, kind_of, make_item
from crashpath.clustering.terms import terms_of
from crashpath.ingest.model import Frame


def items(*roots: tuple[str, str], frames: tuple[tuple[str, ...], ...] = ()) -> list[Item]:
    """Items of (type, message), with names of in-project functions, innermost first."""
    out = []
    for i, (kind, message) in enumerate(roots):
        own = [Frame(name, "app", True) for name in (frames[i] if frames else ())]
        out.append(make_item(f"i{i}", f"{kind}: {message}", kind, message, frames=own))
    return out


def space(found: list[Item]) -> Space:
    return Space(found, FakeEncoder().encode([item.text for item in found]))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (
            ("Error", "401 Client Error. Cannot access gated repo for url https://hub.example/a/resolve/main/c.json"),
            ("Error", "403 Client Error. Cannot access gated repo for url https://hub.example/b/resolve/main/c.json"),
        ),
        (
            ("Error", "tls: failed to verify certificate: x509: certificate signed by unknown authority"),
            ("Error", "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"),
        ),
        (("OSError", "[Errno 13] cannot open model file"), ("OSError", "[Errno 28] cannot open model file")),
        (("SIGSEGV", "worker died"), ("SIGBUS", "worker died")),
        (("ImportError", "model could not be loaded"), ("PermissionError", "model could not be loaded")),
        (
            ("onnxruntime.ModelRequiresCompilation", "SystemError : 13"),
            ("RuntimeError", "unexpected end of the file, it might be corrupted: the exporter wrote less"),
        ),
        (
            ("onnxruntime.InvalidArgument", "Load model from a.onnx failed:No graph was found in the protobuf."),
            ("onnxruntime.InvalidProtobuf", "Load model from a.onnx failed:Protobuf parsing failed."),
        ),
        (
            ("Error", "cannot resolve the model store: name not known"),
            ("Error", "cannot resolve the model store: name not known: the tenant's budget for queries is spent"),
        ),
        (
            ("RuntimeError", "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
            ("RuntimeError", "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"),
        ),
    ],
)
def test_same_words_other_cause_is_a_conflict(left: tuple[str, str], right: tuple[str, str]) -> None:
    """Another status, errno, signal, kind, stated or further cause forbids one cluster, however alike the words are."""
    found = space(items(left, right))
    assert distances(found, found)[0, 1] == CONFLICT


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (("OSError", "[Errno 13] Permission denied: '/.cache'"), ("OSError", "[Errno 13] Permission denied: '/data'")),
        (
            ("Error", "no space left on the device"),
            ("Error", "the worker could not store its results: no space left on the device"),
        ),
        (
            ("RuntimeError", "CUDA out of memory. Tried to allocate 2.00 GiB"),
            ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 512.00 MiB"),
        ),
        (
            ("Fail", "Could not find an implementation for ConvInteger(10) node with name 'Conv_1_quant'"),
            ("Fail", "Could not find an implementation for the node Conv_0_quant:ConvInteger(10)"),
        ),
    ],
)
def test_other_values_are_no_conflict(left: tuple[str, str], right: tuple[str, str]) -> None:
    """Paths, sizes and names differ between hosts; a kind that says nothing contradicts none."""
    found = space(items(left, right))
    assert distances(found, found)[0, 1] < 1.0


def test_cues_that_contradict_are_a_conflict() -> None:
    """Two classes are never one cluster; no class contradicts none."""
    base = items(("", "worker stopped"), ("", "worker stopped"), ("", "worker stopped"))
    cues = ("hang", "oom_host", None)
    found = space([Item(i.id, i.text, i.terms, cue=cue) for i, cue in zip(base, cues, strict=True)])
    gaps = distances(found, found)
    assert gaps[0, 1] == CONFLICT
    assert gaps[0, 2] == gaps[1, 2] == 0.0


def test_frames_decide_where_the_message_says_nothing() -> None:
    """A bare NullPointerException in another place is far, in the same place near."""
    npe = ("java.lang.NullPointerException", "")
    found = space(items(npe, npe, npe, frames=(("draw", "main"), ("draw", "other"), ("parse", "main"))))
    gaps = distances(found, found)
    assert gaps[0, 1] < 0.3 < gaps[0, 2]


SEGV = ("AddressSanitizer", "SEGV on unknown address 0x000000000018")
OVERFLOW = ("AddressSanitizer", "heap-buffer-overflow on address 0x602000004efe")


@pytest.mark.parametrize("root", [SEGV, OVERFLOW, ("SIGSEGV", "Segmentation fault"), ("panic", "runtime error: index")])
def test_native_ends_are_one_only_where_their_code_is(root: tuple[str, str]) -> None:
    """The words of a signal or a sanitizer are those of any such bug: other frames are far, and so is no stack at all.

    One frame that was inlined, and callers that differ, change nothing.
    """
    stacks = (
        ("Tensor::at", "gemm", "EvalOp", "Invoke", "main"),
        ("Tensor::at", "gemm", "EvalOp", "Serve", "start"),
        ("parse_header", "open_model", "load", "Invoke", "main"),
        (),
    )
    gaps = distances(*(space(items(root, root, root, root, frames=stacks)),) * 2)
    assert gaps[0, 1] < 0.3
    assert min(gaps[0, 2], gaps[0, 3], gaps[2, 3]) > 0.5


def test_a_signal_is_one_with_and_without_a_sanitizer() -> None:
    """A sanitizer is no kind of failure: what it reports of a signal is near the signal itself, but not another's."""
    with_it, bare, other = SEGV, ("SIGSEGV", "Segmentation fault"), ("SIGFPE", "Floating point exception")
    found = space(items(with_it, bare, other, frames=(("at", "gemm"),) * 3))
    gaps = distances(found, found)
    assert gaps[0, 1] < 0.3
    assert gaps[0, 2] == gaps[1, 2] == CONFLICT


def test_an_access_of_another_kind_is_a_conflict() -> None:
    """Beyond the end and after the free are two bugs, in the same function too; the size of an access is not."""
    freed = ("AddressSanitizer", "heap-use-after-free on address 0x602000004efe")
    found = space(items(OVERFLOW, freed, OVERFLOW, frames=(("at", "gemm"),) * 3))
    gaps = distances(found, found)
    assert gaps[0, 1] == CONFLICT
    assert gaps[0, 2] < 0.3


def test_a_stated_cause_outweighs_the_frames_of_a_signal() -> None:
    """Where the rules know more of a cause than that native code ended, its words count as ever."""
    said = ("SIGABRT", "Could not load library libcudnn_ops.so.9, cannot open shared object file")
    frames = [Frame("serve", "app", True)], [Frame("train", "app", True)]
    found = [make_item(f"i{i}", ": ".join(said), *said, cue="device_init", frames=f) for i, f in enumerate(frames)]
    gaps = distances(space(found), space(found))
    assert gaps[0, 1] < 0.3


def test_distance_depends_on_the_two_alone() -> None:
    """Company moves no distance: else a prediction would not agree with a fit."""
    found = items(("E", "cannot allocate memory"), ("E", "cannot allocate host memory"), ("E", "no such file"))
    both, three = space(found[:2]), space(found)
    assert distances(both, both)[0, 1] == distances(three, three)[0, 1]


def test_square_is_symmetric_with_zeros() -> None:
    """The square of distances is symmetric and zero on the diagonal; distances lie in 0 … 1."""
    found = space(items(*((f"E{i}", f"message number {i} of several") for i in range(5))))
    gaps = square(found)
    assert np.array_equal(gaps, gaps.T)
    assert not gaps.diagonal().any()
    assert softer(found, found).max() <= 1.0


def test_cosine_of_equal_rows_is_zero() -> None:
    """Rounding leaves no dust: equal vectors are at distance 0."""
    vectors = FakeEncoder().encode(["a b c", "a b c"])
    assert cosine(vectors, vectors).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_terms_part_words_names_and_codes() -> None:
    """Plain words, identifiers and codes are told apart; placeholders and the type in front are none of them."""
    terms = terms_of("ValueError: status code 403 for <path>: cudaMalloc failed in load_model, access denied")
    assert "http=403" in terms.codes
    assert {"cudamalloc", "load_model"} <= terms.names
    assert "acces" in terms.words
    assert "path" not in terms.words
    assert "valueerror" not in terms.names


@pytest.mark.parametrize(
    ("name", "kind"),
    [("torch.OutOfMemoryError", "outofmemoryerror"), ("RuntimeError", ""), ("java.io.IOException", "ioexception")],
)
def test_kind_of(name: str, kind: str) -> None:
    """A kind is the last part of the type, and empty where it says nothing of the cause."""
    assert kind_of(name) == kind
