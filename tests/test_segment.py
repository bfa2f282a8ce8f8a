"""Shared memory of a lane and its worker, and the messages between them."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from crashpath.runtime.channel import Channel, GarbledError, GoneError, LateError
from crashpath.runtime.errors import HostMemory, InputError, ModelFolderError
from crashpath.runtime.messages import Ask, RemoteError, Reply, Trouble, to_error
from crashpath.runtime.segment import KEPT, Placed, Segment
from crashpath.runtime.values import Phase

DTYPES = st.sampled_from(["float32", "int64", "bool", "uint8", "float16", ">i4", "complex64"])


@given(
    tensors=st.lists(
        arrays.arrays(DTYPES, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0), elements=None), max_size=4
    )
)
@settings(max_examples=40, deadline=None)
def test_what_goes_in_comes_out(tensors: list[np.ndarray]) -> None:
    """Rule: every dtype and shape, empty and without dimensions too, is the same on the other side."""
    here = Segment()
    there = Segment(os.dup(here.file))
    placed = here.write({str(place): tensor for place, tensor in enumerate(tensors)})
    there.fit(here.size)
    for place, tensor in enumerate(tensors):
        got = there.copies(placed)[str(place)]
        assert (got.dtype, got.shape, got.tobytes()) == (tensor.dtype, tensor.shape, tensor.tobytes())
    here.close()
    there.close()


def test_it_grows_on_either_side_and_gives_back() -> None:
    """Rule: a large tensor makes it larger, the next small one gives back what is above the kept size."""
    here = Segment()
    there = Segment(os.dup(here.file))
    placed = there.write({"x": np.ones((KEPT >> 3) + 1000)})
    assert there.size > KEPT
    here.fit(there.size)
    assert here.copies(placed)["x"].sum() == (KEPT >> 3) + 1000
    there.write({"x": np.ones(1)})
    assert there.size == os.fstat(here.file).st_size == KEPT
    here.close()
    there.close()


def test_what_has_no_bytes_of_its_own() -> None:
    """Rule: text and objects are the caller's error, which names the input."""
    segment = Segment()
    for array in (np.array(["text"]), np.array([object()])):
        with pytest.raises(InputError) as caught:
            segment.write({"words": array})
        assert caught.value.input == "words"
    segment.close()


def test_nothing_is_read_past_the_end() -> None:
    """Rule: a place that the other side names wrongly is refused, not read."""
    segment = Segment()
    with pytest.raises(ValueError, match="ends at byte"):
        segment.copies([Placed("x", "<f4", (1 << 20,), 0)])
    segment.close()


@pytest.fixture
def pair() -> Iterator[tuple[Channel, socket.socket]]:
    here, there = socket.socketpair()
    yield Channel(here), there
    here.close()
    there.close()


def test_messages_in_pieces(pair: tuple[Channel, socket.socket]) -> None:
    """Rule: a message is whole whatever the pieces in which it comes, and two in one piece are two."""
    channel, raw = pair
    text = b'{"a":1}'
    whole = struct.pack("!I", len(text)) + text
    raw.sendall(whole[:2])
    with pytest.raises(LateError):
        channel.receive(time.monotonic() + 0.05)
    raw.sendall(whole[2:] + whole)
    assert channel.receive(time.monotonic() + 60) == {"a": 1}
    assert channel.receive(time.monotonic() + 60) == {"a": 1}


def test_the_other_side_is_gone(pair: tuple[Channel, socket.socket]) -> None:
    """Rule: an end that was closed is told at once, to the reader and to the writer."""
    channel, raw = pair
    raw.close()
    with pytest.raises(GoneError):
        channel.receive(time.monotonic() + 60)
    with pytest.raises(GoneError):
        channel.send({}, time.monotonic() + 60)


@pytest.mark.parametrize("sent", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x02{{", b"\x00\x00\x00\x02[]"])
def test_what_is_no_message(pair: tuple[Channel, socket.socket], sent: bytes) -> None:
    """Rule: a length past the limit, no JSON, no object: garbled, not waited for."""
    channel, raw = pair
    raw.sendall(sent)
    with pytest.raises(GarbledError):
        channel.receive(time.monotonic() + 60)


def test_messages_survive_the_way() -> None:
    """Rule: what is asked and replied is the same after JSON."""
    placed = (Placed("x", "<f4", (2, 3), 64),)
    for ask in (Ask(1, Phase.LOAD), Ask(2, Phase.INFER, placed, 4096, ("m:f", "a"))):
        assert Ask.from_json(ask.to_json()) == ask
    trouble = Trouble("HostMemory", "full", "arena", "", "builtins.MemoryError", "trace")
    for reply in (
        Reply(1, placed, 4096),
        Reply(2, trouble=trouble),
        Reply(3, (), 0, None, ("x",), None, (("a", "1"),)),
    ):
        assert Reply.from_json(reply.to_json()) == reply


def test_troubles_become_errors() -> None:
    """Rule: a known failure is its class with the library's error as cause; an unknown one says what it was."""
    failure = to_error(Trouble("HostMemory", "full", "arena", "", "builtins.MemoryError", "trace"), Phase.WARMUP)
    assert isinstance(failure, HostMemory)
    assert (failure.phase, failure.evidence) == ("warmup", "arena")
    assert isinstance(failure.__cause__, RemoteError)
    wrong = to_error(Trouble("InputError", "too wide", "", "x", "onnxruntime.Fail", ""), Phase.INFER)
    assert isinstance(wrong, InputError)
    assert wrong.input == "x"
    assert isinstance(to_error(Trouble("ModelFolderError", "m", "", "", "t", ""), Phase.LOAD), ModelFolderError)
    odd = to_error(Trouble("", "odd", "", "", "builtins.LookupError", "in f"), Phase.INFER)
    assert str(odd) == "builtins.LookupError: odd"
