"""Tracing the fallback: no answer is another one for it, and counts are those of the hand, whatever the script does."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crashpath.coverage.script_trace import FallbackTracer
from crashpath.coverage.script_units import FORKED, NEVER
from crashpath.coverage.units import Kind
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


class Asserts(nn.Module):
    """Asserts with a message that it makes."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        assert x.size(0) < 3, f"{x.size(0)} rows"
        return y + 1


class Refuses(nn.Module):
    """In a turn of a loop, refuses what is large in one of two ways, with work before it and after it."""

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = x.mul(2)
            if bool(x.sum() > 100):
                y = x.sum()
                if bool(y > 1000):
                    raise ValueError("very large")
                else:  # noqa: RET506  # both branches raise
                    raise ValueError("large")
            x = x.sub(1)
        return x.relu()


class Divides(nn.Module):
    """Fails in an operator, not by a raise."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.neg()
        if bool(x.sum() < 0):
            return y.reshape([-1, 7])
        return y.abs()


class Modes(nn.Module):
    """Branches by training, by an argument of a function, by what it has, by what it sets, and by its input."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.extra: Tensor | None = None
        self.requests = 0

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            x = x.exp()
        if self.extra is not None:
            x = x.cos()
        if self.requests > 0:
            x = x.tan()
        self.requests += 1
        if bool(x.sum() > 0):
            x = x.neg()
        return nn.functional.relu(self.norm(x))


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
    """Where the timed copy fails, the request is answered and counted, and the trace says what its times lack."""
    folder = scripted(tmp_path / "m", InPlace())
    with FallbackTracer(folder) as tracer:

        def fails(*_: Any) -> None:
            raise RuntimeError("no memory for a second run")

        tracer._plain = fails  # the second run alone fails, as it does where memory is short
        np.testing.assert_array_equal(tracer.run({"x": X})["y0"], X + 1)
        assert tracer.untimed == "RuntimeError: no memory for a second run"
        tracer.run({"x": X})
        trace = tracer.trace()
        assert (trace.hits["/"], trace.timings) == (2, ())
        (problem,) = trace.problems
        assert problem.startswith("2 requests of the fallback could not be timed")
        assert problem.endswith("(the last error: RuntimeError: no memory for a second run)")


def test_what_is_timed_has_no_problem(tmp_path: Path) -> None:
    """Nothing is told where every request was timed, nor where none was to be."""
    folder = scripted(tmp_path / "m", InPlace())
    for timed in (True, False):
        with FallbackTracer(folder, timed=timed) as tracer:
            tracer.run({"x": X})
            trace = tracer.trace()
        assert (bool(trace.timings), trace.problems) == (timed, ())


def _counted(folder: ModelFolder, *feeds: Any) -> tuple[FallbackTracer, dict[str, int]]:
    """Trace feeds, of which some fail; hits by label for operators, by id for blocks."""
    with FallbackTracer(folder, timed=False) as tracer:
        for x in feeds:
            with suppress(torch.jit.Error, RuntimeError):
                tracer.run({"x": np.asarray(x, np.float32)})
    return tracer, dict(tracer.trace().hits)


def _by_label(tracer: FallbackTracer, hits: dict[str, int], block: str) -> dict[str, int]:
    return {
        unit.label.partition("::")[2]: hits.get(unit.id, 0)
        for unit in tracer.declared.units
        if unit.kind is Kind.OP and unit.parent == block and unit.counted
    }


def test_a_failed_assert_covers_what_makes_its_message(tmp_path: Path) -> None:
    """One feed that fails and one that does not cover every block and operator; counts are those of the hand."""
    tracer, hits = _counted(scripted(tmp_path / "m", Asserts()), np.ones((3, 3)), np.ones((2, 3)), np.ones((1, 3)))
    assert [unit for unit in tracer.declared.units if unit.counted and not hits.get(unit.id)] == []
    (message,) = (unit.id for unit in tracer.declared.units if unit.label == "If else")
    (passed,) = (unit.id for unit in tracer.declared.units if unit.label == "If then")
    assert (hits["/"], hits[message], hits[passed]) == (3, 1, 2)
    assert set(_by_label(tracer, hits, message).values()) == {1}
    assert _by_label(tracer, hits, "/") == {"mul": 3, "size": 3, "lt": 3, "If": 3, "add": 2}


def test_a_raise_in_a_loop_is_counted_to_where_it_came(tmp_path: Path) -> None:
    """Of the turn that raised, what stands before the raise counts, in every block around it; what comes after not."""
    folder = scripted(tmp_path / "m", Refuses())
    large, very = np.full((1, 3), 10.0), np.full((1, 3), 400.0)
    # sums after each doubling: large 60, 114 (60 - 3 = 57, doubled) and there it raises; very 2400, at once
    tracer, hits = _counted(folder, large, very, np.zeros((1, 3)))
    body = next(unit.id for unit in tracer.declared.units if unit.label == "Loop body")
    told = _by_label(tracer, hits, body)
    assert hits[body] == 2 + 1 + 3
    assert {name: told[name] for name in ("mul", "sum", "If", "sub")} == {"mul": 6, "sum": 6, "If": 6, "sub": 1 + 3}
    refusing = next(unit.id for unit in tracer.declared.units if unit.label == "If then")
    assert _by_label(tracer, hits, refusing) == {"sum": 2, "gt": 2, "Bool": 2, "If": 2}
    raised = [hits[unit.id] for unit in tracer.declared.units if unit.label == "prim::RaiseException"]
    assert raised == [1, 1]
    assert _by_label(tracer, hits, "/") == {"Loop": 3, "relu": 1}
    assert [unit for unit in tracer.declared.units if unit.counted and not hits.get(unit.id)] == []


def test_where_an_operator_failed_is_not_known(tmp_path: Path) -> None:
    """The blocks that the run entered count, and none of their operators."""
    tracer, hits = _counted(scripted(tmp_path / "m", Divides()), -np.ones((1, 3)))
    assert all("::" not in unit.label for unit in tracer.declared.units if hits.get(unit.id))
    assert sum(hits.values()) == 2


def test_parts_and_early_returns_are_counted_as_by_hand(tmp_path: Path) -> None:
    """A part that is called in a loop and after it has its blocks at each call."""
    folder = scripted(tmp_path / "m", Whole())
    # the sum is 3 (returns at no turn: 6, 9, 12, then the last part), 30 (33 in the first turn: returns early)
    tracer, hits = _counted(folder, np.ones((1, 3)), np.full((1, 3), 10.0))
    blocks = [(unit.label, hits.get(unit.id, 0)) for unit in tracer.declared.units if unit.kind is Kind.BLOCK]
    assert [count for label, count in blocks if label == "Loop body"] == [4]
    adding = [(unit.parent, hits.get(unit.id, 0)) for unit in tracer.declared.units if unit.label == "aten::add_"]
    assert [count for _, count in adding] == [4, 1]
    assert [hits[unit.id] for unit in tracer.declared.units if unit.label == "aten::linear"] == [1]


def test_what_a_fork_runs_is_declared_apart(tmp_path: Path) -> None:
    """The fork and the wait are counted; the blocks and operators of what it runs stand apart and say why."""
    tracer, hits = _counted(scripted(tmp_path / "m", Forks()), X)
    apart = [unit for unit in tracer.declared.units if unit.reason == FORKED]
    assert {unit.label for unit in apart} >= {"fork body", "If then", "If else", "aten::add_", "aten::mul"}
    assert not any(unit.id in hits for unit in apart)
    assert _by_label(tracer, hits, "/") == {"clone": 1, "fork": 1, "wait": 1, "add": 1}
    assert [unit for unit in tracer.declared.units if unit.counted and not hits.get(unit.id)] == []


def test_arms_that_no_run_takes_stand_apart(tmp_path: Path) -> None:
    """Of training, of an absent part, of a default argument: apart, with the reason. What may change is counted."""
    tracer, hits = _counted(scripted(tmp_path / "m", Modes()), X, -X, X[0])  # of one dimension: the norm refuses it
    never = {unit.label for unit in tracer.declared.units if unit.reason == NEVER}
    assert {"aten::exp", "aten::relu_", "If then"} <= never
    counted = {unit.label for unit in tracer.declared.units if unit.counted}
    assert {"aten::tan", "aten::neg", "aten::relu", "aten::batch_norm"} <= counted
    assert "aten::cos" not in counted
    assert not any(unit.id in hits for unit in tracer.declared.units if unit.reason == NEVER)
    assert {unit.label for unit in tracer.declared.units if unit.counted and not hits.get(unit.id)} == set()


def _script(rng: random.Random, depth: int, indent: str) -> list[str]:
    """Lines that a random script has below that indent."""
    lines: list[str] = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(("add", "add", "if", "if", "for", "assert", "return", "raise")) if depth else "add"
        if kind == "add":
            lines.append(f"x = x.add_({rng.randint(1, 40)}.0).fmod(97.0)")
        elif kind == "if":
            lines.append(f"if int(x.sum()) % {rng.randint(2, 4)} == 0:")
            lines += _script(rng, depth - 1, "    ")
            lines += ["else:", *_script(rng, depth - 1, "    ")] if rng.random() < 0.6 else []
        elif kind == "for":
            lines.append(f"for _ in range({rng.randint(1, 3)}):")
            lines += _script(rng, depth - 1, "    ")
        elif kind == "assert":
            lines.append("assert int(x.sum()) % 11 != 0, 'eleven'")
        elif kind == "return":
            lines += ["if int(x.sum()) % 5 == 0:", "    return x.mul(3.0)"]
        else:
            lines += ["if int(x.sum()) % 7 == 0:", "    x = x.sub(0.5)", "    raise ValueError('seven')"]
    return [indent + line for line in lines]


def _by_line(model: nn.Module, file: str, feeds: Sequence[Arrays]) -> tuple[Counter[int], list[Any]]:
    """Run a model in Python itself; how often each line of its file ran, and the answers, ``None`` for a raise."""
    ran: Counter[int] = Counter()
    answers: list[Any] = []

    def look(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != file:
            return None
        ran[frame.f_lineno] += event == "line"
        return look

    before = sys.gettrace()
    for feed in feeds:
        sys.settrace(look)
        try:
            answers.append(model(torch.from_numpy(feed["x"].copy())).numpy())
        except (AssertionError, ValueError):
            answers.append(None)
        finally:
            sys.settrace(before)
    return ran, answers


@pytest.mark.parametrize("seed", range(12))
def test_random_scripts_are_counted_as_python_counts_their_lines(tmp_path: Path, seed: int) -> None:
    """Loops, branches, early returns, asserts and raises: each operator is hit as often as Python ran its line."""
    name = f"random_script_{seed}"
    file = tmp_path / f"{name}.py"
    lines = ["x = x.add_(1.0)", *_script(random.Random(seed), 3, ""), "return x"]
    body = ["    def forward(self, x: Tensor) -> Tensor:", *(" " * 8 + line for line in lines)]
    file.write_text("\n".join(["from torch import Tensor, nn", "class Random(nn.Module):", *body, ""]))
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)  # where torch looks for the source
    spec.loader.exec_module(module)
    feeds: list[Arrays] = [{"x": np.full((1, 2), value, np.float32)} for value in range(12)]
    ran, right = _by_line(module.Random(), str(file), feeds)
    given: list[Any] = []
    with FallbackTracer(scripted(tmp_path / "m", module.Random()), timed=False) as tracer:
        for feed in feeds:
            try:
                given.append(tracer.run(feed)["y0"])
            except torch.jit.Error:
                given.append(None)
    del sys.modules[name]
    for one, other in zip(given, right, strict=True):
        np.testing.assert_array_equal(one, other)
    hits = tracer.trace().hits
    told = [unit for unit in tracer.declared.units if unit.label in ("aten::add_", "aten::mul", "aten::sub")]
    assert told
    assert any(one is not None for one in right)
    for unit in told:
        assert (unit.counted, hits.get(unit.id, 0)) == (True, ran[int(unit.where.rpartition(":")[2])])
