"""Slots are never more than there are, and nobody is overtaken."""

from __future__ import annotations

import threading
import time

import pytest

from crashpath.runtime.slots import FairSlots


def test_count() -> None:
    """There are as many slots as were asked for, and one that is given back is there again."""
    slots = FairSlots(2)
    assert [slots.acquire(0) for _ in range(3)] == [True, True, False]
    slots.release()
    assert [slots.acquire(0.01) for _ in range(2)] == [True, False]
    with pytest.raises(ValueError, match="nobody"):
        FairSlots(0)


def test_order() -> None:
    """Whoever waits longest is next, also against one that asks in the moment in which a slot is given back."""
    slots = FairSlots(1)
    assert slots.acquire(0)
    order: list[int] = []

    def wait(number: int) -> None:
        assert slots.acquire(30)
        order.append(number)

    threads = []
    for number in range(3):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        end = time.monotonic() + 30
        while len(slots._line) <= number:
            assert time.monotonic() < end
            time.sleep(0.001)
    for number in range(3):
        slots.release()
        assert not slots.acquire(0), "it went to the one that waits"
        threads[number].join(30)
        assert order == list(range(number + 1))


def test_who_gives_up_leaves_no_gap() -> None:
    """A slot is not given to one that no longer waits."""
    slots = FairSlots(1)
    assert slots.acquire(0)
    assert not slots.acquire(0.01)
    slots.release()
    assert slots.acquire(0)


def test_many() -> None:
    """Under many threads, some of which give up, there are never more inside than slots, and all slots come back."""
    slots = FairSlots(3)
    inside, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal inside, most
        for turn in range(60):
            if not slots.acquire(0.0005 if turn % 3 == 0 else 30):
                continue
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.0001)
            with lock:
                inside -= 1
            slots.release()

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most <= 3
    assert [slots.acquire(0) for _ in range(4)] == [True, True, True, False]
