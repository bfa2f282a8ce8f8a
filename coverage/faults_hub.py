"""Faults of fetching (huggingface_hub, against a hub on this machine) and of safetensors files."""

from __future__ import annotations

import importlib
import json
import os
import struct
from pathlib import Path

from crashpath.coverage import localhub
from crashpath.coverage.app import Code
from crashpath.coverage.breakage import truncate, write_garbage, write_lfs_pointer
from crashpath.coverage.fault import Arena, Fault

_OWNERS = ("acme-ml", "nordlicht-ai", "retail-nlp", "visionworks", "open-speech-lab", "kestrel")


def _serve_fetch(arena: Arena, endpoint: str, *, retried: bool = False) -> None:
    """Run an app that fetches a model from ``endpoint``, in one of the ways that apps do.

    ``retried`` says that the library itself retries such an answer for a single file: half a minute, so a
    whole snapshot is asked for then.
    """
    os.environ["HF_ENDPOINT"] = endpoint
    os.environ["HF_HUB_ETAG_TIMEOUT"] = os.environ["HF_HUB_DOWNLOAD_TIMEOUT"] = "1"
    importlib.import_module("huggingface_hub.file_download")
    importlib.import_module("huggingface_hub._snapshot_download")
    file = arena.rng.choice(("config.json", "model.safetensors", "tokenizer.json", "onnx/model.onnx"))
    snapshot = ("return snapshot_download(repo)", "from huggingface_hub import snapshot_download")
    single = (f'return hf_hub_download(repo, "{file}")', "from huggingface_hub import hf_hub_download")
    body, imports = snapshot if retried else arena.rng.choice((snapshot, single))
    repo = f"{arena.rng.choice(_OWNERS)}/{arena.variation.model}"
    arena.serve(Code.of(body, imports, phase="prepare", once=retried, repo=repo))


def _unauthorized(arena: Arena) -> None:
    code, message = arena.rng.choice((("", "Invalid username or password."), ("RepoNotFound", "Repository not found")))
    _serve_fetch(arena, localhub.answering(401, code, message))


def _gated(arena: Arena) -> None:
    message = arena.rng.choice(
        (
            "Access to this model is restricted and you are not in the authorized list. Ask for access on its page.",
            "Access to this model is restricted. You must have access to it and be authenticated. Please log in.",
        )
    )
    _serve_fetch(arena, localhub.answering(403, "GatedRepo", message))


def _forbidden(arena: Arena) -> None:
    _serve_fetch(arena, localhub.answering(403, "", "This token has no read rights on private repositories"))


def _not_found(arena: Arena) -> None:
    code, message = arena.rng.choice(
        (("RepoNotFound", "Repository not found"), ("RevisionNotFound", "Invalid rev id: main"))
    )
    _serve_fetch(arena, localhub.answering(404, code, message))


def _refused(arena: Arena) -> None:
    _serve_fetch(arena, localhub.refusing(), retried=True)


def _reset(arena: Arena) -> None:
    _serve_fetch(arena, localhub.resetting(), retried=True)


def _tls(arena: Arena) -> None:
    _serve_fetch(arena, localhub.without_tls(), retried=True)


def _name_unknown(arena: Arena) -> None:
    _serve_fetch(arena, f"https://hub.{arena.rng.choice(_OWNERS)}.invalid", retried=True)


def _offline(arena: Arena) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    _serve_fetch(arena, "http://127.0.0.1:9")


def _silent(arena: Arena) -> None:
    """Ask with a limit of our own: a snapshot waits for ever, and a single file for half a minute."""
    os.environ["HF_ENDPOINT"] = localhub.silent()
    seconds = arena.rng.choice((1, 2, 3))
    arena.serve(
        Code.of(
            f"info = HfApi().model_info(repo, revision=revision, timeout={seconds})\nreturn info.siblings",
            "from huggingface_hub import HfApi",
            phase="prepare",
            once=True,
            repo=f"{arena.rng.choice(_OWNERS)}/{arena.variation.model}",
            revision=arena.rng.choice(("main", "v1.2", "release")),
        )
    )


def _cache_forbidden(arena: Arena) -> None:
    """The hub has the file, and the user may not write to the cache: the home folder is root's."""
    os.environ["HF_ENDPOINT"] = localhub.serving(b'{"model_type": "bert"}')
    importlib.import_module("huggingface_hub.file_download")
    file = arena.rng.choice(("config.json", "tokenizer.json", "onnx/model.onnx"))
    arena.serve(
        Code.of(
            f'return hf_hub_download(repo, "{file}")',
            "from huggingface_hub import hf_hub_download",
            phase="prepare",
            repo=f"{arena.rng.choice(_OWNERS)}/{arena.variation.model}",
        ),
        as_nobody=True,
    )


def _weights(arena: Arena, rows: int = 0) -> Path:
    """Save three tensors as safetensors and return the path."""
    import numpy as np
    from safetensors.numpy import save_file

    v = arena.variation
    path = arena.path(
        "models/{model}/" + arena.rng.choice(("model", "{stem}", "model-00001-of-00002")) + ".safetensors"
    )
    weight = np.ones((rows or v.width, v.other), dtype=np.float32)
    save_file({"encoder.weight": weight, "encoder.bias": weight[0], "head.weight": weight[:2]}, str(path))
    return path


def _serve_weights(arena: Arena, path: Path) -> None:
    body, imports = arena.rng.choice(
        (
            ("return load_file(path)", "from safetensors.numpy import load_file"),
            (
                'with safe_open(path, framework="np") as file:\n'
                "    return {key: file.get_tensor(key) for key in file.keys()}",
                "from safetensors import safe_open",
            ),
            ('with open(path, "rb") as file:\n    return load(file.read())', "from safetensors.numpy import load"),
        )
    )
    arena.serve(Code.of(body, imports, path=path))


def _header_replaced(arena: Arena) -> None:
    path = _weights(arena)
    if arena.rng.random() < 0.5:
        write_lfs_pointer(path, arena.rng)
    else:
        write_garbage(path, 4096, arena.rng)
    _serve_weights(arena, path)


def _header_invalid(arena: Arena) -> None:
    path = _weights(arena)
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    broken = arena.rng.choice(
        (
            json.dumps(header)[:-7],
            json.dumps(header).replace('"F32"', '"F12"'),
            json.dumps(header).replace("data_offsets", "offsets"),
            json.dumps({**header, "encoder.bias": {**header["encoder.bias"], "shape": [7, 7]}}),
        )
    ).encode()
    path.write_bytes(struct.pack("<Q", len(broken)) + broken + data[8 + size :])
    _serve_weights(arena, path)


def _weights_truncated(arena: Arena) -> None:
    path = _weights(arena)
    truncate(path, arena.rng.uniform(0.5, 0.95))
    _serve_weights(arena, path)


def _weights_missing(arena: Arena) -> None:
    path = _weights(arena)
    path.unlink()
    _serve_weights(arena, path)


def _weights_shrink(arena: Arena) -> None:
    path = _weights(arena, rows=4096)
    arena.serve(
        Code.of(
            """
            faulthandler.enable()
            with safe_open(path, framework="np") as file:
                refresh(path)
                return sum(float(file.get_tensor(key).sum()) for key in file.keys())
            """,
            "import faulthandler\nimport os\n\nfrom safetensors import safe_open",
            definitions="""
            def refresh(path):
                # a new release is synchronised over the old one
                os.truncate(path, 4096)
            """,
            path=path,
        ),
        fresh=True,
    )


FAULTS = (
    Fault(
        "hub-unauthorized",
        "network_auth",
        "prepare",
        "huggingface_hub",
        "fetch where the hub answers 401",
        _unauthorized,
    ),
    Fault("hub-gated", "network_auth", "prepare", "huggingface_hub", "fetch a gated model", _gated),
    Fault("hub-forbidden", "network_auth", "prepare", "huggingface_hub", "fetch where the hub answers 403", _forbidden),
    Fault("hub-not-found", "network_auth", "prepare", "huggingface_hub", "fetch where the hub answers 404", _not_found),
    Fault("hub-refused", "network_auth", "prepare", "huggingface_hub", "fetch from a port nobody listens on", _refused),
    Fault("hub-reset", "network_auth", "prepare", "huggingface_hub", "fetch over connections that are cut", _reset),
    Fault("hub-tls", "network_auth", "prepare", "huggingface_hub", "fetch over TLS from a plain server", _tls),
    Fault(
        "hub-name-unknown",
        "network_auth",
        "prepare",
        "huggingface_hub",
        "fetch from a host without address",
        _name_unknown,
    ),
    Fault("hub-offline", "network_auth", "prepare", "huggingface_hub", "fetch offline what is not cached", _offline),
    Fault("hub-silent", "load_timeout", "prepare", "huggingface_hub", "fetch from a hub that never answers", _silent),
    Fault(
        "hub-cache-forbidden",
        "permission_disk",
        "prepare",
        "huggingface_hub",
        "fetch to a cache folder that is closed",
        _cache_forbidden,
        ("root",),
    ),
    Fault(
        "safetensors-header-replaced",
        "load_corrupt",
        "load",
        "safetensors",
        "load an LFS pointer or random bytes",
        _header_replaced,
    ),
    Fault(
        "safetensors-header-invalid",
        "load_corrupt",
        "load",
        "safetensors",
        "load a file with a broken header",
        _header_invalid,
    ),
    Fault(
        "safetensors-truncated",
        "load_corrupt",
        "load",
        "safetensors",
        "load a file that was cut off",
        _weights_truncated,
    ),
    Fault(
        "safetensors-missing", "load_corrupt", "load", "safetensors", "load a file that is not there", _weights_missing
    ),
    Fault(
        "safetensors-shrinks",
        "native_crash",
        "load",
        "safetensors",
        "shrink a mapped file in use",
        _weights_shrink,
        ("linux",),
    ),
)
