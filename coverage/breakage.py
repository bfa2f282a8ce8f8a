"""How files, limits and rights are really broken: the tools that the faults share."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import zipfile
from pathlib import Path

NOBODY = 65534


def truncate(path: Path, share: float) -> None:
    """Keep the first ``share`` of the file's bytes, as a download or a copy that was cut off does."""
    os.truncate(path, int(path.stat().st_size * share))


def write_garbage(path: Path, size: int, rng: random.Random) -> None:
    """Write ``size`` random bytes, none of them a text or archive mark at the head."""
    path.write_bytes(b"\x8f\xf1" + rng.randbytes(size))


def write_lfs_pointer(path: Path, rng: random.Random) -> None:
    """Write what a clone without Git LFS has in the place of the weights."""
    digest = rng.randbytes(32).hex()
    size = rng.randint(10**8, 10**10)
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {size}\n", encoding="ascii")


def edit_archive(path: Path, suffix: str, old: bytes, new: bytes) -> None:
    """Replace ``old`` in each member whose name ends with ``suffix``. Raises `ValueError` if nothing changed."""
    with zipfile.ZipFile(path) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    edited = [(name, data.replace(old, new) if name.endswith(suffix) else data) for name, data in members]
    if edited == members:
        raise ValueError(f"{path.name}: no {old!r} in a member *{suffix}")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in edited:
            archive.writestr(name, data)


def limit_memory(mib: int) -> None:
    """Allow this process ``mib`` MiB of address space more than it has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + (mib << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def drop_privileges() -> None:
    """Become the user *nobody* for good, where this process is root; files of mode 000 are closed to it then."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def compile_shared(source: str, target: Path, *flags: str) -> None:
    """Compile C ``source`` to the shared library ``target`` with gcc."""
    target.parent.mkdir(parents=True, exist_ok=True)
    code = target.with_suffix(".c")
    code.write_text(source, encoding="utf-8")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(target), str(code), *flags], check=True, cwd=target.parent)
    code.unlink()
