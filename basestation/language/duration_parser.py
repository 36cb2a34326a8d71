"""Durations: `10 MIN`, with their whole numbers and units."""

from acquisition.units import TIME_UNITS, UNIT_WORDS, unit_of
from basestation.language.cursor import TokenCursor
from basestation.language.lexer import NAME, NUMBER, Token
from basestation.language.syntax import Duration
from gateway.source import did_you_mean

ALL_UNITS = (*TIME_UNITS, "ROW")


class DurationParser(TokenCursor):
    """Parses counts, units and durations."""

    def duration(self, what: str = "a duration", units: tuple[str, ...] = TIME_UNITS, least: int = 1) -> Duration:
        """`n unit`, with one of `units` and n at least `least`."""
        start = self.token.span.start
        count = self.count(what, least)
        unit_span = self.token.span
        unit = self.unit(units)
        return Duration(count, unit, span=self.span_from(start), unit_span=unit_span)

    def count(self, what: str, least: int = 1, help: str | None = None) -> int:
        """A whole number of at least `least`; one that is smaller is reported and read as `least`."""
        token = self.token
        if token.kind is NUMBER:
            if isinstance(token.value, int) and token.value >= least:
                self.take()
                return token.value
            expected = "a whole number" if least == 0 else "a whole number of at least 1"
            help = help if token.value == 0 else self._finer(token)
            self.report("SN107", f"expected {expected}, found `{token.text}`", token.span, help=help)
            self.take()
            return least
        if token.word in "+-" and self.peek().kind is NUMBER:
            self.report("SN107", f"{what} has no sign here", token.span, help="leave the sign out")
            self.take()
            return self.count(what, least)
        self.fail(what, ("a whole number",) if what != "a duration" else ("a whole number and a unit",))

    def _finer(self, token: Token) -> str | None:
        """The help for a fraction of a unit: the same duration in the next smaller unit, if it is whole there."""
        smaller = _SMALLER.get(unit_of(self.peek().text) or "")
        if isinstance(token.value, float) and smaller:
            count = token.value * smaller[1]
            if count >= 1 and count.is_integer():
                return f"write {int(count)} {smaller[0]}"
        return None

    def unit(self, units: tuple[str, ...] = TIME_UNITS) -> str:
        """One of `units`, in its short form; another one is reported and read as the first."""
        token = self.token
        if token.kind is not NAME:
            self.fail("a unit", units)
        unit = unit_of(token.text)
        if unit in units:
            self.take()
            return unit
        if unit is None:
            self.unknown_unit(units)
        elif units == ("DAY",):
            self.report("SN106", f"expected a lifetime in days, found `{token.text}`", token.span, units)
        elif unit == "ROW":
            self.report("SN106", f"expected a unit of time, found `{token.text}`", token.span, units)
        self.take()
        return units[0]

    def unknown_unit(self, units: tuple[str, ...]) -> None:
        """Report a word that is not a unit; fail if it is a keyword, since then the unit is missing."""
        token = self.token
        if token.word in _NO_UNITS:
            self.fail("a unit", units)
        known = [word.upper() for word in UNIT_WORDS if unit_of(word) in units]
        help = did_you_mean(token.text, known) if len(token.text) > 2 else None
        if token.word in ("MONTH", "MONTHS", "YEAR", "YEARS", "WEEK", "WEEKS"):
            help = "months, weeks and years have no fixed number of ticks; count in DAY"
        elif token.word in ("US", "NS", "MICROSECOND", "MICROSECONDS", "NANOSECOND", "NANOSECONDS"):
            help = "the shortest unit is MS"
        self.report("SN106", f"`{token.text}` is not a unit", token.span, units, help)


_SMALLER = {"SEC": ("MS", 1000), "MIN": ("SEC", 60), "HOUR": ("MIN", 60), "DAY": ("HOUR", 24)}
_NO_UNITS = frozenset("TO SLIDE NOW FROM WHERE GROUP HAVING SELECT AS AND OR NOT".split())
