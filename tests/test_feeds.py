"""A feed that the model does not declare is refused, and the input at fault is named."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from crashpath.runtime.errors import InputError
from crashpath.runtime.feeds import FeedCheck
from crashpath.runtime.folder import TensorSpec

INPUTS = (
    TensorSpec("ids", "int64", ("batch", "length")),
    TensorSpec("mask", "int64", ("batch", "length")),
    TensorSpec("scale", "float32", ("batch", 2)),
)


def _feed(**other: Any) -> dict[str, Any]:
    good = {"ids": np.zeros((3, 5), np.int64), "mask": np.zeros((3, 5), np.int64), "scale": np.ones((3, 2), np.float32)}
    return good | other


def test_good() -> None:
    """A feed as declared comes back in the declared order, the same arrays, not copies; a view is as good."""
    feed = _feed(mask=np.zeros((5, 3), np.int64).T)
    checked = FeedCheck(INPUTS)(dict(reversed(feed.items())))
    assert list(checked) == ["ids", "mask", "scale"]
    assert all(checked[name] is feed[name] for name in feed)


@pytest.mark.parametrize(
    ("changed", "named", "says"),
    [
        ({"ids": None}, "ids", "missing"),
        ({"ids": [[1, 2]]}, "ids", "list, not an array"),
        ({"ids": np.zeros((3, 5), np.int32)}, "ids", "int32 where the model takes int64"),
        ({"ids": np.zeros((3, 5), ">i8")}, "ids", "where the model takes int64"),
        ({"mask": np.zeros(5, np.int64)}, "mask", r"shape \(5,\) where the model takes \[batch, length\]"),
        ({"scale": np.ones((3, 3), np.float32)}, "scale", r"where the model takes \[batch, 2\]"),
        ({"mask": np.zeros((3, 6), np.int64)}, "mask", "'length' = 6, which is 5 in 'ids'"),
        ({"scale": np.ones((4, 2), np.float32)}, "scale", "'batch' = 4, which is 3 in 'ids'"),
        ({"ids": np.zeros((3, 0), np.int64)}, "ids", "empty"),
        ({"ids": np.zeros((0, 5), np.int64)}, "ids", "empty"),
        ({"idz": np.zeros((3, 5), np.int64)}, "idz", "no input 'idz'; it takes ids, mask, scale"),
    ],
)
def test_wrong(changed: dict[str, Any], named: str, says: str) -> None:
    """Each way to be wrong names its input and says what was found and what is taken."""
    with pytest.raises(InputError, match=says) as raised:
        FeedCheck(INPUTS)(_feed(**changed))
    assert raised.value.input == named


def test_absent() -> None:
    """A name that is not there at all is missing, too."""
    feed = _feed()
    del feed["scale"]
    with pytest.raises(InputError, match="'scale' is missing"):
        FeedCheck(INPUTS)(feed)


@pytest.mark.parametrize("feed", [None, [np.zeros((3, 5), np.int64)], np.zeros(3), "ids", 7, {"ids"}])
def test_what_is_no_feed_at_all(feed: Any) -> None:
    """What is no mapping is the caller's error like any other wrong feed, and is told what a feed is."""
    with pytest.raises(
        InputError, match=r"mapping of input names \(ids, mask, scale\) to numpy arrays; this is"
    ) as raised:
        FeedCheck(INPUTS)(feed)
    assert raised.value.input == "feed"
    assert type(feed).__name__ in str(raised.value)


def test_any_mapping_is_a_feed() -> None:
    """A mapping need not be a dict."""
    assert list(FeedCheck(INPUTS)(MappingProxyType(_feed()))) == ["ids", "mask", "scale"]


def test_a_word_twice_in_one_input() -> None:
    """The same word twice in one shape asks for a square."""
    square = (TensorSpec("x", "float32", ("n", "n")),)
    FeedCheck(square)({"x": np.zeros((2, 2), np.float32)})
    with pytest.raises(InputError, match="'n' = 3, which is 2"):
        FeedCheck(square)({"x": np.zeros((2, 3), np.float32)})


def test_scalar() -> None:
    """A tensor without dimensions is an array of rank 0."""
    spec = (TensorSpec("x", "float32", ()),)
    FeedCheck(spec)({"x": np.array(1, np.float32)})
    with pytest.raises(InputError, match="float32, not an array"):
        FeedCheck(spec)({"x": np.float32(1)})
