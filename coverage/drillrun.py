"""Drive many cases: sessions are shared where that is fair, and opened anew where a policy remembers."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from crashpath.coverage.drill import DrillError, drive
from crashpath.coverage.drillcase import Case, not_here, null_result
from crashpath.coverage.drillcells import DrillResult
from crashpath.coverage.drillfolder import built_in_folder
from crashpath.coverage.drillsaid import Said
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

    ``versions`` are those of the libraries that ran, known once a session was open. ``said`` has what this process
    writes on its standard error: where the paths run in it, that is what the struck process printed.
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
        said: Said | None = None,
    ) -> None:
        self._said = said
        self._folder = folder
        self._isolation = isolation
        self._policy = policy
        self._pace = pace
        self._listeners = listeners
        self._providers = providers
        self._open = ExitStack()
        self._stage: Stage | None = None
        self.versions: tuple[tuple[str, str], ...] = ()
        self._routes: Counter[str] = Counter()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def routes(self) -> Counter[str]:
        """How often the sessions took each declared edge, up to now."""
        if self._stage is None:
            return self._routes
        return self._routes + Counter(dict(self._stage.session.facts().figures.routes))

    def close(self) -> None:
        """Close the session that is open."""
        self._routes = self.routes
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
        if self._said is None:
            return self._driven(case)
        self._said.put_aside()
        result = self._driven(case)
        if self._isolation != "in_process":
            return result
        parts = (self._said.taken().strip(), result.printed)
        return replace(result, printed="\n".join(part for part in parts if part))

    def _driven(self, case: Case) -> DrillResult:
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
