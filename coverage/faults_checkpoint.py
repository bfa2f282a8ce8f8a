"""Faults of torch checkpoints: files cut off, replaced, missing, forbidden, shrunk while mapped, of another device."""

from __future__ import annotations

import importlib
from pathlib import Path

from crashpath.coverage.app import Code
from crashpath.coverage.breakage import edit_archive, truncate, write_garbage, write_lfs_pointer
from crashpath.coverage.fault import Arena, Fault

TORCH = "import torch"


def _checkpoint(arena: Arena, *, legacy: bool = False) -> Path:
    """Save the state of a small network and return its path."""
    import torch

    v = arena.variation
    path = arena.path("models/{model}/{stem}" + arena.rng.choice((".pt", ".pth", ".bin", ".ckpt")))
    state = torch.nn.Sequential(torch.nn.Linear(v.width, v.other), torch.nn.LayerNorm(v.other)).state_dict()
    torch.save({"epoch": v.batch, "state_dict": state}, path, _use_new_zipfile_serialization=not legacy)
    return path


def _serve_load(arena: Arena, path: Path, *, as_nobody: bool = False) -> None:
    weights_only = arena.rng.choice(("True", "False"))
    arena.serve(
        Code.of(
            f"""
            state = torch.load(path, map_location="cpu", weights_only={weights_only})
            return state["state_dict"]
            """,
            TORCH,
            path=path,
        ),
        as_nobody=as_nobody,
    )


def _load_truncated(arena: Arena) -> None:
    path = _checkpoint(arena)
    truncate(path, arena.rng.uniform(0.3, 0.95))
    _serve_load(arena, path)


def _load_legacy_truncated(arena: Arena) -> None:
    path = _checkpoint(arena, legacy=True)
    truncate(path, arena.rng.uniform(0.0, 0.9))
    _serve_load(arena, path)


def _load_garbage(arena: Arena) -> None:
    path = _checkpoint(arena)
    write_garbage(path, 4096, arena.rng)
    _serve_load(arena, path)


def _load_lfs_pointer(arena: Arena) -> None:
    path = _checkpoint(arena)
    write_lfs_pointer(path, arena.rng)
    _serve_load(arena, path)


def _load_missing(arena: Arena) -> None:
    path = _checkpoint(arena)
    path.unlink()
    _serve_load(arena, path)


def _load_forbidden(arena: Arena) -> None:
    path = _checkpoint(arena)
    path.chmod(0)
    _serve_load(arena, path, as_nobody=True)


def _save_forbidden(arena: Arena) -> None:
    importlib.import_module("torch")  # while rights allow it
    path = arena.path("cache/{model}/compiled.pt")
    path.parent.chmod(0o555)
    arena.serve(
        Code.of(
            """
            model = torch.nn.Linear(width, width).eval()
            torch.save(model.state_dict(), path)
            return model
            """,
            TORCH,
            path=path,
            width=arena.variation.width,
        ),
        as_nobody=True,
    )


def _load_cuda_checkpoint(arena: Arena) -> None:
    path = _checkpoint(arena)
    device = f"cuda:{arena.rng.randint(0, 3)}".encode()
    edit_archive(path, "data.pkl", b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00" + device)
    arena.serve(Code.of('return torch.load(path)["state_dict"]', TORCH, path=path))


def _mapped_file_shrinks(arena: Arena) -> None:
    import torch

    path = arena.path("models/{model}/{stem}.pt")
    torch.save({"weight": torch.zeros(512, 1024)}, path)
    arena.serve(
        Code.of(
            """
            faulthandler.enable()
            state = torch.load(path, mmap=True)
            publish(path)
            return float(state["weight"].sum())
            """,
            "import faulthandler\nimport os\n\nimport torch",
            definitions="""
            def publish(path):
                # the sync job rewrites the file in place
                os.truncate(path, 4096)
            """,
            phase=arena.rng.choice(("load", "infer")),
            path=path,
        ),
        fresh=True,
    )


FAULTS = (
    Fault(
        "torch-load-truncated",
        "load_corrupt",
        "load",
        "torch",
        "load a checkpoint archive that was cut off",
        _load_truncated,
    ),
    Fault(
        "torch-load-legacy-truncated",
        "load_corrupt",
        "load",
        "torch",
        "load a pre-zip checkpoint that was cut off",
        _load_legacy_truncated,
    ),
    Fault("torch-load-garbage", "load_corrupt", "load", "torch", "load random bytes as a checkpoint", _load_garbage),
    Fault(
        "torch-load-lfs-pointer",
        "load_corrupt",
        "load",
        "torch",
        "load a Git LFS pointer as a checkpoint",
        _load_lfs_pointer,
    ),
    Fault("torch-load-missing", "load_corrupt", "load", "torch", "load a checkpoint that is not there", _load_missing),
    Fault(
        "torch-load-forbidden",
        "permission_disk",
        "load",
        "torch",
        "load a checkpoint of mode 000 as another user",
        _load_forbidden,
    ),
    Fault(
        "torch-save-forbidden",
        "permission_disk",
        "load",
        "torch",
        "save to a cache folder without write permission",
        _save_forbidden,
    ),
    Fault(
        "torch-load-cuda-checkpoint",
        "device_init",
        "load",
        "torch",
        "load tensors saved on CUDA where there is none",
        _load_cuda_checkpoint,
    ),
    Fault(
        "torch-mapped-file-shrinks",
        "native_crash",
        "infer",
        "torch",
        "shrink a memory-mapped checkpoint in use",
        _mapped_file_shrinks,
        ("linux",),
    ),
)
