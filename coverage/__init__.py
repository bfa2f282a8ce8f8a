"""Which paths of the inference runtime have been proven (import it as ``crashpath.coverage``)."""

if __name__ == "coverage":  # pragma: no cover
    # The repository root is on sys.path, so ``import coverage`` found this folder.
    # Load coverage.py, which numba and pytest-cov mean, in its place.
    import sys
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    from pathlib import Path

    _root = Path(__file__).resolve().parents[1]
    _spec = PathFinder.find_spec("coverage", [p for p in sys.path if Path(p).resolve() != _root])
    if _spec is None or _spec.loader is None:
        raise ModuleNotFoundError("No module named 'coverage'", name="coverage")
    sys.modules["coverage"] = module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["coverage"])
