"""Line charts: panels of lines over time, one below the other, as SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

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


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines under a heading, on an axis that reaches at least from `low` to `high`."""

    heading: str
    lines: Sequence[Line]
    low: float = 0.0
    high: float = 0.0


def draw_panels(title: str, panels: Sequence[Panel], last: float, names: Sequence[str]) -> str:
    """The SVG of panels from 0 to `last` ms. Lines of one name have one colour."""
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(names)}
    high = TOP + len(panels) * (PANEL + GAP) + 10
    lines = open_picture(WIDE, high, title)
    for at, panel in enumerate(panels):
        lines += _panel(TOP + at * (PANEL + GAP) + 10, panel, last, colours)
    return "\n".join([*lines, "</svg>"]) + "\n"


def open_picture(wide: float, high: float, title: str) -> list[str]:
    """The first lines of an SVG, with a heading."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" font-family="sans-serif" font-size="11">',
        STYLE,
        f'<rect class="paper" width="{wide:g}" height="{high:g}"/>',
        draw_text(LEFT, 20, title, size=14),
    ]


def draw_text(x: float, y: float, text: str, anchor: str = "start", size: int = 11) -> str:
    return f'<text class="ink" x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'


def thin(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most POINTS points, each the mean of as many neighbours."""
    size = ceil(len(points) / POINTS) or 1
    parts = (points[at : at + size] for at in range(0, len(points), size))
    return [(sum(ms for ms, _ in part) / len(part), sum(value for _, value in part) / len(part)) for part in parts]


def choose_ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`, at most six."""
    rough = (high - low) / 5
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [step * at for at in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _panel(top: float, panel: Panel, last: float, colours: Mapping[str, str]) -> list[str]:
    values = [value for _, points in panel.lines for _, value in points]
    low, high = min([panel.low, *values]), max([panel.high, *values])
    high = high if high > low else low + 1.0
    unit, size = next((name, ms) for name, ms, least in UNITS if last >= least * ms)
    wide, bottom = WIDE - LEFT - RIGHT, top + PANEL

    def height(value: float) -> float:
        return bottom - PANEL * (value - low) / (high - low)

    lines = [draw_text(LEFT, top - 6, panel.heading)]
    for value in choose_ticks(low, high):
        y = height(value)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + wide}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(draw_text(LEFT - 6, y + 4, f"{value:,.10g}", "end"))
    for value in choose_ticks(0, last / size):
        x = LEFT + wide * value * size / last
        lines.append(draw_text(x, bottom + 14, f"{value:,.10g}", "middle"))
    lines.append(draw_text(LEFT + wide + 8, bottom + 14, unit))
    lines.append(f'<rect class="frame" x="{LEFT}" y="{top:.1f}" width="{wide}" height="{PANEL}"/>')
    shown: set[str] = set()
    for name, points in panel.lines:
        colour = colours.get(name, COLOURS[0])
        places = " ".join(f"{LEFT + wide * ms / last:.1f},{height(value):.1f}" for ms, value in points)
        lines.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-opacity="0.8">'
                     f"<title>{escape(name)}</title></polyline>")  # fmt: skip
        if name not in shown and len(shown) * 16 < PANEL:
            y = top + 12 + 16 * len(shown)
            lines.append(f'<rect x="{LEFT + wide + 10}" y="{y - 8:.1f}" width="9" height="9" fill="{colour}"/>')
            lines.append(draw_text(LEFT + wide + 24, y, name if len(name) <= 18 else f"{name[:17]}…"))
            shown.add(name)
    return lines
