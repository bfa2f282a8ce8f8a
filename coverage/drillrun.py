"""Drive many cases: sessions are shared where that is fair, and opened anew where a policy remembers."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from crashpath.coverage.drill import DrillError, drive
from crashpath.coverage.drillcase import Case, not_here, null_result
from crashpath.coverage.drillcells import DrillResult
from crashpath.coverage.drillfolder import built_in_folder
from crashpath.coverage.drillstage import Pace, Stage, opened
from crashpath.runtime.backends import CPU
from crashpath.runtime.events import Listener
from crashpath.runtime.folder import ModelFolder, open_folder
from crashpath.runtime.policy import Policy


@contextmanager
def folder_to_drill(model: Path | None) -> Iterator[ModelFolder]:
    """Open the model folder to drill; without one, build a tiny one, and take it away in the end."""
    if model is not None:
        yield open_folder(model)
        return
    with tempfile.TemporaryDirectory(prefix="drill-model-") as name:
        yield built_in_folder(Path(name, "tiny"))


class Runner:
    """Drives cases one after the other; a context, as it keeps the session of the last one open.

    ``versions`` are those of the libraries that ran, known once a session was open.
    """

    def __init__(
        self,
        folder: ModelFolder,
        isolation: str,
        policy: Policy,
        *,
        pace: Pace,
        listeners: tuple[Listener, ...] = (),
        providers: tuple[str, ...] = (CPU,),
    ) -> None:
        self._folder = folder
        self._isolation = isolation
        self._policy = policy
        self._pace = pace
        self._listeners = listeners
        self._providers = providers
        self._open = ExitStack()
        self._stage: Stage | None = None
        self.versions: tuple[tuple[str, str], ...] = ()
        self.routes: Counter[str] = Counter()
        """Declared edges that the sessions took, those that were closed."""

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the session that is open."""
        if self._stage is not None:
            self.routes.update(dict(self._stage.session.facts().figures.routes))
        self._stage = None
        self._open.close()

    def run(self, cases: Sequence[Case]) -> Iterator[DrillResult]:
        """Yield the result of each case. Raises `DrillError` where a fresh session does not answer on its main path."""
        for case in cases:
            if why := not_here(case, self._isolation):
                yield null_result(case, self._isolation, self._policy.name, why)
            else:
                yield self._drive(case)

    def stage(self) -> Stage:
        """Return the session that is open; opens one where none is."""
        if self._stage is None:
            self._stage = self._open.enter_context(
                opened(
                    self._folder,
                    self._isolation,
                    self._policy,
                    pace=self._pace,
                    listeners=self._listeners,
                    providers=self._providers,
                )
            )
            self.versions = tuple(self._stage.versions().items())
        return self._stage

    def _drive(self, case: Case) -> DrillResult:
        shared = self._policy.falls_back and not self._policy.sticky and not self._policy.once
        fresh = self._stage is None
        try:
            return drive(self.stage(), case)
        except DrillError:
            if fresh:
                raise
            self.close()  # the drill before this one left it in a bad way, which its own cells say
            return drive(self.stage(), case)
        finally:
            if not shared:
                self.close()
