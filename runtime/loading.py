"""A load: open the backend, warm it up, hold it to what its lane is held to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crashpath.runtime.lane import Backend, LaneSignature, LoadCheck
from crashpath.runtime.strikes import Armed
from crashpath.runtime.values import Arrays, Phase


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is known of a backend after its load. ``warm`` is its answer to the first feed, where there was one."""

    signature: LaneSignature
    versions: tuple[tuple[str, str], ...]
    warm: Arrays | None


class Loading:
    """A load in this process that is under way: ``phase`` says how far it is."""

    def __init__(
        self, make: Callable[[], Backend], warm_feed: Arrays | None, armed: Armed, check: LoadCheck | None
    ) -> None:
        self.phase = Phase.LOAD
        self._make = make
        self._warm_feed = warm_feed
        self._armed = armed
        self._check = check

    def go(self) -> tuple[Backend, Loaded]:
        """Load. Raises what the library raises, or the failure that the check returns; then the backend is closed."""
        self._armed.fire(Phase.LOAD)
        backend = self._make()
        try:
            self.phase = Phase.WARMUP
            self._armed.fire(Phase.WARMUP)
            warm = None if self._warm_feed is None else backend.run(self._warm_feed)
            loaded = Loaded(backend.signature(), backend.versions(), warm)
            hold(self._check, loaded)
        except BaseException:
            backend.close()
            raise
        return backend, loaded


def hold(check: LoadCheck | None, loaded: Loaded) -> None:
    """Raise what ``check`` returns."""
    wrong = None if check is None else check(loaded.signature, loaded.warm)
    if wrong is None:
        return
    try:
        raise wrong
    finally:
        del wrong  # else its traceback and this frame keep each other, and the backend, alive
