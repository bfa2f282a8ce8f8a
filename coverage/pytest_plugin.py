"""A pytest plugin: the requests that a team's own tests send count towards the coverage of both paths.

``pytest --crashpath-model DIR`` traces every request that a `FallbackSession` of that model gets while the tests run,
beside the answer and never in its place, and tells the headline at the end. Without the flag nothing of crashpath but
this module is imported. Under pytest-xdist each worker writes a run file of its own, and they are added up.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from crashpath.coverage.tracer import Tracer

_GROUP = "crashpath"
_NAME = "crashpath-coverage"
_TROUBLES = "crashpath-troubles"
_MOST_S = 86_400


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags."""
    group = parser.getgroup(_GROUP, "coverage of a model's two paths")
    group.addoption(
        "--crashpath-model", action="append", default=[], metavar="DIR", help="trace requests to this model folder"
    )
    group.addoption(
        "--crashpath-data", default=".crashpath-coverage", metavar="DIR", help="where run files go (%(default)s)"
    )
    group.addoption("--crashpath-release", default="", metavar="R", help="the release that the evidence is for")
    group.addoption(
        "--crashpath-limit", type=float, default=30.0, metavar="S",
        help="seconds that tracing one request may take; a model that takes longer is traced no more (%(default)s)",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Begin where a model is given."""
    if config.getoption("--crashpath-model") and not config.option.collectonly:
        config.pluginmanager.register(Plugin(config), _NAME)


@pytest.fixture(scope="session")
def crashpath_tracer(request: pytest.FixtureRequest) -> Tracer:
    """The tracer of the first model, for tests that do not go through a session; skips them without the flag."""
    plugin = request.config.pluginmanager.get_plugin(_NAME)
    if plugin is None:
        pytest.skip("crashpath_tracer has no model to run: give pytest --crashpath-model DIR")
    return cast("Plugin", plugin).first()


class Plugin:
    """Traces in this process: in each worker under pytest-xdist, and there not in the process that hands out tests.

    Raises `pytest.UsageError` for a folder that is none.
    """

    def __init__(self, config: pytest.Config) -> None:
        from crashpath.coverage.tracer import FolderError
        from crashpath.coverage.tracing import Tracing
        from crashpath.runtime.errors import ModelFolderError

        if not 0 < (limit := config.getoption("--crashpath-limit")) <= _MOST_S:
            raise pytest.UsageError(f"--crashpath-limit {limit:g} is no number of seconds between 0 and {_MOST_S:,}")
        self._config = config
        self._data = Path(config.getoption("--crashpath-data")).absolute()
        self._began = time.time()
        folders = [Path(one) for one in config.getoption("--crashpath-model")]
        try:
            self._tracing = Tracing(
                folders, data=self._data, release=config.getoption("--crashpath-release"), limit_s=limit
            )
        except (ModelFolderError, FolderError) as error:
            raise pytest.UsageError(f"--crashpath-model: {error}") from error
        self._hands_out = bool(getattr(config.option, "numprocesses", None)) and not hasattr(config, "workerinput")
        self._session: pytest.Session | None = None
        if not self._hands_out:
            self._tracing.start()
            atexit.register(self._leave)

    def _leave(self) -> None:
        """End the process as pytest would where native code still runs: what Python does at its end crashes it."""
        if self._session is not None and self._tracing.stuck:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(self._session.exitstatus))

    def first(self) -> Tracer:
        """The tracer of the first model."""
        return self._tracing.first()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write what was seen; a worker tells the process that hands out tests what could not be traced."""
        self._session = session
        if not self._hands_out:
            self._tracing.stop()
        if hasattr(self._config, "workerinput"):
            self._config.workeroutput[_TROUBLES] = list(self._tracing.troubles)  # type: ignore[attr-defined]  # xdist's

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of pytest-xdist ended: keep its troubles, each once."""
        told = (getattr(node, "workeroutput", None) or {}).get(_TROUBLES, [])
        self._tracing.troubles += [one for one in told if one not in self._tracing.troubles]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Tell the headline of every model, over all workers."""
        terminalreporter.section("coverage of both paths")
        for line in self._tracing.summary(since=self._began):
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"crashpath coverage --add {self._data}   # takes them into the store")
