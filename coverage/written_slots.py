"""The slots of ``written.toml``: stamps that move on from line to line, and values that a seed chooses."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import datetime

_NAMES = (
    "orion",
    "harbor",
    "lumen",
    "cedar",
    "quartz",
    "delta",
    "willow",
    "ember",
    "atlas",
    "meadow",
    "cobalt",
    "juniper",
)
_TITLES = tuple(name.title() for name in _NAMES)
_FOLDERS = ("/models", "/mnt/models", "/var/lib/models", "/data/weights")
_ARCHES = ("llama", "qwen2", "mistral", "gemma2", "phi3", "bert", "gpt_neox", "t5", "mixtral", "falcon")
_PLUGINS = (
    "GridSample",
    "NonMaxSuppression",
    "RoPE",
    "DeformConv",
    "STFT",
    "GroupNorm",
    "ScatterND",
    "EinsumV2",
    "RandomNormalLike",
)


def _integer(low: int, high: int) -> Callable[[random.Random], str]:
    return lambda rng: str(rng.randint(low, high))


def _digits(count: int) -> Callable[[random.Random], str]:
    return lambda rng: f"{rng.getrandbits(4 * count):0{count}x}"


def _one(*values: str) -> Callable[[random.Random], str]:
    return lambda rng: rng.choice(values)


def _decimal(low: float, high: float, places: int = 2) -> Callable[[random.Random], str]:
    return lambda rng: f"{rng.uniform(low, high):.{places}f}"


def _joined(*parts: str | tuple[str, ...]) -> Callable[[random.Random], str]:
    return lambda rng: "".join(part if isinstance(part, str) else rng.choice(part) for part in parts)


def _pod(rng: random.Random) -> str:
    tail = "".join(rng.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
    return f"{rng.choice(_NAMES)}-serve-{rng.getrandbits(36):09x}-{tail}"


def _stamp(form: str) -> Callable[[datetime, random.Random], str]:
    return lambda at, rng: (
        at.strftime(form).replace("%ms", f"{at.microsecond // 1000:03d}").replace("%us", f"{at.microsecond:06d}")
    )


_ALNUM = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
MOVING: dict[str, Callable[[datetime, random.Random], str]] = {
    "time": _stamp("%H:%M:%S"),
    "date": _stamp("%Y-%m-%d"),
    "mmdd": _stamp("%m-%d"),
    "mm": _stamp("%m"),
    "dd": _stamp("%d"),
    "yyyy": _stamp("%Y"),
    "iso": _stamp("%Y-%m-%dT%H:%M:%S,%%ms"),
    "iso2": _stamp("%Y-%m-%d %H:%M:%S.%%us"),
    "isoz": _stamp("%Y-%m-%dT%H:%M:%S.%%usZ"),
    "isotomb": _stamp("%Y-%m-%d %H:%M:%S.%%us000+0000"),
    "syslog": _stamp("%b %d %H:%M:%S"),
    "k8sdate": _stamp("%a, %d %b %Y %H:%M:%S +0000"),
    "gindate": _stamp("%Y/%m/%d - %H:%M:%S"),
    "tfdate": _stamp("%Y-%m-%d %H:%M:%S.%%us"),
    "lcts": _stamp("%m-%d %H:%M:%S.%%ms"),
    "klog": _stamp("%m%d %H:%M:%S.%%us"),
    "klogmd": _stamp("%m%d"),
    "klogts": lambda at, rng: f"[{(at.timestamp() % 4_000_000):.6f}]",
    "kuptime": lambda at, rng: f"{(at.timestamp() % 4_000_000):.6f}",
}
SLOTS: dict[str, Callable[[random.Random], str]] = {
    "model": _joined("", _NAMES, "-ai/", _TITLES, "-", ("1.5B", "7B", "13B", "70B"), "-", ("Instruct", "Chat", "Base")),
    "arch": _one(*_ARCHES),
    "cls": lambda rng: (
        f"{rng.choice(_NAMES).title()}{rng.choice(('Classifier', 'Detector', 'Ranker', 'Encoder', 'Lm'))}"
    ),
    "svc": lambda rng: (
        f"{rng.choice(_NAMES)}-{rng.choice(('ranker', 'embed', 'chat', 'ocr', 'intent', 'vision', 'asr'))}"
    ),
    "svc_": lambda rng: f"{rng.choice(_NAMES)}{rng.choice(('rank', 'embed', 'chat', 'ocr'))}",
    "proc": _one(
        "python3",
        "python",
        "tritonserver",
        "llama-server",
        "uvicorn",
        "gunicorn",
        "model-server",
        "ray::Replica",
        "java",
    ),
    "pid": _integer(200, 99999),
    "tid": _integer(200, 99999),
    "n": _integer(20, 990),
    "small": _integer(1, 31),
    "score": _integer(100, 999),
    "secs": _integer(5, 59),
    "ms": lambda rng: f"{rng.randint(0, 999):03d}",
    "pct": _decimal(61, 98),
    "port": _integer(3000, 39999),
    "rank": _integer(0, 7),
    "gpu": _integer(0, 7),
    "rev": lambda rng: f"{rng.randint(1, 40):05d}",
    "kb": _integer(4_000_000, 68_000_000),
    "mib": _integer(128, 24000),
    "gib": _decimal(0.4, 8),
    "gib2": _decimal(8, 38),
    "gib3": _decimal(39, 79),
    "gibi": _integer(1, 64),
    "bytes": _integer(1_000_000, 900_000_000),
    "ctx": lambda rng: str(2 ** rng.randint(10, 17)),
    "dim": _one("64", "128", "224", "256", "384", "512", "768", "1024", "3072", "4096", "30522"),
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128))),
    "uuid_": lambda rng: str(uuid.UUID(int=rng.getrandbits(128))).replace("-", "_"),
    "addr": lambda rng: f"0x7f{rng.getrandbits(40):010x}",
    **{f"hex{count}": _digits(count) for count in (2, 4, 5, 7, 8, 12, 16, 24, 32, 40, 56, 64)},
    "b64": lambda rng: "".join(rng.choices(_ALNUM, k=22)),
    "b64s": lambda rng: "".join(rng.choices(_ALNUM, k=6)),
    "ip": lambda rng: f"10.{rng.randint(0, 255)}.{rng.randint(0, 255)}.{rng.randint(2, 254)}",
    "host": lambda rng: f"{rng.choice(('gpu', 'infer', 'node', 'edge'))}-{rng.randint(1, 48):02d}",
    "node": lambda rng: f"ip-10-{rng.randint(0, 255)}-{rng.randint(0, 255)}-{rng.randint(2, 254)}",
    "pod": _pod,
    "ns": _one("ml-prod", "inference", "serving", "default", "ranking-stg"),
    "registry": _one("registry.example.com/ml", "ghcr.io/example", "123456789012.dkr.ecr.eu-north-1.amazonaws.com"),
    "ver": lambda rng: f"{rng.randint(0, 3)}.{rng.randint(0, 20)}.{rng.randint(0, 9)}",
    "trtver": lambda rng: f"10.{rng.randint(0, 9)}.0.{rng.randint(10, 40)}",
    "cuda": _one("12.1", "12.4", "12.8", "13.0"),
    "cudaver": _one("110", "114", "120", "122"),
    "kernel": _one("5.15.0-91-generic", "6.1.0-18-amd64", "5.10.205-195.807.amzn2.x86_64", "6.8.0-45-generic"),
    "lib": _one(
        "/usr/local/lib/python3.10/dist-packages",
        "/usr/local/lib/python3.12/dist-packages",
        "/opt/venv/lib/python3.11/site-packages",
        "/opt/conda/lib/python3.11/site-packages",
        "/srv/app/.venv/lib/python3.12/site-packages",
    ),
    "app": _one("/srv", "/app", "/opt", "/workspace"),
    "path": _joined("", _FOLDERS, "/", _NAMES, "-", ("v2", "q4_k_m", "int8", "fp16")),
    "modelfile": _joined("", _NAMES, "_", ("int8", "fp16", "v3"), ".", ("tflite", "mnn", "onnx", "bin", "task")),
    "pkg": _joined("", ("com", "io", "app"), ".", _NAMES, ".", ("camera", "notes", "keyboard", "translate", "scan")),
    "pkg_": lambda rng: f"com_{rng.choice(_NAMES)}_{rng.choice(('camera', 'notes', 'scan'))}",
    "lctag": _one("InferenceEngine", "ModelRunner", "NativeLlm", "Classifier", "OnDevice"),
    "lcthread": _one("main", "inference-0", "pool-3-thread-1", "DefaultDispatch", "ModelLoader"),
    "phone": _one("a54x", "oriole", "dm1q", "fuxi", "spacewar"),
    "brand": _one("samsung", "google", "Xiaomi", "OnePlus"),
    "tensorname": _one("input_ids", "images", "attention_mask", "serving_default_x:0", "pixel_values", "embeddings"),
    "op_": _one("Cast", "Gather", "LayerNormalization", "MatMul", "Resize"),
    "op_builder": _one("CastOpBuilder", "GatherOpBuilder", "SimpleOpBuilder"),
    "plugop": _one(*_PLUGINS),
    "plugop_": _one("grid_sampler_3d", "scaled_dot_product_attention", "fft_rfft", "unfold_im2col", "bucketize"),
    "pymod": _one("transformers", "sentence_transformers", "tokenizers", "cv2", "torchvision", "soundfile", "xgboost"),
    "pyname": _one(
        "AutoProcessor", "is_torch_npu_available", "cached_download", "InterpolationMode", "split_torch_state_dict"
    ),
}
