"""One night at a time: a lease row with a heartbeat.

A holder beats in a thread of its own, with its own connection. A lease is free when it was given back, when its time
is over, or when its holder was a process that this one could see and that is no longer there (so a killed night does
not make the next one wait). Host name and process id alone do not say that: containers share both. The holder must have
been in this boot of this machine and in this process namespace, and its id must be free or have been given to a process
that started later. Times are the machine's UTC clock: nights of several machines need clocks that agree to a few
seconds.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from types import TracebackType

import psutil
from sqlalchemy import delete, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import LeaseHeld, LeaseLost, StoreError
from crashpath.ingest.tables import Lease as Row
from crashpath.ingest.tables import Project

#: Seconds that a lease lives without a heartbeat, and between heartbeats.
TTL = 60.0
BEAT = 10.0
_POLL = 0.25
_PROC = Path("/proc")
#: Fields of ``/proc/PID/stat`` behind the name: the state, and the start in clock ticks since the boot.
_STATE, _START = 0, 19

_log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)


class Lease:
    """Context manager: take the lease or raise ``LeaseHeld``; beat until the end; give it back.

    ``wait`` is how many seconds to wait for another holder before giving up.
    """

    def __init__(
        self,
        store: Store,
        *,
        name: str = "night",
        wait: float = 0.0,
        ttl: float = TTL,
        beat: float = BEAT,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._store = store
        self._name = name
        self._wait = wait
        self._ttl = timedelta(seconds=ttl)
        self._beat = beat
        self._clock = clock
        self._token = secrets.token_hex(16)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Lease:
        deadline = time.monotonic() + self._wait
        while True:
            try:
                self._take()
                break
            except LeaseHeld:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(min(_POLL, max(0.0, deadline - time.monotonic())))
        self._thread = threading.Thread(target=self._beat_on, name="crashpath-lease", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self._store.write() as session:
            session.execute(delete(Row).where(Row.name == self._name, Row.token == self._token))

    def fence(self, session: Session) -> None:
        """Raise ``LeaseLost`` unless this lease is held, inside the caller's transaction: a night that was stopped for
        longer than its lease must not write beside the one that took over."""
        row = session.get(Row, self._name, populate_existing=True)
        if row is None or row.token != self._token:
            holder = "nobody" if row is None else _holder(row)
            raise LeaseLost(
                f"This night lost its lease to {holder} while it stood still.", "Nothing is lost: run it again later."
            )

    def _take(self) -> None:
        with self._store.write() as session:
            self._refuse_held(session.get(Row, self._name), self._clock())
            # A server lets others in beside us: of several that found it free or gone only one may go on.
            session.expunge_all()
            session.execute(select(Project.id).with_for_update()).all()
            row, now = session.get(Row, self._name), self._clock()
            self._refuse_held(row, now)
            if row is not None:
                _log.warning("taking over the lease of %s, which is gone", _holder(row))
                session.delete(row)
                session.flush()
            session.add(
                Row(
                    name=self._name,
                    host=f"{socket.gethostname()} {machine()}",
                    pid=os.getpid(),
                    born=_start(os.getpid()),
                    token=self._token,
                    acquired_at=now,
                    heartbeat_at=now,
                    expires_at=now + self._ttl,
                )
            )

    def _refuse_held(self, row: Row | None, now: datetime) -> None:
        """Raise ``LeaseHeld`` where a holder is there and may be at work."""
        if row is None or row.expires_at <= now or _is_gone(row):
            return
        silent = max(0.0, (now - row.heartbeat_at).total_seconds())
        raise LeaseHeld(
            f"Another night is writing to this store: {_holder(row)}, since "
            f"{row.acquired_at:%Y-%m-%d %H:%M:%S} UTC (last heard from {silent:.0f} s ago).",
            "Run this one when it is done, or let it wait with --wait SECONDS.",
        )

    def _beat_on(self) -> None:
        while not self._stop.wait(self._beat):
            try:
                with self._store.write() as session:
                    now = self._clock()
                    mine = update(Row).where(Row.name == self._name, Row.token == self._token)
                    session.execute(mine.values(heartbeat_at=now, expires_at=now + self._ttl))
            except (StoreError, DBAPIError) as error:  # the next beat may get through; the fence tells when not
                _log.warning("heartbeat missed: %s", error)


def holder_of(session: Session, name: str = "night") -> str | None:
    """Return who holds the lease, in words, or ``None``."""
    row = session.scalar(select(Row).where(Row.name == name))
    return None if row is None else _holder(row)


@dataclass(frozen=True, slots=True)
class Held:
    """Who holds a lease, since when, and when it was last heard of (UTC). ``alive``: it may be at work.

    ``gone``: its process has ended, which is known only where it would be seen from here.
    """

    holder: str
    since: datetime
    heard: datetime
    alive: bool
    gone: bool


def held(session: Session, now: datetime, name: str = "night") -> Held | None:
    """Return who holds the lease; ``None`` where nobody does."""
    row = session.scalar(select(Row).where(Row.name == name))
    if row is None:
        return None
    gone = _is_gone(row)
    return Held(_holder(row), row.acquired_at, row.heartbeat_at, row.expires_at > now and not gone, gone)


def _holder(row: Row) -> str:
    return f"{row.host.split(' ')[0]} pid {row.pid}"


@lru_cache(maxsize=1)
def machine() -> str:
    """Return what two processes share only when each can see whether the other is there: this boot of this machine,
    and the process namespace, which differs between containers of one machine."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:  # not Linux
        return f"{psutil.boot_time():.0f}"


def _is_gone(row: Row) -> bool:
    """Whether the holder was a process that would be seen from here and has ended (its id may be another's now)."""
    if row.host != f"{socket.gethostname()} {machine()}":
        return False
    try:
        return _start(row.pid) != row.born
    except psutil.NoSuchProcess:
        return True
    except (OSError, psutil.AccessDenied):
        return False


def _start(pid: int) -> float:
    """Return when a process began: in ticks since the boot, which no change of the clock moves, or where there is no
    ``/proc`` in seconds since 1970. Raises ``psutil.NoSuchProcess``, also for one that has ended and was not reaped."""
    if not _PROC.joinpath("self", "stat").exists():
        return float(psutil.Process(pid).create_time())
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError) as error:
        raise psutil.NoSuchProcess(pid) from error
    if fields[_STATE] in "ZX":
        raise psutil.NoSuchProcess(pid)
    return float(fields[_START])
