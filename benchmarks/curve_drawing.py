"""A plain SVG of seconds over records, both on logarithmic axes, with each line named at its end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 190, 40, 52
COLOURS = ("#2a5d9f", "#c2571a", "#3b7d4f")
APART = 16
"""Names at the ends of lines stand at least so far from each other."""


class _Axis:
    """Maps values of whole decades onto pixels."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self._start + share * (self._end - self._start)

    @property
    def decades(self) -> Sequence[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def drawing(records: Sequence[int], seconds: Mapping[str, Sequence[float]]) -> str:
    """Return the SVG; ``seconds`` has a value for each of ``records``, by the name of the line."""
    drawn = {name: [max(value, 0.01) for value in values] for name, values in seconds.items()}
    x = _Axis([float(n) for n in records], LEFT, WIDTH - RIGHT)
    y = _Axis([value for values in drawn.values() for value in values], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" font-family="sans-serif" font-size="12" fill="#333">',
        "<title>Seconds of a night over its records, volume grown by repetition</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="14">Processor seconds over records, volume grown by repetition</text>',
        *_grid(x, y),
        *_lines(records, drawn, x, y),
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _grid(x: _Axis, y: _Axis) -> list[str]:
    out = []
    for value in x.decades:
        at = x.at(value)
        out.append(f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value:,.0f}</text>')
    for value in y.decades:
        at = y.at(value)
        out.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{value:g} s</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">records</text>')
    return out


def _lines(records: Sequence[int], drawn: Mapping[str, Sequence[float]], x: _Axis, y: _Axis) -> list[str]:
    out = []
    name_at: float | None = None
    ends = sorted(zip(drawn, COLOURS, strict=False), key=lambda one: y.at(drawn[one[0]][-1]))
    for name, colour in ends:
        points = [(x.at(n), y.at(value)) for n, value in zip(records, drawn[name], strict=True)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in points]
        end_x, end_y = points[-1]
        name_at = end_y if name_at is None else max(end_y, name_at + APART)
        words = f"{escape(name)}, {drawn[name][-1]:,.0f} s"
        out.append(f'<text x="{end_x + 10:.1f}" y="{name_at + 4:.1f}" fill="{colour}">{words}</text>')
    return out
