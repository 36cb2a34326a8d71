"""Windows: from `[FROM NOW-10 TO NOW SLIDE 1 MIN]` to offsets in ticks or rows (SEMANTICS 2.4, 10.2, 10.3)."""

from acquisition.units import ticks_of
from basestation.algebra.window import LandmarkWindow, RowWindow, TimeWindow
from basestation.language import syntax
from basestation.planner.catalog import whole_ticks


def bind_window(child, written, interval, report, tick_ms):
    """The window node over a stream, or None after an error.

    `interval` is that of the one sensed extent below, None where there is none: it stands in for a missing SLIDE.
    """
    if isinstance(written, syntax.NowWindow):
        if interval is None:
            return _slide_missing(written, report, "[FROM NOW TO NOW SLIDE 1 MIN]")
        return TimeWindow(child, 0, 0, interval)
    if written.slide is None and interval is None:
        return _slide_missing(written, report, "SLIDE 1 MIN")
    if isinstance(written, syntax.UnboundedWindow):
        if written.slide is None:
            return LandmarkWindow(child, interval)
        rows = written.slide.unit == "ROW"
        return LandmarkWindow(child, written.slide.count if rows else whole_ticks(written.slide, report, tick_ms), rows)
    return _range(child, written, interval, report, tick_ms)


def _slide_missing(written, report, example):
    report.error(
        "SN410",
        "only a window on a sensed extent knows by itself how often to slide",
        written,
        help=f"say how often, for example {example}",
    )


def _range(child, written, interval, report, tick_ms):
    rows = written.slide is not None and written.slide.unit == "ROW"
    offsets = [_offset(point, written.slide, rows, report, tick_ms) for point in (written.begin, written.end)]
    slide = interval
    if written.slide is not None:
        slide = written.slide.count if rows else whole_ticks(written.slide, report, tick_ms)
    if None in offsets:
        return None
    return (RowWindow if rows else TimeWindow)(child, *offsets, slide)


def _offset(point, slide, rows, report, tick_ms):
    """An offset in ticks or rows, zero or negative; one without a unit takes that of SLIDE (2.4)."""
    if point.back == 0:
        return 0
    unit = point.unit or (slide.unit if slide is not None else None)
    if unit is None:
        report.error("SN410", "without SLIDE every offset needs a unit of its own", point, help=f"NOW-{point.back} MIN")
        return None
    if (unit == "ROW") != rows:
        report.error(
            "SN411",
            "time and rows do not mix in one window",
            point,
            help="give the offsets and SLIDE units of one kind",
        )
        return None
    if rows:
        return -point.back
    if point.unit is None and ticks_of(slide.count, slide.unit, tick_ms) is None:
        return 0  # the slide is in error itself
    why = "" if point.unit else "; an offset without a unit has that of SLIDE"
    return -whole_ticks(syntax.Duration(point.back, unit, span=point.span), report, tick_ms, why)
