"""The tools that break files, limits and addresses do what their names say."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

from crashpath.coverage import localhub
from crashpath.coverage.breakage import edit_archive, truncate, write_garbage, write_lfs_pointer


def test_truncate_keeps_the_head(tmp_path: Path) -> None:
    """What is left is the first part of the file, byte for byte."""
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(200)))
    truncate(path, 0.25)
    assert path.read_bytes() == bytes(range(50))


def test_a_pointer_reads_like_one_and_garbage_follows_the_seed(tmp_path: Path) -> None:
    """A pointer begins as Git LFS writes it; the same seed gives the same random bytes."""
    pointer, first, second = tmp_path / "p", tmp_path / "a", tmp_path / "b"
    write_lfs_pointer(pointer, random.Random(1))
    assert pointer.read_text(encoding="ascii").startswith("version https://git-lfs.github.com/spec/v1\noid sha256:")
    write_garbage(first, 64, random.Random(1))
    write_garbage(second, 64, random.Random(1))
    assert first.read_bytes() == second.read_bytes()


def test_an_archive_is_edited_or_the_edit_is_refused(tmp_path: Path) -> None:
    """Only the named member changes; an edit that finds nothing is an error, not a healthy file."""
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/version", "10")
        archive.writestr("m/data", "10")
    edit_archive(path, "/version", b"10", b"99")
    with zipfile.ZipFile(path) as archive:
        assert (archive.read("m/version"), archive.read("m/data")) == (b"99", b"10")
    with pytest.raises(ValueError, match="no b'77'"):
        edit_archive(path, "/version", b"77", b"88")


def test_the_memory_limit_is_felt() -> None:
    """Under the limit a small allocation works and a larger one does not."""
    program = (
        "from crashpath.coverage.breakage import limit_memory\n"
        "limit_memory(64)\n"
        "bytearray(16 << 20)\n"
        "try:\n    bytearray(256 << 20)\nexcept MemoryError:\n    print('refused')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "refused\n"


def test_a_hub_answers_as_it_was_told() -> None:
    """The status and headers arrive; a hub that has the file sends it."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(localhub.answering(403, "GatedRepo", "no"), timeout=5)
    assert (caught.value.code, caught.value.headers["X-Error-Code"]) == (403, "GatedRepo")
    with urllib.request.urlopen(localhub.serving(b"{}"), timeout=5) as answer:
        assert answer.read() == b"{}"


def test_a_hub_refuses_resets_or_stays_silent() -> None:
    """Nobody listens, or the connection ends without a byte, or nothing comes before the deadline."""
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(localhub.refusing(), timeout=5)
    with pytest.raises(ConnectionError):
        urllib.request.urlopen(localhub.resetting(), timeout=5)
    port = int(localhub.silent().rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), timeout=0.3) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises(TimeoutError):
            connection.recv(1)
