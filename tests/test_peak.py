"""The predicted peak: its arithmetic on graphs whose answer is known by hand, and against a child that is measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from crashpath.runtime import peak
from crashpath.runtime.graph_facts import GraphFacts, Weight
from crashpath.runtime.graph_read import read_graph
from crashpath.runtime.live import ORT, TORCH, Live, Step, live
from crashpath.runtime.look import CPU
from crashpath.runtime.machine import memory_group
from crashpath.runtime.probe import ProbeRequest, probe
from crashpath.runtime.probe_child import GRAPH, MAIN
from crashpath.runtime.testing import tiny_folder

MIB = 1 << 20
CHAIN = (Step("MatMul", ("x", "w"), ("a",)), Step("Relu", ("a",), ("b",)), Step("MatMul", ("b", "w"), ("y",)))
SIZES = {"x": 100, "a": 10, "b": 10, "y": 4}
EMPTY = GraphFacts(9, 10, 17, 20, ("x",), ("y",), 0, (), "", (), (), 0, 0, 0, 0, 0, 0)


def test_a_buffer_dies_with_its_last_use() -> None:
    """Two of a chain live at a time where each node has its own output; the inputs and weights count nothing."""
    assert live(CHAIN, SIZES, ("y",), TORCH) == Live(20, 24)


def test_an_output_is_written_over_an_input_that_dies() -> None:
    """ONNX Runtime's Relu takes its input's memory, unless that is used again or is an output itself."""
    assert live(CHAIN, SIZES, ("y",), ORT) == Live(14, 14)
    again = (*CHAIN, Step("Add", ("a", "y"), ("z",)))
    assert live(again, SIZES | {"z": 4}, ("z",), ORT).most == 24
    assert live(CHAIN, SIZES, ("y", "a"), ORT).most == 24


def test_a_view_keeps_what_it_looks_at_alive() -> None:
    """A reshaped tensor has no memory of its own, and its source's lives until the view was used for the last time."""
    steps = (
        Step("MatMul", ("x",), ("a",)),
        Step("Reshape", ("a", "shape"), ("v",)),
        Step("MatMul", ("x",), ("b",)),
        Step("MatMul", ("v", "b"), ("y",)),
    )
    sizes = {"a": 10, "v": 10, "b": 7, "y": 1}
    for habits in (ORT, TORCH):
        assert live(steps, sizes, ("y",), habits) == Live(18, 18)


def test_scratch_counts_for_torch_alone() -> None:
    """A convolution of torch reorders beside input and output."""
    step = (Step("Conv", ("x", "w"), ("y",), scratch=True),)
    assert live(step, {"x": 8, "y": 64}, ("y",), TORCH).most == 64 + 64
    assert live(step, {"x": 8, "y": 64}, ("y",), ORT).most == 64


@pytest.mark.parametrize("batch", [1, 32])
def test_activations_are_told_for_the_batch(tmp_path: Path, batch: int) -> None:
    """Shape inference with the feed's shapes gives the bytes of each activation, those behind a Reshape included."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Shape", ["h"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "zeros"], ["row"]),
        helper.make_node("Concat", ["row", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["h", "target"], ["r"]),
        helper.make_node("ReduceSum", ["r"], ["y"], keepdims=0),
    ]
    weights = [
        numpy_helper.from_array(np.zeros((64, 4096), np.float32), "w"),
        numpy_helper.from_array(np.array(0), "zero"),
        numpy_helper.from_array(np.array([0]), "zeros"),
        numpy_helper.from_array(np.array([64, 64]), "rest"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [])
    graph = helper.make_graph(nodes, "g", [x], [y], initializer=weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    facts = read_graph(tmp_path / "m.onnx", {"x": (batch, 64)})
    assert facts.unsized == 0
    assert facts.largest == batch * 4096 * 4
    assert facts.live_main == pytest.approx(facts.largest, abs=64)
    assert facts.feed == batch * 64 * 4
    assert facts.weights[0] == Weight(64 * 4096 * 4, "MatMul", external=False, blocked=False)
    assert facts.inputs == ("x",)


def test_large_weights_count_twice_only_while_one_is_copied() -> None:
    """Weights that are mapped one by one: all of them, and the largest once more; beside the graph: a packed copy."""
    large = (Weight(100 * MIB, "MatMul", False, False), Weight(40 * MIB, "Gather", False, False))
    assert peak.main_peak(replace(EMPTY, weights=large), 0).total == 240 * MIB
    beside = tuple(replace(one, external=True) for one in large)
    assert peak.main_peak(replace(EMPTY, weights=beside), 0).total == 200 * MIB
    assert peak.fallback_peak(replace(EMPTY, weights=large), 0).weights == 140 * MIB


def test_the_load_and_the_run_do_not_add_up() -> None:
    """What a load needs for a moment is gone when the first run begins."""
    facts = replace(EMPTY, weights=(Weight(100 * MIB, "MatMul", False, False),), live_main=40 * MIB, largest=40 * MIB)
    assert peak.main_peak(facts, 0).total == 200 * MIB
    assert peak.main_peak(replace(facts, live_main=60 * MIB), 0).total == 220 * MIB


@pytest.mark.parametrize("external", [None, "model.onnx.data"])
def test_prediction_is_near_a_measured_child(tmp_path: Path, external: str | None) -> None:
    """96 MiB of weights: within 20 % of the measured peak, base included, and the child under a cap still runs."""
    folder = tiny_folder(tmp_path / "model", fallback=False)
    rng = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for number in range(6):
        rows = 4 if number == 0 else 2048
        columns = 3 if number == 6 - 1 else 2048
        weights.append(numpy_helper.from_array(rng.standard_normal((rows, columns), dtype=np.float32), f"w{number}"))
        weights.append(numpy_helper.from_array(np.zeros(columns, np.float32), f"b{number}"))
        out = "y" if number == 6 - 1 else f"h{number}"
        nodes.append(helper.make_node("Gemm", [last, f"w{number}", f"b{number}"], [out]))
        last = out
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])
    graph = helper.make_graph(nodes, "g", [x], [y], initializer=weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(folder.main), save_as_external_data=external is not None, location=external)
    told = ProbeRequest(GRAPH, str(folder.path), (CPU,), 1, 0, False, 120, 120, 120)
    facts = probe(told).graph
    assert facts is not None
    measured = probe(replace(told, kind=MAIN))
    predicted = peak.main_peak(facts, measured.base)
    assert abs(peak.apart(predicted.total, measured.peak)) <= peak.WITHIN, (predicted, measured.peak)
    cap = int((predicted.total - measured.bare) * 1.5) // MIB
    capped = probe(replace(told, kind=MAIN, cap_mib=cap, as_worker=True))
    assert (capped.loaded, capped.failure) == (True, "")
    choked = probe(replace(told, kind=MAIN, cap_mib=16, as_worker=True))
    assert (choked.loaded, choked.failure) == (False, "oom_host")


def test_the_tightest_cgroup_counts(tmp_path: Path) -> None:
    """Of the groups over a process, of either version, the one with the least room is told; none: ``None``."""
    root, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("9:memory:/pod/box\n1:cpu:/\n0::/\n")
    inner = root / "memory" / "pod" / "box"
    inner.mkdir(parents=True)
    for folder, limit, used in ((inner, 300, 100), (inner.parent, 250, 200), (root / "memory", 1 << 62, 500)):
        (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
        (folder / "memory.usage_in_bytes").write_text(f"{used}\n")
    found = memory_group(root, own)
    assert found is not None
    assert (found.limit, found.used) == (250, 200)
    own.write_text("0::/\n")
    assert memory_group(root, own) is None
    (root / "memory.max").write_text("max\n")
    (root / "memory.current").write_text("5\n")
    assert memory_group(root, own) is None
    (root / "memory.max").write_text("900\n")
    found = memory_group(root, own)
    assert found is not None
    assert found.source == str(root / "memory.max")
