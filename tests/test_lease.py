"""One night at a time."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.exc import SQLAlchemyError

from crashpath.ingest.lease import Lease, holder_of, machine
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.store_errors import LeaseHeld, LeaseLost
from crashpath.ingest.tables import Lease as Row

HOLD = """
import sys, time
from crashpath.ingest.lease import Lease
from crashpath.ingest.store import open_store
with open_store(sys.argv[1]) as store, Lease(store, ttl=float(sys.argv[2])):
    print("held", flush=True)
    time.sleep(float(sys.argv[3]))
"""


def _hold(store: Store, ttl: float, seconds: float) -> subprocess.Popen[str]:
    url = store.engine.url.render_as_string(hide_password=False)
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, url, str(ttl), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_second_night_is_told_who_holds(any_store: Store) -> None:
    """While another process holds the lease, one sentence names it and since when; afterwards the lease is free."""
    child = _hold(any_store, 60, 60)
    with pytest.raises(LeaseHeld, match=rf"pid {child.pid}, since 20\d\d-\d\d-\d\d .* UTC") as caught, Lease(any_store):
        pass
    assert "--wait" in caught.value.advice
    with any_store.read() as session:
        assert f"pid {child.pid}" in str(holder_of(session))
    child.kill()
    child.wait()
    with Lease(any_store):
        pass
    with any_store.read() as session:
        assert holder_of(session) is None


def test_of_nights_that_begin_at_once_one_holds(any_store: Store) -> None:
    """Several that find the lease free, or its holder gone, at the same moment: one begins, the others are told."""
    url = any_store.engine.url.render_as_string(hide_password=False)
    rounds, several = 12, 4
    together = threading.Barrier(several, timeout=60)
    outcomes: list[str] = []

    def begin() -> None:
        with open_store(url) as store:
            for number in range(rounds):
                together.wait()
                try:
                    lease = Lease(store, name=f"night{number}").__enter__()
                except LeaseHeld:
                    outcomes.append("told")
                except SQLAlchemyError as error:
                    outcomes.append(repr(error))
                else:
                    together.wait()
                    lease.__exit__(None, None, None)
                    outcomes.append("held")
                    continue
                together.wait()

    # Half of the names are those of a holder that is gone.
    for number in range(0, rounds, 2):
        with any_store.write() as session:
            long_ago = datetime(2026, 1, 1, tzinfo=UTC)
            session.add(
                Row(
                    name=f"night{number}", host="elsewhere", pid=1, born=0.0, token="gone", acquired_at=long_ago,
                    heartbeat_at=long_ago, expires_at=long_ago,
                )
            )  # fmt: skip
    threads = [threading.Thread(target=begin) for _ in range(several)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(outcomes) == {"held": rounds, "told": rounds * (several - 1)}


def test_waiting(store: Store) -> None:
    """With ``wait`` the second night begins when the first one ends."""
    child = _hold(store, 60, 0.3)
    with Lease(store, wait=60):
        assert child.wait(timeout=30) == 0


def test_killed_holder_is_taken_over_at_once(store: Store) -> None:
    """A holder of this machine that was killed does not make the next night wait for its lease to run out."""
    child = _hold(store, 3600, 60)
    child.send_signal(signal.SIGKILL)
    child.wait()
    with Lease(store):
        pass


def test_lease_of_another_machine_runs_out(store: Store) -> None:
    """Of another machine's holder only the time tells: held until it is over, then taken."""
    now = datetime(2026, 2, 1, tzinfo=UTC)
    with store.write() as session:
        session.add(
            Row(
                name="night", host="elsewhere", pid=1, born=0.0, token="x", acquired_at=now, heartbeat_at=now,
                expires_at=now + timedelta(seconds=60),
            )
        )  # fmt: skip
    with pytest.raises(LeaseHeld, match="elsewhere pid 1"), Lease(store, clock=lambda: now + timedelta(seconds=59)):
        pass
    with Lease(store, clock=lambda: now + timedelta(seconds=61)):
        pass


def _held_by(store: Store, now: datetime, **other: object) -> None:
    """Put a lease into the store as a process of this machine that is gone would have left it, but for ``other``."""
    row = {"host": f"{socket.gethostname()} {machine()}", "pid": 2**22 + 1, "born": 1.0} | other  # past the largest id
    with store.write() as session:
        session.add(
            Row(name="night", token="x", acquired_at=now, heartbeat_at=now, expires_at=now + timedelta(hours=1), **row)
        )


@pytest.mark.parametrize("host", [socket.gethostname(), f"{socket.gethostname()} {uuid.uuid4()} pid:[4026531836]"])
def test_host_name_and_pid_alone_free_no_lease(store: Store, host: str) -> None:
    """A holder of the same host name, but of another boot or container, may be alive though its id is not seen here:
    only the end of its heartbeat frees its lease."""
    now = datetime(2026, 2, 1, tzinfo=UTC)
    _held_by(store, now, host=host)
    with pytest.raises(LeaseHeld, match="Another night"), Lease(store, clock=lambda: now):
        pass
    with Lease(store, clock=lambda: now + timedelta(hours=2)):
        pass


def test_gone_holder_is_told_by_start_time(store: Store) -> None:
    """On this boot of this machine a holder is gone when its id is free, or is that of a process that began later."""
    now = datetime(2026, 2, 1, tzinfo=UTC)
    _held_by(store, now)
    with Lease(store, clock=lambda: now):
        pass
    _held_by(store, now, pid=os.getpid(), born=1.0)
    with Lease(store, clock=lambda: now):
        pass


def test_running_holder_is_not_gone(store: Store) -> None:
    """A holder that runs keeps its lease, and stays known by one host name in what is said of it."""
    child = _hold(store, 3600, 60)
    try:
        with pytest.raises(LeaseHeld, match=rf": {re.escape(socket.gethostname())} pid {child.pid},"), Lease(store):
            pass
    finally:
        child.kill()
        child.wait()


def test_heartbeat_keeps_a_long_night(store: Store) -> None:
    """Beats move the lease's end forward: it is held past the end that it began with."""
    with Lease(store, ttl=0.2, beat=0.02):
        with store.read() as session:
            first = session.get_one(Row, "night").expires_at
        deadline = time.monotonic() + 30
        last = first
        while last == first and time.monotonic() < deadline:
            time.sleep(0.02)
            with store.read() as session:
                last = session.get_one(Row, "night").expires_at
    assert last > first


def test_fence(store: Store) -> None:
    """A night that stood still while another took over may not write any more."""
    old = datetime(2026, 2, 1, tzinfo=UTC)
    with Lease(store, beat=3600, clock=lambda: old) as first:
        with store.write() as session:
            first.fence(session)
            session.get_one(Row, "night").host = "elsewhere"  # as if this process were on another machine
        with Lease(store), pytest.raises(LeaseLost, match="lost its lease"), store.write() as session:
            first.fence(session)
