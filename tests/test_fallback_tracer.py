"""Tracing the fallback: no answer is another one for it, and counts are those of the hand, whatever the script does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crashpath.coverage.script_trace import FallbackTracer
from crashpath.runtime.backends import TorchScriptBackend
from crashpath.runtime.folder import ModelFolder, TensorSpec
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Arrays

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class InPlace(nn.Module):
    """Writes to its input and gives it back."""

    def forward(self, x: Tensor) -> Tensor:
        x += 1
        return x


class Aliases(nn.Module):
    """Gives back views of its input, one of which it writes to."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        first = x[0]
        first.mul_(2)
        return x, first, x.t()


class Remembers(nn.Module):
    """Counts its requests in a buffer, and gives the buffer back."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.seen += x.sum(0)
        return self.seen


class Draws(nn.Module):
    """Adds what it draws."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand_like(x)


class Part(nn.Module):
    """A module in a module."""

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return x.add_(1)
        return x * 2


class Whole(nn.Module):
    """Calls its part twice and returns early."""

    def __init__(self) -> None:
        super().__init__()
        self.part = Part()
        self.line = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.part(x)
            if bool(x.sum() > 20):
                return self.line(x)
        return self.part(x) - 1


class Forks(nn.Module):
    """Runs a part beside itself."""

    def __init__(self) -> None:
        super().__init__()
        self.part = Part()

    def forward(self, x: Tensor) -> Tensor:
        beside = torch.jit.fork(self.part, x.clone())
        return torch.jit.wait(beside) + x


def scripted(place: Path, model: nn.Module, outputs: int = 1) -> ModelFolder:
    """Return a folder whose fallback is that model, of one input ``x``."""
    folder = tiny_folder(place, kind="echo", fallback=False)
    torch.jit.save(torch.jit.script(model).eval(), str(folder.fallback))  # type: ignore[no-untyped-call]
    named = tuple(TensorSpec(f"y{number}", "float32", ("n",)) for number in range(outputs))
    return replace(folder, inputs=(TensorSpec("x", "float32", ("n", 3)),), outputs=named)


def _feeds() -> list[Arrays]:
    return [{"x": X}, {"x": -X}, {"x": X * 5}, {"x": X[:1]}]


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize(
    ("model", "outputs"), [(InPlace, 1), (Aliases, 3), (Remembers, 1), (Draws, 1), (Whole, 1), (Forks, 1)]
)
def test_tracing_changes_no_answer(tmp_path: Path, model: Callable[[], nn.Module], outputs: int, timed: bool) -> None:
    """Answers are those of the backend bit for bit, and stay so when later requests write; no feed is written to."""
    torch.manual_seed(1)
    folder = scripted(tmp_path / "m", model(), outputs)

    def answers(run: Callable[[Arrays], Arrays]) -> list[Arrays]:
        torch.manual_seed(2)
        return [run(feed) for feed in _feeds()]

    right = answers(TorchScriptBackend(folder).run)
    with FallbackTracer(folder, timed=timed) as tracer:
        given = answers(tracer.run)
    for one, other in zip(given, right, strict=True):
        assert list(one) == list(other)
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])
    np.testing.assert_array_equal(X, np.arange(6).reshape(2, 3))


def test_what_fails_while_it_is_timed_harms_no_answer(tmp_path: Path) -> None:
    """Where the timed copy fails, the request is answered, and the reason is kept."""
    folder = scripted(tmp_path / "m", InPlace())
    with FallbackTracer(folder) as tracer:

        def fails(*_: Any) -> None:
            raise RuntimeError("no memory for a second run")

        tracer._plain = fails  # the second run alone fails, as it does where memory is short
        np.testing.assert_array_equal(tracer.run({"x": X})["y0"], X + 1)
        assert tracer.untimed == "RuntimeError: no memory for a second run"
        assert tracer.trace().hits["/"] == 1
