"""Draws the routing tree of a deployment (SVG): each mote at its position, coloured by its energy."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from math import cos, floor, hypot, log10, sin
from typing import Any, TypeAlias

from innet.deployment import Deployment

Point: TypeAlias = tuple[float, float]
WIDE, MARGIN, LEGEND = 900, 40, 104
LIGHT, DARK = (255, 236, 170), (150, 20, 60)
"""The colours (red, green, blue) of the motes that use least and most energy."""
APART, ROUNDS = 2.2, 60
"""The least distance of two motes in radii, and the most rounds that push overlapping motes apart."""
STYLE = """<style>
  .paper { fill: white } .ink { fill: #222 } .way { stroke: #999 } .gateway { fill: #333 } .scale { stroke: #222 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #181a1f } .ink { fill: #ddd } .way { stroke: #777 } .gateway { fill: #5a6270 } .scale { stroke: #ddd }
    .first { stroke: white }
  }
</style>"""


def draw_map(motes: Mapping[str, Any], deployment: Deployment) -> str:
    """The SVG of the drawing. `motes` is the result of `describe_forecast`."""
    places = {n: site.position for n, site in deployment.motes.items()} | dict(deployment.gateways)
    radius = max(3.0, min(14.0, 0.3 * WIDE / max(1, len(places)) ** 0.5))
    at, high, scale = _on_paper(places, radius)
    at = _apart(at, deployment.gateways, radius)
    use = {each["mote"]: each for each in motes["energy"]}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high + LEGEND}" font-family="sans-serif" '
        f'font-size="{radius:.1f}" text-anchor="middle">',
        STYLE,
        f'<rect class="paper" width="{WIDE}" height="{high + LEGEND}"/>',
    ]
    for mote, each in use.items():
        (x, y), (up, up_y) = at[mote], at[each["parent"]]
        lines.append(f'<line class="way" x1="{x}" y1="{y}" x2="{up}" y2="{up_y}" stroke-width="1.5"/>')
    for number in deployment.gateways:
        x, y = at[number]
        side = 2 * radius
        lines.append(
            f'<rect class="gateway" x="{x - radius:.1f}" y="{y - radius:.1f}" width="{side:.1f}" height="{side:.1f}">'
            f"<title>gateway {number}</title></rect>"
        )
        lines.append(_label(number, x, y, radius, 'fill="white"'))
    joules = [each["joules"] for each in use.values()]
    for mote in sorted(deployment.motes):
        lines += _mote(mote, at[mote], radius, use.get(mote), joules, motes["worst"])
    return "\n".join([*lines, *_legend(motes, use, joules, high, scale), "</svg>"]) + "\n"


def _on_paper(places: Mapping[int, Sequence[float]], radius: float) -> tuple[dict[int, Point], int, float]:
    """The positions on the paper, north at the top; its height; and the units of the paper for each metre."""
    east, north = ([place[axis] for place in places.values()] for axis in (0, 1))
    wide, deep = max(east) - min(east), max(north) - min(north)
    scale = (WIDE - 2 * MARGIN) / (max(wide, deep) or 1.0)
    high = round(deep * scale) + 2 * MARGIN
    left = (WIDE - wide * scale) / 2
    return (
        {
            number: (round(left + (x - min(east)) * scale, 1), round(high - MARGIN - (y - min(north)) * scale, 1))
            for number, (x, y, *_) in places.items()
        },
        high,
        scale,
    )


def _apart(at: Mapping[int, Point], fixed: Collection[int], radius: float) -> dict[int, Point]:
    """The positions, with motes that are close to each other moved apart, so that each is legible."""
    at = dict(at)
    numbers, least = sorted(at), APART * radius
    for _ in range(ROUNDS):
        close = [(a, b) for i, a in enumerate(numbers) for b in numbers[i + 1 :]
                 if abs(at[a][0] - at[b][0]) < least and hypot(at[a][0] - at[b][0], at[a][1] - at[b][1]) < least - 0.2]  # fmt: skip
        for a, b in close:
            (x, y), (u, v) = at[a], at[b]
            far = hypot(u - x, v - y)
            # A mote at the very same position moves in a direction of its own.
            east, north = ((u - x) / far, (v - y) / far) if far else (cos(b), sin(b))
            moving = [n for n in (a, b) if n not in fixed]
            for mote in moving:
                by = (least - far) / len(moving) * (1 if mote == b else -1)
                at[mote] = round(at[mote][0] + by * east, 1), round(at[mote][1] + by * north, 1)
        if not close:
            break
    return at


def _mote(
    number: int, place: Point, radius: float, used: Mapping[str, Any] | None, joules: Sequence[float], worst: int | None
) -> list[str]:
    """A disc: empty without a route to a gateway, with a ring if its battery is the first to be empty."""
    x, y = place
    if used is None:
        text, fill, ink = "no route to a gateway", "none", 'class="ink"'
    else:
        share = _share(used["joules"], joules)
        fill, ink = _colour(share), 'fill="white"' if share > 0.5 else 'fill="black"'
        days = "on the mains" if used["lifetime_days"] is None else f"{used['lifetime_days']:,.1f} days"
        text = f"{used['joules']:.4g} J/h, {days}, level {used['level']}, sends to {used['parent']}"
    ring, width = ('class="first" stroke="black"', 3) if number == worst else ('stroke="#888"', 1)
    return [
        f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" fill="{fill}" {ring} stroke-width="{width}">'
        f"<title>mote {number}: {escape(text)}</title></circle>",
        _label(number, x, y, radius, ink),
    ]


def _label(number: int, x: float, y: float, radius: float, ink: str) -> str:
    return f'<text x="{x}" y="{y + radius / 3:.1f}" {ink}>{number}</text>'


def _share(joules: float, among: Iterable[float]) -> float:
    among = list(among)
    """From 0 for the least energy of all motes to 1 for the most."""
    least, most = min(among), max(among)
    return (joules - least) / (most - least) if most > least else 0.0


def _colour(share: float) -> str:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(LIGHT, DARK, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _legend(
    motes: Mapping[str, Any], use: Mapping[int, Mapping[str, Any]], joules: Sequence[float], high: int, scale: float
) -> list[str]:
    """The scale of colours with its ends, the meaning of the marks, and a scale of lengths."""
    steps = 40
    wide = (WIDE - 2 * MARGIN) / steps
    lines = [
        f'<rect x="{MARGIN + step * wide:.1f}" y="{high + 24}" width="{wide + 0.5:.1f}" height="12" fill="{_colour(step / (steps - 1))}"/>'
        for step in range(steps)
    ]
    worst = motes["worst"]
    first = [] if worst is None else [f"ring: mote {worst}, empty first, after {use[worst]['lifetime_days']:,.0f} days"]
    marks = ["square: gateway", *first, *(["empty: no route to a gateway"] if motes["unreached"] else [])]
    metres = _round_figure(WIDE / 5 / scale)
    long = metres * scale
    begin = WIDE - MARGIN - long
    return [
        *lines,
        _text(MARGIN, high + 16, "start", f"{motes['deployment']}: energy of each mote, predicted"),
        _text(MARGIN, high + 54, "start", f"{min(joules):.3g} J/h"),
        _text(WIDE - MARGIN, high + 54, "end", f"{max(joules):.3g} J/h"),
        _text(MARGIN, high + 86, "start", "; ".join(marks)),
        f'<path class="scale" d="M{begin:.1f} {high + 78} v6 h{long:.1f} v-6" fill="none" stroke-width="1.5"/>',
        _text(begin + long / 2, high + 74, "middle", f"{metres:g} m"),
    ]


def _text(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text class="ink" x="{x:.1f}" y="{y}" font-size="14" text-anchor="{anchor}">{escape(text)}</text>'


def _round_figure(most: float) -> float:
    """The largest number of the form 1, 2 or 5 times a power of ten that is at most `most`."""
    power = 10.0 ** floor(log10(most))
    return max(times * power for times in (1, 2, 5) if times * power <= most)
