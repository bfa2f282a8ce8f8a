"""The layout holds: the folder ``coverage`` harms nobody, and the wheel has every file of every part."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("ingest", "clustering", "coverage", "dashboard", "runtime")
DATA = (".py", ".typed", ".toml", ".json", ".npz", ".cpp", ".java", ".js")


@pytest.mark.parametrize("module", ["numba", "umap", "coverage"])
def test_import_at_the_root_finds_the_library(module: str) -> None:
    """With the repository root on sys.path, ``import coverage`` is coverage.py, and numba and UMAP can be imported."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {module}, coverage; print(coverage.__version__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_parts_are_imported_under_their_package() -> None:
    """Each folder is ``crashpath.<part>``, and importing all of them loads neither torch nor Streamlit."""
    code = "import sys\n" + "".join(f"import crashpath.{part}\n" for part in PARTS)
    code += "print([m for m in ('torch', 'streamlit', 'umap') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_wheel_has_every_file(tmp_path: Path) -> None:
    """A part's file that is missing from the wheel works here and fails at the user's."""
    source = tmp_path / "source"
    tracked = [name for name in _tracked("pyproject.toml", "README.md", "LICENSE", *PARTS) if (ROOT / name).is_file()]
    for name in tracked:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, source]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"crashpath/{name}" for name in tracked if name.startswith(PARTS) and name.endswith(DATA)}
    assert wanted, "git lists no files"
    assert wanted - packed == set()


def _tracked(*paths: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", *paths], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.split()


def test_packages_are_listed() -> None:
    """Every folder with Python in it is in the explicit package list: setuptools does not look for others."""
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {
        "crashpath." + ".".join(file.parent.relative_to(ROOT).parts)
        for part in PARTS
        for file in (ROOT / part).rglob("*.py")
    }
    assert found == listed
