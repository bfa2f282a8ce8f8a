"""Faults of ONNX Runtime while it runs: feeds, shapes, memory, deadlines."""

from __future__ import annotations

import os
from pathlib import Path

from crashpath.coverage.app import Code
from crashpath.coverage.fault import Arena, Fault
from crashpath.coverage.faults_ort import ORT, mlp_file, saved

NUMPY_ORT = "import numpy as np\nimport onnxruntime as ort"
LOG = 'log = logging.getLogger("ort_session")'


def _serve_run(arena: Arena, path: Path, feed: str, *, memory_mib: int = 0) -> None:
    body = f"""
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    log.info("session on %s", session.get_providers())
    return session.run(None, {feed})
    """
    v = arena.variation
    code = Code.of(
        body,
        f"import logging\n\n{NUMPY_ORT}",
        definitions=LOG,
        phase="infer",
        path=path,
        batch=v.batch,
        width=v.width,
        other=v.other,
    )
    arena.serve(code, memory_mib=memory_mib)


def _feed_dimensions(arena: Arena) -> None:
    _serve_run(arena, mlp_file(arena), '{"input": np.zeros((batch, other), dtype=np.float32)}')


def _feed_rank(arena: Arena) -> None:
    shape = arena.rng.choice(("(batch, 1, width)", "(width,)", "(1, batch, 1, width)"))
    _serve_run(arena, mlp_file(arena), f'{{"input": np.zeros({shape}, dtype=np.float32)}}')


def _feed_dtype(arena: Arena) -> None:
    dtype = arena.rng.choice(("np.float64", "np.int64", "np.float16", "np.int32"))
    _serve_run(arena, mlp_file(arena), f'{{"input": np.zeros((batch, width), dtype={dtype})}}')


def _reshape(arena: Arena) -> None:
    import numpy as np
    from onnx import numpy_helper

    from crashpath.coverage.tinymodels import graph_model, tensor
    from crashpath.coverage.tinymodels import node as make_node

    v = arena.variation
    heads = arena.rng.choice((7, 11, 13))
    target = numpy_helper.from_array(np.array([0, -1, heads], dtype=np.int64), "target")
    name = f"/attention/self/Reshape_{v.batch}"
    nodes = [
        make_node("Relu", ["input"], ["h"], name="/attention/Relu"),
        make_node("Reshape", ["h", "target"], ["y"], name=name),
    ]
    model = graph_model(nodes, [tensor("input", "n", "w")], [tensor("y", "n", "k", heads)], initializer=[target])
    _serve_run(arena, saved(arena, model), f'{{"input": np.zeros((batch, {heads} * 5 + 3), dtype=np.float32)}}')


def _run_shapes(arena: Arena) -> None:
    from crashpath.coverage.tinymodels import graph_model, tensor
    from crashpath.coverage.tinymodels import node as make_node

    v = arena.variation
    operator, attributes = arena.rng.choice(
        (("MatMul", {}), ("Add", {}), ("Mul", {}), ("Concat", {"axis": 0}), ("Gemm", {}))
    )
    nodes = [make_node(operator, ["a", "b"], ["y"], name=f"/decoder/{operator}_{v.other}", **attributes)]
    model = graph_model(nodes, [tensor("a", "n", "w"), tensor("b", "m", "v")], [tensor("y", "p", "q")])
    feed = '{"a": np.zeros((batch + 1, width), np.float32), "b": np.zeros((other + batch + 2, other), np.float32)}'
    _serve_run(arena, saved(arena, model), feed)


def _expand_memory(arena: Arena) -> None:
    from onnx import TensorProto

    from crashpath.coverage.tinymodels import graph_model, tensor
    from crashpath.coverage.tinymodels import node as make_node

    v = arena.variation
    operator = arena.rng.choice(("Expand", "Tile", "ConstantOfShape"))
    names = ["shape"] if operator == "ConstantOfShape" else ["input", "shape"]
    nodes = [
        make_node(operator, names, ["wide"], name=f"/model/{operator}"),
        make_node("ReduceSum", ["wide"], ["y"], name="/model/ReduceSum", keepdims=0),
    ]
    inputs = [tensor("input", 1, 1), tensor("shape", 2, dtype=TensorProto.INT64)][-len(names) :]
    path = saved(arena, graph_model(nodes, inputs, [tensor("y")]))
    rows = (v.mib << 10) // 2 + v.width * 103
    feed = '"input": np.ones((1, 1), np.float32), ' if len(names) == 2 else ""
    _serve_run(arena, path, f'{{{feed}"shape": np.array([{rows}, 1024], dtype=np.int64)}}', memory_mib=v.mib + 128)


def _terminated(arena: Arena) -> None:
    from onnx import TensorProto, helper

    from crashpath.coverage.tinymodels import constant, graph_model, tensor
    from crashpath.coverage.tinymodels import node as make_node

    body = helper.make_graph(
        [
            make_node("MatMul", ["state_in", "w"], ["mixed"], name="/decode/MatMul"),
            make_node("Tanh", ["mixed"], ["state_out"], name="/decode/Tanh"),
            make_node("Identity", ["going_in"], ["going_out"], name="/decode/Identity"),
        ],
        "decode",
        [
            tensor("step", dtype=TensorProto.INT64),
            tensor("going_in", dtype=TensorProto.BOOL),
            tensor("state_in", 64, 64),
        ],
        [tensor("going_out", dtype=TensorProto.BOOL), tensor("state_out", 64, 64)],
    )
    loop = make_node("Loop", ["", "going", "input"], ["y"], name="/decode/Loop", body=body)
    weights = [constant("w", 64, 64), constant("going", dtype="bool")]
    path = saved(arena, graph_model([loop], [tensor("input", 64, 64)], [tensor("y", 64, 64)], initializer=weights))
    deadline = arena.rng.choice((0.5, 1.0, 1.5))
    arena.serve(
        Code.of(
            f"""
            session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
            run_options = ort.RunOptions()
            watchdog = threading.Timer({deadline}, expire, (run_options,))
            watchdog.start()
            return session.run(None, {{"input": np.zeros((64, 64), dtype=np.float32)}}, run_options)
            """,
            f"import logging\nimport threading\n\n{NUMPY_ORT}",
            definitions=f"""
            def expire(run_options):
                logging.getLogger("watchdog").error("request deadline of {deadline} s exceeded, terminating run")
                run_options.terminate = True
            """,
            phase="infer",
            once=True,
            path=path,
        )
    )


def _fifo(arena: Arena) -> None:
    path = arena.path("models/{model}/{stem}.onnx")
    os.mkfifo(path)
    seconds = arena.rng.choice((1, 2))
    arena.serve(
        Code.of(
            f"""
            loader = threading.Thread(target=open_session, args=(path,), daemon=True)
            loader.start()
            loader.join({seconds})
            if loader.is_alive():
                raise TimeoutError(f"model {{path}} not ready after {seconds} s")
            """,
            f"import threading\n\n{ORT}",
            definitions="def open_session(path):\n    return ort.InferenceSession(path)",
            once=True,
            path=path,
        )
    )


FAULTS = (
    Fault("ort-feed-dimensions", "shape_inference", "infer", "onnxruntime", "feed another width", _feed_dimensions),
    Fault("ort-feed-rank", "shape_inference", "infer", "onnxruntime", "feed another rank", _feed_rank),
    Fault("ort-feed-dtype", "shape_inference", "infer", "onnxruntime", "feed another dtype", _feed_dtype),
    Fault("ort-reshape", "shape_inference", "infer", "onnxruntime", "reshape to a size that does not divide", _reshape),
    Fault("ort-run-shapes", "shape_inference", "infer", "onnxruntime", "combine inputs that do not fit", _run_shapes),
    Fault(
        "ort-memory-limit",
        "oom_host",
        "infer",
        "onnxruntime",
        "expand past the address-space limit",
        _expand_memory,
        ("linux",),
    ),
    Fault(
        "ort-endless-loop", "hang", "infer", "onnxruntime", "a Loop without end that a watchdog terminates", _terminated
    ),
    Fault(
        "ort-model-never-delivered",
        "load_timeout",
        "load",
        "onnxruntime",
        "load from a FIFO that nobody feeds",
        _fifo,
        ("linux",),
    ),
)
