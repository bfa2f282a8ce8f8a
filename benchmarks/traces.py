"""Made-up failures of model servers from a seed; no two are the same text. For the benchmarks of speed and memory."""

from __future__ import annotations

import random

_FRAMES = "".join(
    f'  File "/srv/{{app}}/venv/lib/python3.11/site-packages/{package}/{module}.py", line {{line}}, in {function}\n'
    f"    {code}\n"
    for package, module, function, code in (
        ("uvicorn", "protocols/http/h11_impl", "run_asgi", "result = await app(self.scope, self.receive, self.send)"),
        ("starlette", "routing", "handle", "await self.app(scope, receive, send)"),
        ("onnxruntime", "capi/onnxruntime_inference_collection", "run", "return self._sess.run(output_names, feed)"),
    )
)
_HEAD = (
    'Traceback (most recent call last):\n  File "/srv/{app}/serve/app.py", line {line}, in predict\n'
    "    out = session.run(None, feed)\n"
)
_ORT = "onnxruntime.capi.onnxruntime_pybind11_state."
_ENDS = (
    _ORT
    + "Fail: [ONNXRuntimeError] : 1 : FAIL : Load model from /srv/{app}/m{n}.onnx failed:/onnxruntime_src/onnxruntime"
    "/core/graph/model.cc:{line} Unsupported model IR version: {k}, max supported IR version: 8",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size:.2f} GiB. GPU {k} has a total capacity of "
    "79.15 GiB of which {size:.2f} GiB is free. Process {n} has 70.1 GiB memory in use.",
    _ORT + "RuntimeException: [ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running "
    "Reshape node. Name:'/layers.{k}/Reshape_{n}' Status Message: reshape_helper.h:{line} The input tensor cannot be "
    "reshaped to the requested shape. Input shape:{{{k},{n}}}, requested shape:{{-1,{line}}}",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied ({k}x{n} and {line}x512)",
    "OSError: [Errno 28] No space left on device: '/cache/{app}/blobs/{n}.incomplete'",
    "ConnectionRefusedError: [Errno 111] Connect call failed ('10.{k}.2.{k}', {n})",
)


def _record(rng: random.Random) -> str:
    values = {
        "app": f"app-{rng.randrange(10**5)}",
        "line": rng.randrange(10, 2000),
        "n": rng.randrange(1000, 10**6),
        "k": rng.randrange(1, 32),
        "size": rng.uniform(0.1, 60),
    }
    return (_HEAD + _FRAMES + rng.choice(_ENDS)).format(**values)


def distinct(rng: random.Random, count: int) -> list[str]:
    """Records of which no two are the same text."""
    return [_record(rng) for _ in range(count)]
