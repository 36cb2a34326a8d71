"""Binds TelegraphCQ's for-loops: how t moves, and the stream of each WindowIs (semantics 10.8)."""

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from acquisition.schema import Type
from acquisition.units import ticks_of
from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.window import LoopRange
from basestation.language import syntax
from basestation.planner.catalog import MAX_TICKS
from basestation.planner.diagnostic_report import Report
from basestation.planner.expression_binder import UNKNOWN, any_unknown
from gateway.source import did_you_mean

_ARITHMETIC = ("+", "-", "*", "/")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


Written: TypeAlias = syntax.Expr | syntax.Duration
"""An expression of a loop as it is written."""


class LoopBinder:
    """Binds the loops of one statement; `ranges` maps a name of FROM to (LoopRange, left, right).

    `complete` is False after a WindowIs with a syntax error: then a missing WindowIs is no error.
    """

    def __init__(self, loops: Iterable[syntax.Loop], report: Report, new_id: Callable[[], int], tick_ms: int) -> None:
        self.report, self.new_id, self.tick_ms = report, new_id, tick_ms
        self.ranges: dict[str, tuple[LoopRange, Expression, Expression]] = {}
        self.written: dict[str, syntax.Name] = {}
        self.complete = not any(isinstance(window, syntax.Bad) for loop in loops for window in loop.windows)
        for loop in loops:
            self._bind(loop)

    def _bind(self, loop: syntax.Loop) -> None:
        windows = [window for window in loop.windows if isinstance(window, syntax.WindowIs)]
        rows = {window.rows for window in windows}
        if len(rows) == 2:
            odd = next(w for w in windows if w.rows != windows[0].rows)
            self.report.error("SN417", "a loop is all ticks or all ROWS", odd)
        self.rows = True in rows
        self.t = Column(self.new_id(), Type.INTEGER, "t")
        self.start = Column(self.new_id(), Type.INTEGER, "ST")
        first = ex.Literal(0, Type.INTEGER) if loop.first is None else self._number(loop.first)
        bound = LoopRange(
            self.t, self.start, first, self._condition(loop.condition), self._number(loop.change), self.rows
        )
        for window in windows:
            name = window.name.text
            if name in self.ranges:
                self.report.error("SN415", f"`{name}` has two WindowIs", window.name)
            self.ranges[name] = (bound, self._number(window.left), self._number(window.right))
            self.written[name] = window.name

    def _condition(self, written: Written) -> Expression:
        if isinstance(written, syntax.Bad):
            return UNKNOWN
        if isinstance(written, syntax.Unary) and written.op == "NOT":
            term = self._condition(written.operand)
            return UNKNOWN if term is UNKNOWN else ex.Not(term)
        if isinstance(written, syntax.Binary) and written.op in ("AND", "OR"):
            first, links = written.chain((written.op,))
            terms = [self._condition(term) for term in (first, *(link.right for link in links))]
            if any_unknown(terms):
                return UNKNOWN
            return ex.conjunction(terms) if written.op == "AND" else ex.disjunction(terms)
        if isinstance(written, syntax.Binary) and written.op in _COMPARISONS:
            sides = [self._number(written.left), self._number(written.right)]
            return UNKNOWN if any_unknown(sides) else ex.Compare(written.op, sides[0], sides[1])
        self.report.error("SN304", "the condition of a loop is a comparison", written, help="for example t < ST + 50")
        return UNKNOWN

    def _number(self, written: Written) -> Expression:
        match written:
            case syntax.Bad():
                return UNKNOWN
            case syntax.Number(value=int() as value) if value < 2**63:
                return ex.Literal(value, Type.INTEGER)
            case syntax.Number():
                self.report.error("SN308", "loops count in whole numbers of 64 bits", written)
            case syntax.Duration(unit=unit):
                return self._duration(written, unit)
            case syntax.LoopName(text=text):
                return ex.Attr(self.t if text == "t" else self.start)
            case syntax.Unary(op="-", operand=operand):
                inner = self._number(operand)
                return UNKNOWN if inner is UNKNOWN else ex.Negative(inner)
            case syntax.Binary(op=op) if op in _ARITHMETIC:
                return self._arithmetic(written)
            case _:
                self.report.error("SN303", "a number is needed here: whole numbers, durations, t, ST, + - * /", written)
        return UNKNOWN

    def _arithmetic(self, written: syntax.Binary) -> Expression:
        """Without recursion: a chain `t + 1 + 1 + …` may be long."""
        first, links = written.chain(_ARITHMETIC)
        bound = self._number(first)
        for link in links:
            sides = [bound, self._number(link.right)]
            bound = UNKNOWN if any_unknown(sides) else ex.Arithmetic(link.op, sides[0], sides[1])
        return bound

    def _duration(self, written: syntax.Duration, unit: str) -> Expression:
        if (unit == "ROW") != self.rows:
            self.report.error("SN417", "a loop is all ticks or all ROWS", written)
            return UNKNOWN
        ticks = written.count if unit == "ROW" else ticks_of(written.count, unit, self.tick_ms)
        if ticks is None:
            self.report.error(
                "SN412",
                f"{written.count} {unit} is no whole number of ticks",
                written,
                help=f"one tick is {self.tick_ms} ms",
            )
            return UNKNOWN
        if ticks > MAX_TICKS:
            self.report.error("SN308", "a span of time has at most 2^62 ticks", written)
            return UNKNOWN
        return ex.Literal(ticks, Type.INTEGER)

    def check_names(self, streams: Collection[str], tables: Collection[str]) -> None:
        """Report each WindowIs that names no stream of FROM."""
        for name, written in self.written.items():
            if name in tables:
                self.report.error(
                    "SN416",
                    f"`{name}` is a stored extent: it is read at the tick of each window",
                    written,
                    help="leave its WindowIs out",
                )
            elif name not in streams:
                self.report.error(
                    "SN201",
                    f"no stream in FROM is called `{name}`",
                    written,
                    expected=sorted(streams),
                    help=did_you_mean(name, streams),
                )
