"""Tiny model folders for tests, drills and documentation: real artefacts of both paths, built on the spot.

Kinds, each with the same arithmetic in both artefacts::

    affine   x float32 [batch, 4]                    → y [batch, 3] = x @ w + b
    echo     x float32 [n]                           → y [n] = x + 1: for large tensors
    loop     x float32 [batch, 4], steps int64 [1]   → y [batch, 4]: as many steps as it is told, `ENDLESS` for no end
    wide     shape int64 [2]                         → y [] = the sum of that many ones: takes all memory if told so
    reshape  x float32 [n]                           → y [k, 7]: fails inside the run where 7 does not divide n
    gather   ids int64 [batch]                       → y [batch, 2]: fails inside the run for ids that are not 0…9
    text     input_ids, attention_mask int64 [batch, sequence]
                                                     → y [batch, 2]: of what a tokenizer gives; a sum of rows
    branches x float32 [batch, 4], steps int64 [1]   → y [batch, 4]: an If in an If in a Loop (`testing_branches`)
    experts  x float32 [batch, 16]                   → y [batch, 16]: the top 2 of 64 experts (`testing_experts`)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crashpath.runtime.folder import FALLBACK_FILE, GOLDEN_FILE, MAIN_FILE, SPEC_FILE, ModelFolder, open_folder
from crashpath.runtime.testing_branches import SCRIPT, branch_answer, branch_nodes
from crashpath.runtime.testing_experts import ROUTER, WEIGHTS, expert_answer, expert_nodes
from crashpath.runtime.testing_experts import SCRIPT as EXPERTS
from crashpath.runtime.values import Arrays

OPSET = 17
IR_VERSION = 9
ENDLESS = 1 << 40
"""Steps of the kind ``loop`` that take about a week."""

WEIGHT = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)
BIAS = np.array([0.5, -0.5, 0.25], dtype=np.float32)
TABLE = np.arange(20, dtype=np.float32).reshape(10, 2)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of tiny model: its inputs and output, both artefacts, a golden feed and the answer in numpy.

    Tensors are (name, numpy dtype, shape). ``script`` is the body of the TorchScript ``forward``; ``constants`` are
    the attributes that it reads.
    """

    inputs: tuple[tuple[str, str, tuple[int | str, ...]], ...]
    output: tuple[str, str, tuple[int | str, ...]]
    nodes: Callable[[], tuple[list[Any], list[Any]]]
    script: str
    constants: Arrays
    feed: Arrays
    answer: Callable[[Arrays], Any]


def tiny_folder(
    path: Path | str,
    *,
    kind: str = "affine",
    fallback: bool = True,
    external: str | None = None,
    deadline_ms: float = 2000.0,
    load_s: float = 60.0,
    memory_mib: int = 0,
    threads: int = 1,
) -> ModelFolder:
    """Write a whole model folder of one of `KINDS` below ``path`` and open it.

    ``fallback=False`` leaves out the TorchScript artefact (and the import of torch). ``external`` names a file beside
    the ONNX artefact that gets its weights. The other options are the folder's limits.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    spec = KINDS[kind]
    _write_onnx(spec, folder / MAIN_FILE, external)
    if fallback:
        _write_script(spec, folder / FALLBACK_FILE)
    arrays = {f"in.{name}": array for name, array in spec.feed.items()}
    arrays[f"out.{spec.output[0]}"] = spec.answer(spec.feed)
    with (folder / GOLDEN_FILE).open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # its stubs take the flag allow_pickle for one of the arrays
    limits = f"deadline_ms = {deadline_ms}\nload_s = {load_s}\nmemory_mib = {memory_mib}\nthreads = {threads}\n"
    (folder / SPEC_FILE).write_text(_told(kind, spec, limits, folder), encoding="utf-8")
    return open_folder(folder)


def _told(kind: str, spec: Kind, limits: str, folder: Path) -> str:
    parts = ["schema = 1", f'name = "tiny-{kind}"']
    for table, tensors in (("inputs", spec.inputs), ("outputs", (spec.output,))):
        for name, dtype, shape in tensors:
            parts += [f"[[{table}]]", f'name = "{name}"', f'dtype = "{dtype}"']
            parts.append(
                "shape = [" + ", ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in shape) + "]"
            )
    parts += ["[tolerance]", "atol = 1e-4", "rtol = 1e-3", "[limits]", limits, "[files]"]
    for file in sorted(one for one in folder.iterdir() if one.name != SPEC_FILE):
        parts.append(f'"{file.name}" = "{hashlib.sha256(file.read_bytes()).hexdigest()}"')
    return "\n".join(parts) + "\n"


def _write_onnx(spec: Kind, path: Path, external: str | None) -> None:
    import onnx
    from onnx import helper

    nodes, weights = spec.nodes()
    graph = helper.make_graph(
        nodes, "tiny", [_declared(*one) for one in spec.inputs], [_declared(*spec.output)], initializer=weights
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    if external is None:
        onnx.save(model, str(path))
        return
    onnx.save_model(
        model, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location=external, size_threshold=0
    )


def _write_script(spec: Kind, path: Path) -> None:
    import torch

    names = ", ".join(name for name, _, _ in spec.inputs)
    body = "\n".join(f"    {line}" for line in spec.script.splitlines())

    class Tiny(torch.jit.ScriptModule):  # a class of its own each time: torch compiles one forward a class
        def __init__(self) -> None:
            super().__init__()
            for name, array in spec.constants.items():
                self.register_buffer(name, torch.from_numpy(array.copy()))
            self.define(f"def forward(self, {names}):\n{body}\n")

    torch.jit.save(Tiny().eval(), str(path))


def _declared(name: str, dtype: str, shape: tuple[int | str, ...]) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape))


def _node(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    from onnx import helper

    return helper.make_node(operator, inputs, outputs, name=f"/tiny/{operator}_{outputs[0]}", **attributes)


def _constant(name: str, value: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.asarray(value), name)


def _affine_nodes() -> tuple[list[Any], list[Any]]:
    nodes = [_node("MatMul", ["x", "w"], ["h"]), _node("Add", ["h", "b"], ["y"])]
    return nodes, [_constant("w", WEIGHT), _constant("b", BIAS)]


def _echo_nodes() -> tuple[list[Any], list[Any]]:
    return [_node("Add", ["x", "one"], ["y"])], [_constant("one", np.float32(1))]


def _loop_nodes() -> tuple[list[Any], list[Any]]:
    from onnx import helper

    body = helper.make_graph(
        [
            _node("Mul", ["state_in", "half"], ["halved"]),
            _node("Add", ["halved", "unit"], ["state_out"]),
            _node("Identity", ["going_in"], ["going_out"]),
        ],
        "step",
        [_declared("turn", "int64", ()), _declared("going_in", "bool", ()), _declared("state_in", "float32", ("n", 4))],
        [_declared("going_out", "bool", ()), _declared("state_out", "float32", ("n", 4))],
    )
    nodes = [_node("Squeeze", ["steps"], ["trips"]), _node("Loop", ["trips", "going", "x"], ["y"], body=body)]
    weights = [_constant("going", True), _constant("half", np.float32(0.5)), _constant("unit", np.float32(1))]
    return nodes, weights


def _loop_answer(feed: Arrays) -> Any:
    state = feed["x"]
    for _ in range(int(feed["steps"][0])):
        state = state * np.float32(0.5) + np.float32(1)
    return state


def _wide_nodes() -> tuple[list[Any], list[Any]]:
    nodes = [_node("Expand", ["one", "shape"], ["ones"]), _node("ReduceSum", ["ones"], ["y"], keepdims=0)]
    return nodes, [_constant("one", np.ones((1, 1), np.float32))]


def _reshape_nodes() -> tuple[list[Any], list[Any]]:
    return [_node("Reshape", ["x", "target"], ["y"])], [_constant("target", np.array([-1, 7], np.int64))]


def _text_nodes() -> tuple[list[Any], list[Any]]:
    nodes = [
        _node("Gather", ["table", "input_ids"], ["rows"], axis=0),
        _node("Cast", ["attention_mask"], ["mask"], to=1),
        _node("Einsum", ["rows", "mask"], ["y"], equation="bsd,bs->bd"),
    ]
    return nodes, [_constant("table", TABLE)]


def _gather_nodes() -> tuple[list[Any], list[Any]]:
    return [_node("Gather", ["table", "ids"], ["y"], axis=0)], [_constant("table", TABLE)]


KINDS: dict[str, Kind] = {
    "affine": Kind(
        (("x", "float32", ("batch", 4)),),
        ("y", "float32", ("batch", 3)),
        _affine_nodes,
        "return torch.matmul(x, self.w) + self.b",
        {"w": WEIGHT, "b": BIAS},
        {"x": np.arange(8, dtype=np.float32).reshape(2, 4)},
        lambda feed: feed["x"] @ WEIGHT + BIAS,
    ),
    "echo": Kind(
        (("x", "float32", ("n",)),),
        ("y", "float32", ("n",)),
        _echo_nodes,
        "return x + 1.0",
        {},
        {"x": np.arange(16, dtype=np.float32)},
        lambda feed: feed["x"] + np.float32(1),
    ),
    "loop": Kind(
        (("x", "float32", ("batch", 4)), ("steps", "int64", (1,))),
        ("y", "float32", ("batch", 4)),
        _loop_nodes,
        "for step in range(int(steps[0])):\n    x = x * 0.5 + 1.0\nreturn x",
        {},
        {"x": np.ones((1, 4), np.float32), "steps": np.array([5], np.int64)},
        _loop_answer,
    ),
    "wide": Kind(
        (("shape", "int64", (2,)),),
        ("y", "float32", ()),
        _wide_nodes,
        "return torch.ones([int(shape[0]), int(shape[1])]).sum()",
        {},
        {"shape": np.array([8, 8], np.int64)},
        lambda feed: np.float32(feed["shape"].prod()),
    ),
    "reshape": Kind(
        (("x", "float32", ("n",)),),
        ("y", "float32", ("k", 7)),
        _reshape_nodes,
        "return x.reshape([-1, 7])",
        {},
        {"x": np.arange(14, dtype=np.float32)},
        lambda feed: feed["x"].reshape(-1, 7),
    ),
    "gather": Kind(
        (("ids", "int64", ("batch",)),),
        ("y", "float32", ("batch", 2)),
        _gather_nodes,
        "return torch.index_select(self.table, 0, ids)",
        {"table": TABLE},
        {"ids": np.array([1, 9], np.int64)},
        lambda feed: TABLE[feed["ids"]],
    ),
    "branches": Kind(
        (("x", "float32", ("batch", 4)), ("steps", "int64", (1,))),
        ("y", "float32", ("batch", 4)),
        branch_nodes,
        SCRIPT,
        {},
        {"x": np.full((2, 4), 0.25, np.float32), "steps": np.array([3], np.int64)},
        branch_answer,
    ),
    "text": Kind(
        (("input_ids", "int64", ("batch", "sequence")), ("attention_mask", "int64", ("batch", "sequence"))),
        ("y", "float32", ("batch", 2)),
        _text_nodes,
        "return (torch.embedding(self.table, input_ids) * attention_mask.unsqueeze(2)).sum(1)",
        {"table": TABLE},
        {
            "input_ids": np.array([[2, 5, 6, 3], [2, 7, 3, 0]], np.int64),
            "attention_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], np.int64),
        },
        lambda feed: (TABLE[feed["input_ids"]] * feed["attention_mask"][..., None]).sum(1).astype(np.float32),
    ),
    "experts": Kind(
        (("x", "float32", ("batch", 16)),),
        ("y", "float32", ("batch", 16)),
        expert_nodes,
        EXPERTS,
        {"router": ROUTER, "experts": WEIGHTS},
        {"x": np.eye(16, dtype=np.float32)[:3]},
        expert_answer,
    ),
}
