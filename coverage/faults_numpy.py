"""Faults of numpy and of the standard library's own formats: arrays, pickles, archives, memory."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path

from crashpath.coverage.app import Code
from crashpath.coverage.breakage import truncate
from crashpath.coverage.fault import Arena, Fault

NUMPY = "import numpy as np"


def _array_file(arena: Arena, suffix: str = ".npy", rows: int = 0) -> Path:
    import numpy as np

    v = arena.variation
    path = arena.path("models/{model}/{stem}" + suffix)
    table = np.random.default_rng(v.seed).normal(size=(rows or v.width, v.other)).astype(np.float32)
    if suffix == ".npz":
        np.savez(path, weight=table, bias=table[0])
    else:
        np.save(path, table)
    return path


def _shapes(arena: Arena) -> None:
    v = arena.variation
    call = arena.rng.choice(
        (
            "a @ b",
            "a + b",
            "np.concatenate([a, b])",
            "np.stack([a, b])",
            "a.reshape(batch + 1, -1, width + 1)",
            "np.einsum('ij,kj->ik', a, b)",
            "np.linalg.solve(a, b)",
        )
    )
    arena.serve(
        Code.of(
            f"a, b = np.zeros((batch + 1, width)), np.zeros((batch + 1, other))\nreturn {call}",
            NUMPY,
            phase=arena.rng.choice(("infer", "prepare")),
            batch=v.batch,
            width=v.width,
            other=v.other,
        )
    )


def _memory(arena: Arena) -> None:
    importlib.import_module("numpy.linalg")
    call = arena.rng.choice(
        (
            "np.zeros((rows, 1024), dtype=np.float32)",
            "np.ones((1, 1024)).repeat(rows, axis=0)",
            "np.full((rows, 512), 0.5)",
            "np.random.rand(rows, 768)",
        )
    )
    v = arena.variation
    arena.serve(
        Code.of(
            f"index = {call}\nreturn index.mean(axis=1)",
            NUMPY,
            phase=arena.rng.choice(("load", "infer")),
            rows=(v.mib << 10) // 2 + v.width * 97,
        ),
        memory_mib=v.mib,
    )


def _pickle_refused(arena: Arena) -> None:
    import numpy as np

    path = arena.path("models/{model}/{stem}.npy")
    np.save(path, np.array([{"label": 1}, {"label": 2}], dtype=object), allow_pickle=True)
    arena.serve(Code.of("return np.load(path)", NUMPY, path=path))


def _array_truncated(arena: Arena) -> None:
    path = _array_file(arena, arena.rng.choice((".npy", ".npz")))
    truncate(path, arena.rng.uniform(0.05, 0.9))
    body = 'weights = np.load(path)\nreturn weights["weight"]' if path.suffix == ".npz" else "return np.load(path)"
    arena.serve(Code.of(body, NUMPY, path=path))


def _array_shrinks(arena: Arena) -> None:
    path = _array_file(arena, rows=4096)
    arena.serve(
        Code.of(
            """
            faulthandler.enable()
            index = np.load(path, mmap_mode="r")
            rebuild(path)
            return search(index)
            """,
            "import faulthandler\nimport os\n\nimport numpy as np",
            definitions="""
            def rebuild(path):
                # the indexer starts over in the same file
                os.truncate(path, 4096)


            def search(index):
                return index.sum(axis=1).argmax()
            """,
            phase="infer",
            path=path,
        ),
        fresh=True,
    )


def _array_forbidden(arena: Arena) -> None:
    path = _array_file(arena)
    if arena.rng.random() < 0.5:
        path.chmod(0)
        body = arena.rng.choice(("return np.load(path)", 'return np.load(path, mmap_mode="r")'))
    else:
        path.unlink()
        path.parent.chmod(0o555)
        body = "np.save(path, np.zeros(8, dtype=np.float32))\nreturn path"
    arena.serve(Code.of(body, NUMPY, path=path), as_nobody=True)


def _pickle_broken(arena: Arena) -> None:
    path = arena.path("models/{model}/{stem}.pkl")
    path.write_bytes(pickle.dumps({"coef": [0.5] * arena.variation.width, "classes": ["a", "b"]}))
    if arena.rng.random() < 0.6:
        truncate(path, arena.rng.choice((0.0, 0.4, 0.8)))
    else:
        path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n" + path.read_bytes()[:40])
    arena.serve(Code.of('with open(path, "rb") as file:\n    return pickle.load(file)', "import pickle", path=path))


def _archive_broken(arena: Arena) -> None:
    """A packed model that was cut off, in the formats that models are shipped in."""
    import gzip
    import io
    import tarfile
    import zipfile

    kind = arena.rng.choice(("zip", "tar.gz", "gz", "json"))
    path = arena.path("models/{model}." + kind)
    data = arena.rng.randbytes(20_000)
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("weights.bin", data)
        body, imports = (
            "with zipfile.ZipFile(path) as archive:\n    return archive.read('weights.bin')",
            "import zipfile",
        )
    elif kind == "tar.gz":
        with tarfile.open(path, "w:gz") as tar:
            info = tarfile.TarInfo("weights.bin")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        body, imports = (
            "with tarfile.open(path) as tar:\n    return tar.extractfile('weights.bin').read()",
            "import tarfile",
        )
    elif kind == "gz":
        path.write_bytes(gzip.compress(data))
        body, imports = "with gzip.open(path) as file:\n    return file.read()", "import gzip"
    else:
        path.write_text('{"labels": ["cat", "dog"], "threshold": 0.5, "normalise": true}', encoding="utf-8")
        body, imports = "with open(path) as file:\n    return json.load(file)", "import json"
    truncate(path, arena.rng.uniform(0.2, 0.9))
    arena.serve(Code.of(body, imports, path=path))


def _plain_memory(arena: Arena) -> None:
    v = arena.variation
    body = arena.rng.choice(
        (
            "cache = [bytes(1 << 20) for _ in range(4 * mib)]\nreturn cache",
            "return bytearray(mib << 21)",
            "return list(range(mib << 20))",
            'return "x" * (mib << 21)',
            "return {n: str(n) * 8 for n in range(mib << 14)}",
        )
    )
    arena.serve(
        Code.of(body, phase=arena.rng.choice(("load", "infer")), once=True, mib=v.mib), memory_mib=min(v.mib, 256)
    )


FAULTS = (
    Fault("numpy-shapes", "shape_inference", "infer", "numpy", "combine arrays that do not fit", _shapes),
    Fault(
        "numpy-memory-limit",
        "oom_host",
        "infer",
        "numpy",
        "allocate more than the address-space limit",
        _memory,
        ("linux",),
    ),
    Fault("numpy-pickle-refused", "load_corrupt", "load", "numpy", "load an array of objects", _pickle_refused),
    Fault("numpy-truncated", "load_corrupt", "load", "numpy", "load an array that was cut off", _array_truncated),
    Fault(
        "numpy-mapped-file-shrinks",
        "native_crash",
        "infer",
        "numpy",
        "shrink a memory-mapped array in use",
        _array_shrinks,
        ("linux",),
    ),
    Fault(
        "numpy-forbidden",
        "permission_disk",
        "load",
        "numpy",
        "read or write an array without the right",
        _array_forbidden,
    ),
    Fault(
        "python-pickle-broken",
        "load_corrupt",
        "load",
        "python",
        "load a pickle that was cut off or replaced",
        _pickle_broken,
    ),
    Fault(
        "python-archive-broken", "load_corrupt", "load", "python", "unpack a model that was cut off", _archive_broken
    ),
    Fault(
        "python-memory-limit",
        "oom_host",
        "infer",
        "python",
        "allocate more than the address-space limit",
        _plain_memory,
        ("linux",),
    ),
)
