"""Reading sources: every packing, every broken source, growth and rotation, bounded memory."""

from __future__ import annotations

import gzip
import lzma
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from crashpath.ingest.read import LINE_BYTES, SourceError, expand, open_source, split_lines
from crashpath.ingest.redact import redact

TEXT = b"first line\nsecond line \xc3\xa9\n\nlast without end"


def read_all(path: Path | str, start: int = 0) -> list[tuple[int, int, bytes]]:
    with open_source(str(path)) as source:
        return [tuple(line)[:3] for line in source.lines(start)]


def pack(path: Path, data: bytes) -> Path:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(data))
    elif path.suffix == ".zst":
        path.write_bytes(zstandard.compress(data[:7]) + zstandard.compress(data[7:]))
    elif path.suffix == ".xz":
        path.write_bytes(lzma.compress(data))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("app.log", data)
    else:
        path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["a.log", "a.log.gz", "a.log.zst", "a.log.xz"])
def test_packed_and_plain_files_give_the_same_lines_and_head(tmp_path: Path, name: str) -> None:
    """Offsets, lines and head are those of the unpacked bytes, so that a rotated, packed file is the same source."""
    path = pack(tmp_path / name, TEXT)
    plain = pack(tmp_path / "plain", TEXT)
    assert read_all(path) == read_all(plain) == [
        (0, 11, b"first line"), (11, 26, b"second line \xc3\xa9"), (26, 27, b""), (27, 43, b"last without end"),
    ]  # fmt: skip
    with open_source(str(path)) as source:
        assert source.head == TEXT


@pytest.mark.parametrize("name", ["a.log", "a.log.gz", "a.log.zst", "a.log.xz", "a.zip"])
def test_reading_on_from_an_offset_gives_the_rest(tmp_path: Path, name: str) -> None:
    """Reading from a line's start gives exactly the lines from there on."""
    path = pack(tmp_path / name, TEXT + b"\n")
    lines = read_all(path)
    assert read_all(path, lines[1][0]) == lines[1:]


def test_packing_is_told_by_content_when_the_name_is_silent(tmp_path: Path) -> None:
    """A gzip file without .gz is unpacked, and plain text named .gz is read as text."""
    (tmp_path / "app.log.1").write_bytes(gzip.compress(TEXT))
    (tmp_path / "app.log.gz").write_bytes(TEXT)
    assert read_all(tmp_path / "app.log.1") == read_all(tmp_path / "app.log.gz")


def test_members_of_a_zip_do_not_share_a_line(tmp_path: Path) -> None:
    """A member without a last newline still ends its line."""
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("b.log", "from b")
        archive.writestr("a.log", "from a")
    assert [data for _, _, data in read_all(tmp_path / "logs.zip")] == [b"from a", b"from b"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_read_as_text(tmp_path: Path, encoding: str) -> None:
    """Files of Windows tools, with or without a byte order mark, give their lines."""
    (tmp_path / "w.log").write_bytes("Traceback (most recent call last):\nKeyError: 'é'\n".encode(encoding))
    assert read_all(tmp_path / "w.log")[1][2].decode() == "KeyError: 'é'"


def test_an_empty_file_has_no_lines_and_is_no_error(tmp_path: Path) -> None:
    """An empty file is read to its end."""
    (tmp_path / "empty.log").touch()
    assert read_all(tmp_path / "empty.log") == []
    with open_source(str(tmp_path / "empty.log")) as source:
        assert (source.head, source.size) == (b"", 0)


@pytest.mark.parametrize(
    "data", [b"\x7fELF\x02\x01\x01" + bytes(100), b"\x89PNG\r\n\x1a\n" + bytes(range(256)), bytes(2048)]
)
def test_a_binary_file_is_refused_in_one_sentence(tmp_path: Path, data: bytes) -> None:
    """What is no text says so, with advice."""
    (tmp_path / "x.log").write_bytes(data)
    with pytest.raises(SourceError, match="is not a text log: give log files only"):
        open_source(str(tmp_path / "x.log"))


@pytest.mark.parametrize("name", ["a.gz", "a.zst", "a.xz"])
def test_lines_before_the_damage_of_an_archive_are_given(tmp_path: Path, name: str) -> None:
    """A packed file that ends early gives what it holds, then one sentence."""
    path = pack(tmp_path / name, b"".join(b"line %d %s\n" % (i, os.urandom(16).hex().encode()) for i in range(20_000)))
    path.write_bytes(path.read_bytes()[:-5000])
    got = []
    with open_source(str(path)) as source, pytest.raises(SourceError, match=r"damaged .* copy it again"):
        got.extend(source.lines())
    assert len(got) > 5_000


def test_a_damaged_head_of_an_archive_is_one_sentence(tmp_path: Path) -> None:
    """A packed file that cannot be unpacked at all says so when it is opened."""
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(SourceError, match="damaged zip"):
        open_source(str(tmp_path / "a.zip"))


def test_a_growing_file_is_read_on_and_a_truncated_one_ends(tmp_path: Path) -> None:
    """The end of the last line is where the next run goes on; past the end there is nothing."""
    path = tmp_path / "app.log"
    path.write_bytes(b"one\ntwo\n")
    end = read_all(path)[-1][1]
    with path.open("ab") as file:
        file.write(b"three\n")
    assert read_all(path, end) == [(8, 14, b"three")]
    path.write_bytes(b"new\n")
    assert read_all(path, 14) == []


def test_a_rotated_file_keeps_head_and_inode(tmp_path: Path) -> None:
    """What identifies a source does not change with its name."""
    path = tmp_path / "app.log"
    path.write_bytes(b"one\n" * 500)
    with open_source(str(path)) as before:
        path.rename(tmp_path / "app.log.1")
        with open_source(str(tmp_path / "app.log.1")) as after:
            assert (before.head, before.inode, before.mtime) == (after.head, after.inode, after.mtime)


@given(st.binary(max_size=300), st.integers(1, 50))
def test_no_byte_is_lost_however_the_chunks_fall(data: bytes, size: int) -> None:
    """Lines joined by newlines are the input again, and offsets are where the lines stand."""
    lines = list(split_lines(data[i : i + size] for i in range(0, len(data), size)))
    assert b"".join(data[line.offset : line.end] for line in lines) == data
    assert all(data[line.offset : line.end].rstrip(b"\n") == line.data.rstrip(b"\n") for line in lines)


def test_a_huge_line_is_cut_to_head_and_tail() -> None:
    """A line over the limit keeps both ends, says what went, and its offsets are true."""
    chunks = [b"HEAD", *[b"x" * LINE_BYTES] * 5, b"TAIL\nnext\n"]
    first, second = split_lines(iter(chunks))
    assert first.cut
    assert first.data.startswith(b"HEAD")
    assert first.data.endswith(b"TAIL")
    assert b"bytes cut" in first.data
    assert len(first.data) < LINE_BYTES + 100
    assert (first.end, second) == (5 * LINE_BYTES + 9, (5 * LINE_BYTES + 9, 5 * LINE_BYTES + 14, b"next", False))


def test_memory_stays_bounded_for_a_100_mb_line(tmp_path: Path) -> None:
    """Reading one line of 100 MB takes less than 50 MB."""
    path = tmp_path / "long.log"
    with path.open("wb") as file:
        file.write(b"start ")
        for _ in range(100):
            file.write(b"y" * 1_000_000)
        file.write(b" end\nafter\n")
    code = (
        "import resource, sys\n"
        "from crashpath.ingest.read import open_source\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "with open_source(sys.argv[1]) as source: n = sum(1 for _ in source.lines())\n"
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    out = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True).stdout
    count, kib = map(int, out.split())
    assert count == 2
    assert kib < 50_000


def test_expand_sorts_folders_and_names_each_file_once(tmp_path: Path) -> None:
    """Folders are walked in order; hidden files, sidecars and pipes are no logs; a file named twice is read once."""
    for name in ("b/z.log", "a.log", "b/y.log", ".hidden", "a.log.meta.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    os.mkfifo(tmp_path / "pipe")
    found = expand([str(tmp_path), str(tmp_path / "*.log"), "-"])
    assert [os.path.relpath(item.path, tmp_path) for item in found[:-1]] == ["a.log", "b/y.log", "b/z.log"]
    assert found[-1] == ("-", None)
    assert all(item.problem is None for item in found)


def test_missing_paths_and_dangling_links_are_problems_not_exceptions(tmp_path: Path) -> None:
    """Each thing that cannot be read is in the result with one sentence."""
    (tmp_path / "link.log").symlink_to(tmp_path / "gone")
    found = expand([str(tmp_path / "nope.log"), str(tmp_path / "*.nothing"), str(tmp_path)])
    assert [bool(item.problem) for item in found] == [True, True, True]
    assert "does not exist" in str(found[0].problem)


def test_a_folder_and_a_file_without_permission_are_problems() -> None:
    """What this user may not read is a problem in a sentence, and the other files are still found."""
    code = (
        "import os, sys\n"
        "from crashpath.ingest.read import expand, open_source, SourceError\n"
        "os.chdir(sys.argv[1])\n"
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "for found in expand(['logs']): print(found.path, '|', found.problem)\n"
        "try: open_source('logs/secret.log')\n"
        "except SourceError as error: print('refused |', error)\n"
    )
    with tempfile.TemporaryDirectory() as folder:  # not pytest's, which no other user may enter
        os.chmod(folder, 0o755)
        logs = Path(folder) / "logs"
        (logs / "closed").mkdir(parents=True)
        (logs / "open.log").write_text("x\n")
        (logs / "secret.log").write_text("x\n")
        (logs / "closed").chmod(0)
        (logs / "secret.log").chmod(0)
        done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=False)
        (logs / "closed").chmod(0o755)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" | ", 1) for line in done.stdout.splitlines())
    assert said["logs/open.log"] == "None"
    assert "may not be read" in said["logs/secret.log"]
    assert "may not be listed" in said["logs/closed"]
    assert "may not be read: change its permissions" in said["refused"]
    for sentence in said.values():
        assert redact(sentence).text == sentence  # problems are redacted, and must stay readable


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    """A named pipe with a writer gives its lines."""
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", f"printf 'a\\nb\\n' > {tmp_path}/pipe"]):
        assert [data for _, _, data in read_all(tmp_path / "pipe")] == [b"a", b"b"]


def test_standard_input_is_read_packed_or_not() -> None:
    """``-`` reads standard input, unpacking gzip, and it has neither size nor time."""
    code = (
        "from crashpath.ingest.read import open_source\n"
        "with open_source('-') as source: print([line.data for line in source.lines()], source.size, source.mtime)\n"
    )
    for data in (b"a\nb\n", gzip.compress(b"a\nb\n")):
        out = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True).stdout
        assert out.decode().strip() == "[b'a', b'b'] None None"
