"""One load of a backend in this process: open it, warm it up, hold it to what the lane is held to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crashpath.runtime.lane import Backend, LaneSignature, LoadCheck
from crashpath.runtime.strikes import Armed
from crashpath.runtime.values import Arrays, Phase


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load gave. ``warm`` is the answer to the first feed, where there was one."""

    backend: Backend
    signature: LaneSignature
    versions: tuple[tuple[str, str], ...]
    warm: Arrays | None


class Loading:
    """A load that is under way: ``phase`` says how far it is."""

    def __init__(
        self, make: Callable[[], Backend], warm_feed: Arrays | None, armed: Armed, check: LoadCheck | None
    ) -> None:
        self.phase = Phase.LOAD
        self._make = make
        self._warm_feed = warm_feed
        self._armed = armed
        self._check = check

    def go(self) -> Loaded:
        """Load. Raises what the library raises, or the failure that the check returns; then the backend is closed."""
        self._armed.fire(Phase.LOAD)
        backend = self._make()
        try:
            self.phase = Phase.WARMUP
            self._armed.fire(Phase.WARMUP)
            warm = None if self._warm_feed is None else backend.run(self._warm_feed)
            loaded = Loaded(backend, backend.signature(), backend.versions(), warm)
            if self._check is not None:
                _hold(self._check, loaded)
        except BaseException:
            backend.close()
            raise
        return loaded


def _hold(check: LoadCheck, loaded: Loaded) -> None:
    wrong = check(loaded.signature, loaded.warm)
    if wrong is None:
        return
    try:
        raise wrong
    finally:
        del wrong  # else its traceback and this frame keep each other, and the backend, alive
