"""Pictures as SVG text, without a library and without colours of a page's own: they follow the text's colour.

Each has a title and a description for those who do not see it, and each mark says its figures when it is pointed at.
``width`` is in pixels of the page, so that letters stay 12 pixels high on a telephone: draw for each width anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from rich.cells import cell_len

from crashpath.dashboard.figures import percent
from crashpath.dashboard.svg_axes import Scale, nice_top, slots
from crashpath.dashboard.svg_parts import GRID, LETTER, LIMIT, Words, anchor_of, fit, line, safe, text, whole

HEADLINE_COLOURS = {
    "OOM": "#0072B2",
    "load timeout": "#E69F00",
    "tokenizer": "#009E73",
    "ONNX shape inference": "#CC79A7",
    "other": "#999999",
}
"""As in ``pictures``, which would load Plotly (Okabe and Ito, 2008)."""
NARROW = 520  # below this width names stand above their bars
_LEAST = 1e-9  # where an axis ends at the least
_ROW, _TALL_ROW = 24, 40


@dataclass(frozen=True, slots=True)
class Point:
    """One day: ``value`` is ``None`` where there is no rate, and then ``count`` failures are shown as a number."""

    day: date
    value: float | None
    low: float | None
    high: float | None
    count: int
    words: str


@dataclass(frozen=True, slots=True)
class Series:
    """A line of days. ``colour`` is a CSS colour, such as ``var(--release, #332288)``."""

    name: str
    colour: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Whisker:
    """A rate with its interval; ``before`` is the baseline's rate, if there is one."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    before: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A share; ``before`` is a second, hatched bar above it. ``words`` are written at its end."""

    name: str
    colour: str
    share: float | None
    words: str
    before: float | None = None
    words_before: str = ""


def rates_over_days(series: Sequence[Series], limit: float | None, words: Words, width: int) -> str:
    """Return lines of rates with bands of intervals, and below them the counts of days without a rate; or nothing."""
    points = [point for one in series for point in one.points]
    known = [point for point in points if point.value is not None]
    if not points:
        return ""
    top, left, plot, right = 30 if width >= NARROW else 30 + 16 * len(series), 52, 200, width - 12
    place, gaps = slots([point.day for point in points])
    most = max(place.values())
    x = Scale(0, max(most, 1), left + 8, right - 8)
    y = Scale(
        0, axis_top([point.value or 0 for point in known], [point.high or 0 for point in known], limit), top + plot, top
    )
    height = top + plot + 24 + 15 * len(series) + 6
    body = [*_legend(series, width), *_levels(y, left, right)]
    for number, one in enumerate(series):
        xs = {point.day: x.at(place[point.day]) for point in one.points}
        body += _line(one, xs, y, number)
        body += _untold(one, xs, top + plot + 38 + 15 * number, _dash(number))
    body += [text(x.at(gap), top + plot + 19, "⋯", "middle") for gap in gaps]
    body += _dates(place, x, top + plot + 19, gaps)
    body += _limit_across(limit, y, left, right)
    return whole(words, width, height, body)


def whiskers(rows: Sequence[Whisker], limit: float | None, words: Words, width: int) -> str:
    """Return a row for each rate with its interval, the baseline's as a bar across, the limit as a line; or nothing."""
    if not rows:
        return ""
    name, row = (int(width * 0.34), _ROW) if width >= NARROW else (0, _TALL_ROW)
    values = [one for row in rows for one in (row.value, row.before) if one is not None]
    left, top = name + 14, 26
    bottom = top + row * len(rows)
    x = Scale(0, axis_top(values, [row.high or 0 for row in rows], limit), left, width - 24)
    body = [*_columns(x, top, bottom)]
    if limit is not None:
        at = x.at(limit)
        body.append(line((at, top - 6), (at, bottom), LIMIT, "limit"))
        body.append(text(at, top - 10, f"limit {percent(limit)}", anchor_of(at, width)))
    for i, one in enumerate(rows):
        middle = top + row * i + (row - 10 if not name else row / 2)
        body += _named(one.name, name, top + row * i, middle, width)
        body += _whisker(one, x, middle)
    return whole(words, width, bottom + 24, body)


def bars(rows: Sequence[Bar], words: Words, width: int) -> str:
    """Return bars of shares from 0 to 100 %, each with its figure beside it; or nothing."""
    if not rows:
        return ""
    pairs = any(one.words_before for one in rows)
    name, row = (int(width * 0.3), 32 if pairs else _ROW) if width >= NARROW else (0, 50 if pairs else _TALL_ROW)
    left, right = name + 10, width - 10 - LETTER * max(len(one.words) for one in rows) - 8
    x = Scale(0, 1, left, max(right, left + 40))
    body = [f"<defs>{_hatch(words.id)}</defs>"]
    for i, one in enumerate(rows):
        top = row * i + (18 if not name else 2)
        body += _named(one.name, name, row * i, top + (13 if pairs else 8), width)
        if pairs:
            body += _bar(one.before, one.words_before, x, (top, 11), one.colour, f"url(#{words.id}-h)", "before")
            top += 14
        body += _bar(one.share, one.words, x, (top, 11), one.colour, "", "now")
    return whole(words, width, row * len(rows) + 8, body)


def axis_top(values: Sequence[float], highs: Sequence[float], limit: float | None) -> float:
    """Return where an axis ends: above all rates and the limit, and above the intervals unless they dwarf the rates."""
    least = max(1.15 * max(values, default=0), 1.25 * (limit or 0))
    wide = max(highs, default=0)
    if not least or wide <= 2.5 * least:
        least = max(least, wide)
    return nice_top(max(min(1.0, least), _LEAST)) if least else 1.0


def _levels(y: Scale, left: float, right: float) -> Iterator[str]:
    for value in y.ticks(5):
        at = y.at(value)
        yield line((left, at), (right, at), GRID)
        yield text(left - 6, at + 4, y.label(value), "end", "tick-y")


def _columns(x: Scale, top: float, bottom: float) -> Iterator[str]:
    for value in x.ticks(4):
        at = x.at(value)
        yield line((at, top), (at, bottom), GRID)
        yield text(at, bottom + 16, x.label(value), "middle", "tick-x")


def _legend(series: Sequence[Series], width: int) -> Iterator[str]:
    left, top = 52.0, 14
    for number, one in enumerate(series):
        dash = _dash(number)
        yield line((left, top - 4), (left + 26, top - 4), f'stroke="{one.colour}" stroke-width="2"{dash}')
        name = fit(one.name, (width - 90) / (len(series) if width >= NARROW else 1))
        yield text(left + 32, top, name)
        if width >= NARROW:
            left += 32 + LETTER * cell_len(name) + 28
        else:
            top += 16


def _dash(number: int) -> str:
    return ' stroke-dasharray="5 4"' if number else ""


def _line(series: Series, xs: dict[date, float], y: Scale, number: int) -> Iterator[str]:
    dash = _dash(number)
    for run in runs(series.points):
        over = [f"{xs[point.day]:.1f},{y.at(point.high or 0):.1f}" for point in run]
        under = [f"{xs[point.day]:.1f},{y.at(point.low or 0):.1f}" for point in reversed(run)]
        if len(run) > 1:
            yield f'<polygon class="band" points="{" ".join(over + under)}" fill="{series.colour}" fill-opacity=".2"/>'
            middle = " ".join(f"{xs[point.day]:.1f},{y.at(point.value or 0):.1f}" for point in run)
            yield f'<polyline points="{middle}" fill="none" stroke="{series.colour}" stroke-width="2"{dash}/>'
        else:
            at, one = xs[run[0].day], run[0]
            yield line((at, y.at(one.high or 0)), (at, y.at(one.low or 0)), f'stroke="{series.colour}"', "band")
        for point in run:
            look = (
                f'fill="{series.colour}"'
                if not number
                else f'class="hollow" stroke="{series.colour}" stroke-width="1.5"'
            )
            yield (
                f'<circle {look} data-day="{point.day}" data-series="{number}" cx="{xs[point.day]:.1f}" '
                f'cy="{y.at(point.value or 0):.1f}" r="3"><title>{safe(point.words)}</title></circle>'
            )


def runs(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Yield days in a row that have a rate: a line does not bridge days of which nothing is known."""
    run: list[Point] = []
    for point in sorted(points, key=lambda one: one.day):
        if run and (point.value is None or point.day - run[-1].day > timedelta(days=1)):
            yield run
            run = []
        if point.value is not None:
            run.append(point)
    if run:
        yield run


def _untold(series: Series, xs: dict[date, float], top: float, dash: str) -> Iterator[str]:
    """Yield the failures of days without a rate: a number where there is room for it, a cross where there is none."""
    free = -math.inf
    if any(point.value is None for point in series.points):
        yield line((14, top - 4), (40, top - 4), f'stroke="{series.colour}" stroke-width="2"{dash}')
    for point in sorted(series.points, key=lambda one: one.day):
        if point.value is not None:
            continue
        at, count = xs[point.day], f"×{point.count:,}"
        half = LETTER * len(count) / 2
        shown = count if at - half > free else "×"
        free = at + (half if shown == count else LETTER / 2) + 3 if shown == count else free
        yield (
            f'<text class="untold" data-day="{point.day}" x="{at:.1f}" y="{top:.1f}" text-anchor="middle" '
            f'font-size="11"><title>{safe(point.words)}</title>{shown}</text>'
        )


def _dates(place: dict[date, float], x: Scale, top: float, gaps: Sequence[float]) -> Iterator[str]:
    free = -math.inf
    taken = [x.at(gap) for gap in gaps]
    for day, slot in sorted(place.items()):
        at = min(max(x.at(slot), 36), x.end - 26)
        if at - 36 < free or any(abs(at - gap) < 44 for gap in taken):
            continue
        free = at + 36 + 14
        yield text(at, top, day.isoformat(), "middle", "tick-x")


def _limit_across(limit: float | None, y: Scale, left: float, right: float) -> Iterator[str]:
    if limit is not None:
        at = y.at(limit)
        yield line((left, at), (right, at), LIMIT, "limit")
        yield text(right, at - 5, f"limit {percent(limit)}", "end")


def _whisker(one: Whisker, x: Scale, middle: float) -> Iterator[str]:
    if one.value is None or one.low is None or one.high is None:
        yield text(x.start + 4, middle + 4, one.words, "start", "untold")
        return
    low, high = x.at(one.low), x.at(one.high)
    yield line((low, middle), (high, middle), 'stroke="currentColor" stroke-width="2"', "band")
    for at in (low,) if one.high > x.high else (low, high):
        yield line((at, middle - 4), (at, middle + 4), 'stroke="currentColor"')
    if one.high > x.high:
        yield text(high + 3, middle + 4, "›")
    if one.before is not None:
        at = x.at(one.before)
        look = 'stroke="var(--baseline, #CC6677)" stroke-width="3"'
        yield line((at, middle - 7), (at, middle + 7), look, "before")
    yield (
        f'<circle class="rate" cx="{x.at(one.value):.1f}" cy="{middle:.1f}" r="4.5" '
        f'fill="var(--release, #332288)"><title>{safe(f"{one.name}: {one.words}")}</title></circle>'
    )


def _bar(
    share: float | None, words: str, x: Scale, box: tuple[float, float], colour: str, over: str, kind: str
) -> Iterator[str]:
    top, height = box
    long = 0.0 if share is None else x.at(share) - x.start
    for fill in filter(None, (colour, over)):
        yield (
            f'<rect class="{kind}" x="{x.start}" y="{top}" width="{long:.1f}" height="{height}" fill="{fill}" '
            f'stroke="currentColor" stroke-width=".5"/>'
        )
    yield text(x.start + long + 5, top + height - 1, words)


def _hatch(id: str) -> str:
    return (
        f'<pattern id="{id}-h" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect class="paper" width="6" height="6" fill="#fff" fill-opacity=".55"/>'
        '<line x1="0" y1="0" x2="0" y2="6" stroke="#000" stroke-width="2"/></pattern>'
    )


def _named(name: str, room: int, top: float, middle: float, width: int) -> Iterator[str]:
    if room:
        yield text(room, middle + 4, fit(name, room), "end", "name")
    else:
        yield text(4, top + 13, fit(name, width - 8), "start", "name")
