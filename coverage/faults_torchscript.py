"""Faults of TorchScript: archives that cannot be read, sources that cannot be compiled, failures in the interpreter."""

from __future__ import annotations

from pathlib import Path

from crashpath.coverage.app import Code
from crashpath.coverage.breakage import edit_archive, truncate, write_garbage, write_lfs_pointer
from crashpath.coverage.fault import Arena, Fault

TORCH = "import torch"


def _archive(arena: Arena) -> Path:
    """Script a small network, save it and return the archive's path."""
    import torch

    v = arena.variation
    path = arena.path("models/{model}/{stem}" + arena.rng.choice((".pt", ".ts", ".torchscript", ".ts.pt")))
    net = torch.nn.Sequential(torch.nn.Linear(v.width, v.other), torch.nn.ReLU(), torch.nn.Linear(v.other, 2))
    torch.jit.save(torch.jit.script(net.eval()), str(path))
    return path


def _serve_load(arena: Arena, path: Path, device: str = "cpu") -> None:
    body = f'module = torch.jit.load(path, map_location="{device}")\nmodule.eval()\nreturn module'
    arena.serve(Code.of(body, TORCH, path=path))


def _load_truncated(arena: Arena) -> None:
    path = _archive(arena)
    truncate(path, arena.rng.uniform(0.2, 0.95))
    _serve_load(arena, path)


def _load_replaced(arena: Arena) -> None:
    path = _archive(arena)
    if arena.rng.random() < 0.5:
        write_lfs_pointer(path, arena.rng)
    else:
        write_garbage(path, 20_000, arena.rng)
    _serve_load(arena, path)


def _load_missing(arena: Arena) -> None:
    path = _archive(arena)
    path.unlink()
    _serve_load(arena, path)


def _load_eager(arena: Arena) -> None:
    import torch

    path = arena.path("models/{model}/{stem}.pt")
    torch.save(torch.nn.Linear(arena.variation.width, 2).state_dict(), path)
    _serve_load(arena, path)


def _load_future_version(arena: Arena) -> None:
    import zipfile

    path = _archive(arena)
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/version"))
        present = archive.read(name)
    edit_archive(path, "/version", present, b"%d\n" % arena.rng.randint(20, 99))
    _serve_load(arena, path)


def _load_unknown_operator(arena: Arena) -> None:
    path = _archive(arena)
    name = arena.rng.choice((b"torch.scaled_linear_v2", b"torch.fused_linear_relu", b"ops.serving_ops.linear_int4"))
    edit_archive(path, ".py", b"torch.linear", name)
    _serve_load(arena, path)


def _load_on_cuda(arena: Arena) -> None:
    _serve_load(arena, _archive(arena), arena.rng.choice(("cuda", "cuda:0", "cuda:1")))


def _serve_call(arena: Arena, width: int, dtype: str) -> None:
    path = _archive(arena)
    body = f"module = torch.jit.load(path).eval()\nreturn module(torch.ones(batch, width, dtype=torch.{dtype}))"
    arena.serve(Code.of(body, TORCH, phase="infer", path=path, batch=arena.variation.batch, width=width))


def _interpreter_shapes(arena: Arena) -> None:
    _serve_call(arena, arena.variation.width + arena.rng.choice((-1, 1, 2)), "float32")


def _interpreter_dtype(arena: Arena) -> None:
    _serve_call(arena, arena.variation.width, arena.rng.choice(("float64", "float16", "int64")))


def _interpreter_memory(arena: Arena) -> None:
    v = arena.variation
    call = arena.rng.choice(("x.repeat(rows, 1)", "torch.zeros([rows, x.size(1)]) + x", "torch.cat([x] * rows)"))
    import torch

    torch.jit.script(torch.nn.Linear(2, 2))(torch.zeros(1, 2))
    arena.serve(
        Code.of(
            "return expand(torch.ones(1, 1024), rows)",
            "import torch\nfrom torch import Tensor",
            definitions=f"""
            @torch.jit.script
            def tile(x: Tensor, rows: int) -> Tensor:
                return {call}


            @torch.jit.script
            def expand(x: Tensor, rows: int) -> Tensor:
                if rows > 1:
                    return tile(x, rows).softmax(-1)
                return x
            """,
            phase="infer",
            rows=(v.mib << 10) // 4 + v.width * 101,
        ),
        memory_mib=v.mib,
    )


def _unsupported_source(arena: Arena) -> None:
    body = arena.rng.choice(
        (
            "global CACHE\n    CACHE = x\n    return x",
            "try:\n        return x.relu()\n    except ValueError:\n        return x",
            "with open(LABELS) as file:\n        return file.read()",
            "match x.dim():\n        case 2:\n            return x\n    return x",
            "return (lambda y: y + 1)(x)",
            "return {**{'x': x}}",
            "return x if (n := x.dim()) else x * n",
            "def inner(y):\n        return y\n    return inner(x)",
            "return f'{x.shape!r}'",
            "yield x",
            "return x.numpy().tolist()",
        )
    )
    arena.serve(
        Code.of(
            "return torch.jit.script(postprocess)",
            TORCH,
            definitions=f"LABELS = 'labels.txt'\n\n\ndef postprocess(x):\n    {body}\n",
        )
    )


def _unsupported_kernel(arena: Arena) -> None:
    v = arena.variation
    call = arena.rng.choice(
        (
            "torch.bitwise_or(x, x)",
            "torch.linalg.inv(x.half())",
            "torch.linalg.qr(x.to(torch.bfloat16))[0]",
            "x.long().softmax(0)",
        )
    )
    arena.serve(
        Code.of(
            "return head(torch.eye(width))",
            "import torch\nfrom torch import Tensor",
            definitions=f"""
            @torch.jit.script
            def head(x: Tensor) -> Tensor:
                return {call}
            """,
            phase="infer",
            width=min(v.width, 64),
        )
    )


def _loop_without_end(arena: Arena) -> None:
    seconds = arena.rng.choice((1, 2))
    arena.serve(
        Code.of(
            f"""
            faulthandler.dump_traceback_later({seconds}, exit=True)
            return decode(torch.zeros(1, width), -1)
            """,
            "import faulthandler\n\nimport torch\nfrom torch import Tensor",
            definitions="""
            @torch.jit.script
            def decode(x: Tensor, stop: int) -> Tensor:
                step = 0
                while step != stop:
                    x = x.tanh()
                    step += 1
                return x
            """,
            phase="infer",
            once=True,
            width=arena.variation.width,
        ),
        fresh=True,
    )


FAULTS = (
    Fault(
        "torchscript-truncated",
        "load_corrupt",
        "load",
        "torchscript",
        "load an archive that was cut off",
        _load_truncated,
    ),
    Fault(
        "torchscript-replaced",
        "load_corrupt",
        "load",
        "torchscript",
        "load random bytes or an LFS pointer",
        _load_replaced,
    ),
    Fault(
        "torchscript-missing", "load_corrupt", "load", "torchscript", "load an archive that is not there", _load_missing
    ),
    Fault(
        "torchscript-eager-file",
        "load_corrupt",
        "load",
        "torchscript",
        "load an eager checkpoint as TorchScript",
        _load_eager,
    ),
    Fault(
        "torchscript-future-version",
        "load_corrupt",
        "load",
        "torchscript",
        "load an archive of a later format",
        _load_future_version,
    ),
    Fault(
        "torchscript-unknown-operator",
        "unsupported_op",
        "load",
        "torchscript",
        "load code that calls an unknown operator",
        _load_unknown_operator,
    ),
    Fault("torchscript-on-cuda", "device_init", "load", "torchscript", "load to CUDA on a CPU build", _load_on_cuda),
    Fault(
        "torchscript-unsupported-source",
        "unsupported_op",
        "load",
        "torchscript",
        "compile Python that scripts cannot express",
        _unsupported_source,
    ),
    Fault(
        "torchscript-unsupported-kernel",
        "unsupported_op",
        "infer",
        "torchscript",
        "run an operator without a kernel for the dtype",
        _unsupported_kernel,
    ),
    Fault("torchscript-shapes", "shape_inference", "infer", "torchscript", "feed another width", _interpreter_shapes),
    Fault("torchscript-dtype", "shape_inference", "infer", "torchscript", "feed another dtype", _interpreter_dtype),
    Fault(
        "torchscript-memory-limit",
        "oom_host",
        "infer",
        "torchscript",
        "tile past the address-space limit",
        _interpreter_memory,
        ("linux",),
    ),
    Fault(
        "torchscript-endless-loop",
        "hang",
        "infer",
        "torchscript",
        "a scripted loop that a watchdog ends",
        _loop_without_end,
    ),
)
