"""Charts of the page on speed, as SVG files, made from the newest runs in bench/results."""

from collections.abc import Sequence
from html import escape
from math import floor, log10
from pathlib import Path

WIDTH, LABEL, RIGHT = 760, 250, 90  # pixels: the whole chart, room for labels, room for values
ROW, BAR, TOP = 34, 12, 46
OURS, CEILING, TEXT, GRID = "#2f6fab", "#b9c4cf", "#24292f", "#e3e7eb"


def paired_bars(title: str, unit: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """A chart with two bars for each row (label, ours, ceiling), all on one linear scale."""
    most = max((max(ours, top) for _, ours, top in rows), default=1) or 1
    height = TOP + ROW * len(rows) + 16
    parts = [_text(12, 20, title, weight="bold"), _text(WIDTH - 12, 20, unit, anchor="end")]
    parts += [_box(LABEL, 30, OURS), _text(LABEL + 16, 40, "Moteloom"), _box(LABEL + 96, 30, CEILING)]
    parts += [_text(LABEL + 112, 40, "ceiling: hand-written for this one query")]
    for number, (label, ours, top) in enumerate(rows):
        y = TOP + ROW * number
        parts.append(_text(LABEL - 8, y + 18, label, anchor="end"))
        for offset, value, colour in ((4, ours, OURS), (4 + BAR, top, CEILING)):
            length = (WIDTH - LABEL - RIGHT) * value / most
            parts.append(
                f'<rect x="{LABEL}" y="{y + offset}" width="{length:.1f}" height="{BAR - 1}" fill="{colour}"/>'
            )
            parts.append(_text(LABEL + length + 6, y + offset + 10, short(value), size=11))
    return _page(height, parts)


def log_lines(title: str, unit: str, points: Sequence[str], series: Sequence[tuple[str, str, Sequence[float]]]) -> str:
    """A chart with a line for each series (name, colour, value at each point), on a logarithmic scale in decades."""
    height, bottom = 300, 250
    values = [value for _, _, found in series for value in found]
    low, high = floor(log10(min(values))), floor(log10(max(values))) + 1
    parts = [_text(12, 20, title, weight="bold"), _text(WIDTH - 12, 20, unit, anchor="end")]

    def at(index: int, value: float) -> tuple[float, float]:
        x = 90 + (WIDTH - 200) * index / max(1, len(points) - 1)
        return x, bottom - (bottom - TOP) * (log10(value) - low) / (high - low)

    for decade in range(low, high + 1):
        _, y = at(0, 10.0**decade)
        parts.append(f'<line x1="90" x2="{WIDTH - 110}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>')
        parts.append(_text(82, y + 4, short(10.0**decade), anchor="end", size=11))
    for index, point in enumerate(points):
        parts.append(_text(at(index, 10.0**low)[0], bottom + 18, point, anchor="middle", size=11))
    for name, colour, found in series:
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(index, value) for index, value in enumerate(found)))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = at(len(found) - 1, found[-1])
        parts.append(_text(x + 8, y + 4, name, size=11))
    return _page(height, parts)


def short(number: float) -> str:
    """A number in three digits, with k or M."""
    for size, name in ((1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{name}"
    return f"{number:.3g}"


def write(path: Path, chart: str) -> None:
    """Write a chart; its folder is made if need be."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(chart)


def _box(x: float, y: float, colour: str) -> str:
    return f'<rect x="{x}" y="{y}" width="11" height="11" fill="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{TEXT}">{escape(text)}</text>'
    )


def _page(height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>', *parts, "</svg>"]) + "\n"
