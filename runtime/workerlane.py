"""A lane whose backend runs in a worker: a hard deadline, and no crash of native code that takes the service along."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path as FilePath

from crashpath.runtime.errors import DeviceFault, ServingError
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.keeper import Keeper
from crashpath.runtime.lane import LaneFacts, LaneSignature, LoadCheck
from crashpath.runtime.reasons import recognise
from crashpath.runtime.reload import while_away
from crashpath.runtime.strikes import Armed
from crashpath.runtime.values import Arrays, Path, Phase, Strike
from crashpath.runtime.workerprocess import WorkerDeath, WorkerPlan


class WorkerLane:
    """See the module. ``backend`` is ``ort`` or ``torchscript``; ``start_timeout`` is for loads in the background.

    ``memory_mib`` (the folder's limit by default) is address space above what the library needs for nothing; 0 is no
    limit. ``backoff`` are the first and the longest wait in seconds between two loads in the background.
    """

    def __init__(
        self,
        path: Path,
        backend: str,
        folder: ModelFolder,
        warm_feed: Arrays | None,
        *,
        start_timeout: float | None = None,
        providers: Sequence[str] = ("CPUExecutionProvider",),
        memory_mib: int | None = None,
        backoff: tuple[float, float] = (0.1, 5.0),
    ) -> None:
        if os.name != "posix":
            raise ServingError("workers need sockets and files that are inherited, as Unix has them: use in_process")
        limits = folder.limits
        self.path = path
        plan = WorkerPlan(
            backend,
            FilePath(folder.path).resolve(),
            limits.threads,
            tuple(providers),
            limits.memory_mib if memory_mib is None else memory_mib,
        )
        self._armed = Armed()
        timeout = limits.load_s if start_timeout is None else start_timeout
        self._keeper = Keeper(path, plan, warm_feed, self._armed, start_timeout=timeout, backoff=backoff)

    def load(self, timeout: float) -> None:
        """Have a worker ready in ``timeout`` seconds. Joins an attempt that is under way. Raises as `Lane.load`.

        Until the lane was ready once, a load that fails is not tried again unless this is called again.
        """
        self._keeper.load(timeout)

    def run(self, feed: Arrays, deadline: float) -> Arrays:
        """Answer by ``deadline``, as `Lane.run`; a worker that is late is killed."""
        keeper = self._keeper
        worker = keeper.take(deadline)
        try:
            outputs, _ = worker.ask(Phase.INFER, feed, deadline, self._armed.due(Phase.INFER))
        except WorkerDeath as death:
            keeper.give_up(worker, death.failure)
            keeper.raise_if_closed()
            raise death.failure from death.__cause__
        except DeviceFault as error:  # its context is poisoned
            worker.kill()
            keeper.give_up(worker, error)
            raise
        except OSError as error:  # no memory or space for the feed
            keeper.release(answered=False)
            found = recognise(error, Phase.INFER, self.path)
            if found is None:
                raise
            raise found from error
        except Exception:
            keeper.release(answered=False)
            raise
        except BaseException:  # an interrupt: its reply may come yet, so nobody may ask this worker again
            worker.kill()
            keeper.give_up(worker, None)
            raise
        keeper.release(answered=True)
        return outputs

    def signature(self) -> LaneSignature:
        """Return what the artefact of the last load takes and gives; raises where none succeeded."""
        if self._keeper.loaded is None:
            raise while_away(self._keeper.last, f"the worker of {self.path}")
        return self._keeper.loaded.signature

    def warm(self) -> Arrays | None:
        """Return the answer to the warm-up of the last load."""
        return None if self._keeper.loaded is None else self._keeper.loaded.warm

    def check_with(self, check: LoadCheck) -> None:
        """Hold later loads to it; the worker of one that fails is ended."""
        self._keeper.check = check

    def arm(self, strike: Strike | None) -> None:
        """Arm one strike, or disarm."""
        self._armed.set(strike)

    def facts(self) -> LaneFacts:
        """Return state and figures; the resident bytes are at most a second old."""
        return self._keeper.facts()

    def kill(self) -> None:
        """Kill the worker, as a crash would; the next one is started in the background."""
        self._keeper.kill()

    def close(self) -> None:
        """Kill the worker and end the keeper; waits a second at most."""
        self._keeper.close()
