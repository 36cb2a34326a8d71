"""Durations: `10 MIN`, and the whole numbers and units that they are made of."""

from acquisition.units import TIME_UNITS, UNIT_WORDS, unit_of
from basestation.language.cursor import TokenCursor
from basestation.language.lexer import NAME, NUMBER
from basestation.language.syntax import Duration
from gateway.source import did_you_mean

ALL_UNITS = (*TIME_UNITS, "ROW")


class DurationParser(TokenCursor):
    """Reads counts, units and durations."""

    def duration(self, what="a duration", units=TIME_UNITS, least=1):
        """`n unit`; units are those that may stand here."""
        start = self.token.span.start
        count = self.count(what, least)
        unit_span = self.token.span
        unit = self.unit(units)
        return Duration(count, unit, span=self.span_from(start), unit_span=unit_span)

    def count(self, what, least=1, help=None):
        """A whole number, at least 1 unless said otherwise."""
        token = self.token
        if token.kind is NUMBER:
            if type(token.value) is int and token.value >= least:
                return self.take().value
            wanted = "a whole number" if least == 0 else "a whole number, 1 or more,"
            help = help if token.value == 0 else self._finer(token)
            self.report("SN107", f"{wanted} is needed here, not `{token.text}`", token.span, help=help)
            self.take()
            return least
        if token.word in "+-" and self.peek().kind is NUMBER:
            self.report("SN107", f"{what} has no sign here", token.span, help="leave the sign out")
            self.take()
            return self.count(what, least)
        self.fail(what, ("a whole number",) if what != "a duration" else ("a whole number and a unit",))

    def _finer(self, token):
        """How half a unit is said: in the next smaller unit."""
        unit = unit_of(self.peek().text)
        smaller = {"SEC": ("MS", 1000), "MIN": ("SEC", 60), "HOUR": ("MIN", 60), "DAY": ("HOUR", 24)}.get(unit)
        if type(token.value) is float and smaller:
            count = token.value * smaller[1]
            if count >= 1 and count == int(count):
                return f"write {int(count)} {smaller[0]}"
        return None

    def unit(self, units=TIME_UNITS):
        """One of the units that may stand here, in its short form."""
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
            self.report("SN106", f"a lifetime is counted in days, not in `{token.text}`", token.span, units)
        elif unit == "ROW":
            self.report("SN106", f"time is counted here, not rows: `{token.text}`", token.span, units)
        self.take()
        return units[0]

    def unknown_unit(self, units):
        """Report the word that stands where a unit should, unless a keyword follows a missing unit."""
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


_NO_UNITS = frozenset("TO SLIDE NOW FROM WHERE GROUP HAVING SELECT AS AND OR NOT".split())
