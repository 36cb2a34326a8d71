"""Map: the routing tree of a deployment as a drawing (SVG), each mote where it is, in the colour of what it uses."""

from html import escape

WIDE, MARGIN, LEGEND = 900, 40, 70
LIGHT, DARK = (255, 236, 170), (150, 20, 60)
"""The colours of the mote that uses least, and of the one that uses most."""


def drawn(motes, deployment):
    """The text of the drawing. `motes` are what `told_of` says of a placing."""
    places = {n: site.position for n, site in deployment.motes.items()} | dict(deployment.gateways)
    at, high = _on_paper(places)
    use = {each["mote"]: each for each in motes["energy"]}
    radius = max(3.0, min(14.0, 0.3 * WIDE / max(1, len(places)) ** 0.5))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high + LEGEND}" font-family="sans-serif" '
        f'font-size="{radius:.1f}" text-anchor="middle">',
        f'<rect width="{WIDE}" height="{high + LEGEND}" fill="white"/>',
    ]
    for mote, each in use.items():
        (x, y), (up, up_y) = at[mote], at[each["parent"]]
        lines.append(f'<line x1="{x}" y1="{y}" x2="{up}" y2="{up_y}" stroke="#888" stroke-width="1.5"/>')
    for number in deployment.gateways:
        x, y = at[number]
        side = 2 * radius
        lines.append(
            f'<rect x="{x - radius:.1f}" y="{y - radius:.1f}" width="{side:.1f}" height="{side:.1f}" fill="#333"/>'
        )
        lines.append(_label(number, x, y, radius, "white"))
    joules = [each["joules"] for each in use.values()]
    for mote in sorted(deployment.motes):
        lines += _mote(mote, at[mote], radius, use.get(mote), joules, motes["worst"])
    return "\n".join([*lines, *_legend(motes, joules, high), "</svg>"]) + "\n"


def _on_paper(places):
    """Where everybody is on the paper, with north above; and how high it is."""
    east, north = ([place[axis] for place in places.values()] for axis in (0, 1))
    wide, deep = max(east) - min(east), max(north) - min(north)
    scale = (WIDE - 2 * MARGIN) / (max(wide, deep) or 1.0)
    high = round(deep * scale) + 2 * MARGIN
    left = (WIDE - wide * scale) / 2
    return {
        number: (round(left + (x - min(east)) * scale, 1), round(high - MARGIN - (y - min(north)) * scale, 1))
        for number, (x, y, *_) in places.items()
    }, high


def _mote(number, place, radius, used, joules, worst):
    """A disc; one that no way leads from is empty, and the one whose battery is empty first has a ring."""
    x, y = place
    if used is None:
        said, fill, ink = "no way leads to a gateway", "none", "black"
    else:
        share = _share(used["joules"], joules)
        fill, ink = _colour(share), "white" if share > 0.5 else "black"
        days = "on the mains" if used["lifetime_days"] is None else f"{used['lifetime_days']:,.1f} days"
        said = f"{used['joules']:.4g} J/h, {days}, level {used['level']}, sends to {used['parent']}"
    ring = "black" if number == worst else "#888"
    width = 3 if number == worst else 1
    return [
        f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" fill="{fill}" stroke="{ring}" stroke-width="{width}">'
        f"<title>mote {number}: {escape(said)}</title></circle>",
        _label(number, x, y, radius, ink),
    ]


def _label(number, x, y, radius, ink):
    return f'<text x="{x}" y="{y + radius / 3:.1f}" fill="{ink}">{number}</text>'


def _share(joules, among):
    """From 0, as little as anybody uses, to 1, as much."""
    least, most = min(among), max(among)
    return (joules - least) / (most - least) if most > least else 0.0


def _colour(share):
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(LIGHT, DARK, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _legend(motes, joules, high):
    steps = 40
    wide = (WIDE - 2 * MARGIN) / steps
    lines = [
        f'<rect x="{MARGIN + step * wide:.1f}" y="{high}" width="{wide + 0.5:.1f}" height="16" fill="{_colour(step / (steps - 1))}"/>'
        for step in range(steps)
    ]
    worst = "" if motes["worst"] is None else f"; the ring is mote {motes['worst']}, whose battery is empty first"
    said = f"{motes['deployment']}: predicted energy, from {min(joules):.4g} to {max(joules):.4g} J/h{worst}"
    return [*lines, f'<text x="{WIDE // 2}" y="{high + 42}" font-size="18">{escape(said)}</text>']
