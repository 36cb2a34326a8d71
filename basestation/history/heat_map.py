"""Draws completeness as a heat map: a row for each site, a column for each day."""

from collections.abc import Sequence
from html import escape

from basestation.history.completeness import SiteRecord
from basestation.results.line_chart import LEFT, TOP, WIDE, draw_text, open_picture

ROW, ROOM = 14, 20
"""Heights of a row, and of the days below."""
COLUMN = (2.0, 18.0)
"""The least and the greatest width of a day."""
STEPS = 5
"""Days with a label, at most."""


def draw_completeness(title: str, records: Sequence[SiteRecord]) -> str:
    """The SVG: a full cell is a day with all due readings, an empty one a day without any."""
    days = list(records[0].shares) if records else []
    narrow, broad = COLUMN
    width = min(broad, max(narrow, (WIDE - LEFT - ROOM) / max(1, len(days))))
    bottom = TOP + ROW * len(records)
    lines = open_picture(max(WIDE, LEFT + width * len(days) + ROOM), bottom + 2 * ROOM, title)
    for row, record in enumerate(records):
        name = f"site {record.site}" if record.station is None else f"{record.station}, {record.site}"
        y = TOP + ROW * row
        lines.append(draw_text(LEFT - 6, y + ROW - 3, name if len(name) <= 12 else f"…{name[-11:]}", "end"))
        for column, (day, share) in enumerate(record.shares.items()):
            lines.append(
                f'<rect x="{LEFT + width * column:.1f}" y="{y}" width="{width - 0.5:.1f}" height="{ROW - 1}" '
                f'fill="#2f6fab" fill-opacity="{share:.3f}" stroke="#888" stroke-width="0.3">'
                f"<title>{escape(name)}, {day}: {100 * share:.1f} %</title></rect>"
            )
    every = max(1, -(-len(days) // STEPS))
    lines += [draw_text(LEFT + width * at, bottom + ROOM - 4, day) for at, day in list(enumerate(days))[::every]]
    return "\n".join([*lines, "</svg>"]) + "\n"
