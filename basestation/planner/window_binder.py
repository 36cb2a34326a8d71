"""Binds windows: `[FROM NOW-10 TO NOW SLIDE 1 MIN]` to offsets in ticks or rows (semantics 2.4, 10.2, 10.3)."""

from acquisition.units import ticks_of
from basestation.algebra.node import StreamNode
from basestation.algebra.window import LandmarkWindow, RowWindow, StreamWindow, TimeWindow
from basestation.language import syntax
from basestation.planner.catalog import whole_ticks
from basestation.planner.diagnostic_report import Report


def bind_window(
    child: StreamNode, written: syntax.WindowClause, interval: int | None, report: Report, tick_ms: int
) -> StreamWindow | None:
    """The window node over a stream, or None after an error.

    `interval` in ticks is that of the one sensed extent below, if there is one. It replaces a missing SLIDE.
    """
    if isinstance(written, syntax.NowWindow):
        if interval is None:
            _slide_missing(written, report, "[FROM NOW TO NOW SLIDE 1 MIN]")
            return None
        return TimeWindow(child, 0, 0, interval)
    if not isinstance(written, syntax.UnboundedWindow | syntax.RangeWindow):
        raise TypeError(f"no window over a stream: {written!r}")
    slide = _slide(written.slide, interval, report, tick_ms)
    if slide is None:
        _slide_missing(written, report, "SLIDE 1 MIN")
        return None
    if isinstance(written, syntax.UnboundedWindow):
        return LandmarkWindow(child, slide, _by_rows(written.slide))
    return _range(child, written, slide, report, tick_ms)


def _slide(written: syntax.Duration | None, interval: int | None, report: Report, tick_ms: int) -> int | None:
    """The slide in ticks or rows; without SLIDE the interval of the extent, which may be None."""
    if written is None:
        return interval
    return written.count if _by_rows(written) else whole_ticks(written, report, tick_ms)


def _by_rows(slide: syntax.Duration | None) -> bool:
    return slide is not None and slide.unit == "ROW"


def _slide_missing(written: syntax.WindowClause, report: Report, example: str) -> None:
    report.error(
        "SN410",
        "only a window on a sensed extent knows by itself how often to slide",
        written,
        help=f"say how often, for example {example}",
    )


def _range(
    child: StreamNode, written: syntax.RangeWindow, slide: int, report: Report, tick_ms: int
) -> StreamWindow | None:
    rows = _by_rows(written.slide)
    begin = _offset(written.begin, written.slide, rows, report, tick_ms)
    end = _offset(written.end, written.slide, rows, report, tick_ms)
    if begin is None or end is None:
        return None
    return (RowWindow if rows else TimeWindow)(child, begin, end, slide)


def _offset(
    point: syntax.WindowBound, slide: syntax.Duration | None, rows: bool, report: Report, tick_ms: int
) -> int | None:
    """An offset in ticks or rows, zero or negative; without a unit it has that of SLIDE (2.4). None after an error."""
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
    if point.unit is None and slide is not None and ticks_of(slide.count, slide.unit, tick_ms) is None:
        return 0  # the slide has an error of its own
    why = "" if point.unit else "; an offset without a unit has that of SLIDE"
    return -whole_ticks(syntax.Duration(point.back, unit, span=point.span), report, tick_ms, why)
