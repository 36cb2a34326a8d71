"""Windows: the square brackets after an entry of FROM."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from acquisition.units import unit_of
from basestation.language.duration_parser import ALL_UNITS, DurationParser
from basestation.language.keywords import find_nearest
from basestation.language.lexer import NAME, NUMBER
from basestation.language.syntax import (
    Duration,
    NowWindow,
    RangeWindow,
    ScanWindow,
    UnboundedWindow,
    WindowBound,
    WindowClause,
)

_FORMS = ("FROM", "NOW", "UNBOUNDED", "SCAN")
_OTHER_SYSTEMS = {
    "RANGE": "the nearest is [FROM NOW-5 TO NOW SLIDE 1 MIN]: both ends are inside, and SLIDE is the distance of windows",
    "ROWS": "write [ROWS 5] of CQL as [FROM NOW-4 TO NOW SLIDE 1 ROW]",
    "ROW": "write [ROWS 5] of CQL as [FROM NOW-4 TO NOW SLIDE 1 ROW]",
    "PARTITION": "windows are not partitioned; use GROUP BY",
}


class WindowParser(DurationParser):
    """Parses windows."""

    def window(self) -> WindowClause:
        """`[ … ]`."""
        opening = self.take()
        first = self.token
        if first.word in _OTHER_SYSTEMS:
            self.reject("SN112", f"SNEEql has no {first.word} window", first.span, _OTHER_SYSTEMS[first.word])
        if first.word not in _READ and not self.correct_typo(_FORMS):
            self.fail("a window", _FORMS)
        self.take()
        window, expected = _READ[first.word](self)
        self.close(opening, expected)
        return replace(window, span=self.span_from(opening.span.start))

    # Each method parses the text after the first word, and returns the words expected before the bracket as well.

    def _range(self) -> "_Read":
        begin = self._point()
        self.expect("TO")
        end = self._point()
        slide = self._slide()
        return RangeWindow(begin, end, slide), () if slide else ("SLIDE",)

    def _now(self) -> "_Read":
        if self.at_any(("-", "TO")) or self.token.kind is NUMBER:
            self.fail("the end of the window", ("]",), help="a window over a span is [FROM NOW-10 TO NOW SLIDE 1 MIN]")
        return NowWindow(), ()

    def _unbounded(self) -> "_Read":
        slide = self._slide()
        return UnboundedWindow(slide), () if slide else ("SLIDE",)

    def _scan(self) -> "_Read":
        return ScanWindow(self.duration()), ()

    def _slide(self) -> Duration | None:
        """`SLIDE n unit`, or None if it is missing."""
        if self.at("SLIDE") or self.correct_typo(("SLIDE",)):
            self.take()
            return self.duration(units=ALL_UNITS)
        return None

    def _point(self) -> WindowBound:
        """`NOW`, `NOW-n` or `NOW-n unit`."""
        start = self.token.span.start
        if not self.accept("NOW"):
            if self.token.kind is NUMBER or self.at("-"):
                self.fail("NOW", ("NOW",), help="the ends of a window are relative to NOW: NOW-10")
            self.expect("NOW")
        if self.at("+"):
            self.report("SN105", "a window cannot reach beyond NOW", self.token.span, ("-",), "write NOW or NOW-n")
            self.take()
        elif not self.accept("-"):
            return WindowBound(0, span=self.span_from(start))
        back = self.count("an offset", help="NOW alone is the present")
        return WindowBound(back, self._offset_unit(), span=self.span_from(start))

    def _offset_unit(self) -> str | None:
        """The unit of an offset, None without one. A name that is not a unit may be a typo of the next keyword."""
        if (
            self.token.kind is not NAME
            or self.at_any(("TO", "SLIDE", "NOW"))
            or find_nearest(self.token.text, ("TO", "SLIDE"))
        ):
            return None
        unit = unit_of(self.token.text)
        if unit is None:
            self.unknown_unit(ALL_UNITS)
        self.take()
        return unit


_Read: TypeAlias = tuple[WindowClause, tuple[str, ...]]
_READ: dict[str, Callable[[WindowParser], _Read]] = {
    "FROM": WindowParser._range,
    "NOW": WindowParser._now,
    "UNBOUNDED": WindowParser._unbounded,
    "SCAN": WindowParser._scan,
    "RESCAN": WindowParser._scan,
}
