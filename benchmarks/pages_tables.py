"""The tables that ``pages`` prints. A ``*`` stands behind what misses its target."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pages_beside import Beside
from pages_looks import LOOKS
from pages_memory import Held
from pages_takes import Takes
from tables import table

PICTURE_SECONDS, FILTER_SECONDS = 2.0, 1.0
"""Targets: of a first picture, and of a filter."""


def print_pages(found: Sequence[Takes], load: str) -> None:
    """Print how long pages take until the first picture, and then as a whole."""
    by = {(one.page, one.thing, one.state): one for one in found}
    floor, again = by["bare", "address", "fresh"], by["bare", "address", "warm"]
    print(
        f"\nA page with one picture that reads nothing: {floor.first:.2f} s with a new browser, "
        f"{again.first:.2f} s with one that was there"
    )

    def cell(page: str, thing: str, state: str) -> str:
        one = by.get((page, thing, state))
        return "–" if one is None else _marked(one.first, PICTURE_SECONDS)

    rows = []
    for look in LOOKS:
        states = (("address", "fresh"), ("address", "cold"), ("address", "warm"), ("menu", "cold"), ("menu", "warm"))
        empty = by[look.name, "address", "empty"].first
        times = by[look.name, "address", "cold"].first / empty
        rows.append(
            (look.name, *(cell(look.name, *one) for one in states), f"{empty:.2f}", f"{times:.1f}")
        )  # fmt: skip
    head = ("page", "fresh", "cold", "warm", "menu, cold", "menu, warm", "empty", "cold/empty")
    table(f"Seconds until the first picture ({load})", head, rows)
    whole = []
    for look in LOOKS:
        cold, warm = by[look.name, "address", "cold"], by[look.name, "address", "warm"]
        menu = [by.get((look.name, "menu", state)) for state in ("cold", "warm")]
        told = ("–" if one is None else f"{one.whole:.2f}" for one in menu)
        whole.append(
            (look.name, f"{cold.whole:.2f}", f"{warm.whole:.2f}", *told, f"{cold.server:.2f}", f"{warm.server:.2f}")
        )
    head = ("page", "cold", "warm", "menu, cold", "menu, warm", "server, cold", "warm")
    table("Seconds until the whole page, and of the server's processors", head, whole)


def print_filters(found: tuple[Sequence[Takes], Held], load: str) -> None:
    """Print how long each filter takes, first asked and asked again."""
    takes, memory = found
    by = {(one.page, one.thing, one.state): one for one in takes}
    rows = [
        (f"{one.page}: {one.thing}", _marked(one.whole, FILTER_SECONDS),
         _marked(by[one.page, one.thing, "warm"].whole, FILTER_SECONDS), f"{one.server:.2f}")
        for one in takes if one.state == "cold"
    ]  # fmt: skip
    table(f"Seconds until a filter is there ({load})", ("filter", "first asked", "again", "server, first"), rows)
    print(f"The server's own memory after all of them: {memory.own_mb:.0f} MB")


def print_memory(found: Sequence[Held], load: str) -> None:
    """Print what the server holds."""
    rows = [(one.when, f"{one.own_mb:.0f}", f"{one.resident_mb:.0f}") for one in found]
    table(f"Memory of the server, MB ({load})", ("when", "own (USS)", "resident (RSS)"), rows)


def print_beside(found: Beside, load: str) -> None:
    """Print pages beside a night."""
    rows = []
    for one in found.pages:
        longest = (max(getattr(take, name) for take in one.takes) for name in ("first", "whole"))
        first, whole = (f"{seconds:.2f}" for seconds in longest)
        rows.append((one.page, str(len(one.takes)), f"{one.first:.2f}", first, f"{one.whole:.2f}", whole))
    head = ("page, by its address", "visits", "first", "longest", "whole", "longest")
    table(f"Seconds while a night runs ({load})", head, rows)
    notes = found.notes or (float("nan"),)
    print(
        f"The night took {found.night:.0f} s ({found.ended}), alone {found.night_alone:.0f} s. A note by the command "
        f"line took {median(notes):.2f} s, at most {max(notes):.2f} s ({len(found.notes)} notes), "
        f"without a night {median(found.notes_alone):.2f} s."
    )


def _marked(seconds: float, most: float) -> str:
    return f"{seconds:.2f}{'*' if seconds > most else ' '}"
