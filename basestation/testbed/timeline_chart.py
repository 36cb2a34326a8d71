"""Draws coverage, energy and answers of trials over simulated time (SVG), a panel for each."""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

from basestation.testbed.timeline import Timeline

WIDE, LEFT, RIGHT, TOP, PANEL, GAP = 760, 70, 150, 40, 150, 46
POINTS = 300
"""A line has at most so many points; each is the mean of its neighbours."""
COLOURS = ("#2f6fab", "#c8553d", "#3a7d44", "#8e5ea2", "#b8860b", "#4a4e69")
UNITS = (("days", 86_400_000, 2), ("hours", 3_600_000, 2), ("minutes", 60_000, 2), ("seconds", 1_000, 0))
"""Units of time, each with its milliseconds, and the least number of them that it is used for."""
STYLE = """<style>
  .paper { fill: white } .ink { fill: #222 } .grid { stroke: #ddd } .frame { stroke: #888; fill: none }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #181a1f } .ink { fill: #ddd } .grid { stroke: #333 } .frame { stroke: #777 }
  }
</style>"""

Line = tuple[str, Sequence[tuple[float, float]]]
"""A name and the points of a line: (ms, value)."""


def draw_timelines(title: str, timelines: Sequence[Timeline]) -> str:
    """The SVG of the timelines of one scenario, one for each seed; each query has one colour."""
    coverage: list[Line] = []
    energy: list[Line] = []
    answers: list[Line] = []
    names = list(dict.fromkeys(name for each in timelines for name in (*each.coverage, *each.answers)))
    for each in timelines:
        coverage += [(name, _thin(points)) for name, points in each.coverage.items()]
        energy.append(("all motes", [*zip(each.ms, each.joules, strict=True)]))
        answers += [(name, [*zip(each.ms, counts, strict=True)]) for name, counts in each.answers.items()]
    last = max((each.ms[-1] for each in timelines if each.ms), default=1)
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(names)}
    panels: list[tuple[str, Sequence[Line], float]] = [
        ("coverage of each window", coverage, 1.0), ("joules used", energy, 0.0), ("answers", answers, 0.0),
    ]  # fmt: skip
    high = TOP + len(panels) * (PANEL + GAP) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high}" font-family="sans-serif" font-size="11">',
        STYLE,
        f'<rect class="paper" width="{WIDE}" height="{high}"/>',
        _text(LEFT, 20, title, size=14),
    ]
    for at, (head, found, most) in enumerate(panels):
        lines += _panel(TOP + at * (PANEL + GAP) + 10, head, found, most, last, colours)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(
    top: float, head: str, found: Sequence[Line], most: float, last: float, colours: Mapping[str, str]
) -> list[str]:
    most = max([most, *(value for _, points in found for _, value in points)]) or 1.0
    unit, size = next((name, ms) for name, ms, least in UNITS if last >= least * ms)
    wide, bottom = WIDE - LEFT - RIGHT, top + PANEL
    lines = [_text(LEFT, top - 6, head)]
    for value in _ticks(most):
        y = bottom - PANEL * value / most
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + wide}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(_text(LEFT - 6, y + 4, f"{value:,.10g}", "end"))
    for value in _ticks(last / size):
        x = LEFT + wide * value * size / last
        lines.append(_text(x, bottom + 14, f"{value:,.10g}", "middle"))
    lines.append(_text(LEFT + wide + 8, bottom + 14, unit))
    lines.append(f'<rect class="frame" x="{LEFT}" y="{top:.1f}" width="{wide}" height="{PANEL}"/>')
    shown: set[str] = set()
    for name, points in found:
        colour = colours.get(name, COLOURS[0])
        places = " ".join(f"{LEFT + wide * ms / last:.1f},{bottom - PANEL * value / most:.1f}" for ms, value in points)
        lines.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-opacity="0.8">'
                     f"<title>{escape(name)}</title></polyline>")  # fmt: skip
        if name not in shown and len(shown) * 16 < PANEL:
            y = top + 12 + 16 * len(shown)
            lines.append(f'<rect x="{LEFT + wide + 10}" y="{y - 8:.1f}" width="9" height="9" fill="{colour}"/>')
            lines.append(_text(LEFT + wide + 24, y, name if len(name) <= 18 else f"{name[:17]}…"))
            shown.add(name)
    return lines


def _thin(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most POINTS points, each the mean of as many neighbours."""
    size = ceil(len(points) / POINTS) or 1
    parts = (points[at : at + size] for at in range(0, len(points), size))
    return [(sum(ms for ms, _ in part) / len(part), sum(value for _, value in part) / len(part)) for part in parts]


def _ticks(most: float) -> list[float]:
    """Round numbers from 0 to `most`, at most six."""
    rough = most / 5
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [step * at for at in range(floor(most / step + 1e-9) + 1)]


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 11) -> str:
    return f'<text class="ink" x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
