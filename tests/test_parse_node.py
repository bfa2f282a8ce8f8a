"""Rules of JavaScript errors, on a real Node where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from crashpath.ingest.parse import parse

PROGRAM = """
const mode = process.argv[2];
function deep() { null.foo; }
if (mode == 'plain') deep();
if (mode == 'cause') { try { deep() } catch (e) { throw new Error('wrapper failed\\nline two', { cause: e }) } }
if (mode == 'code') require('fs').readFileSync('/not/there');
if (mode == 'many') Promise.any([Promise.reject(new Error('one')), Promise.reject(new TypeError('two'))]);
if (mode == 'logged') { try { deep() } catch (e) { console.error('load failed:', e.stack) } }
"""


@pytest.mark.parametrize(
    ("mode", "chain"),
    [
        ("plain", [("TypeError", "Cannot read properties of null (reading 'foo')")]),
        (
            "cause",
            [("TypeError", "Cannot read properties of null (reading 'foo')"), ("Error", "wrapper failed\nline two")],
        ),
        ("code", [("Error", "ENOENT: no such file or directory, open '/not/there'")]),
        ("many", [("Error", "one"), ("TypeError", "two"), ("AggregateError", "All promises were rejected")]),
        ("logged", [("TypeError", "Cannot read properties of null (reading 'foo')")]),
    ],
)
def test_real_errors_have_their_cause_first(tmp_path: Path, mode: str, chain: list[tuple[str, str]]) -> None:
    """``[cause]`` and the members of an ``AggregateError`` come before what wraps them."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    (tmp_path / "prog.js").write_text(PROGRAM)
    done = subprocess.run(
        ["node", "prog.js", mode], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    parsed = parse(done.stderr)
    assert [(thrown.type, thrown.message) for thrown in parsed.chain] == chain
    assert parsed.format == "node"
    project = [frame.function for frame in parsed.chain[0].frames if frame.in_project]
    assert project[-1] in {"deep", "Object.<anonymous>"}
