"""Loops: the for-loops of TelegraphCQ over windows (semantics 10.8).

Their expressions have the operators of queries and other operands: whole numbers, durations, `t` and `ST`.
"""

from collections.abc import Callable, Collection

from acquisition.units import unit_of
from basestation.language.cursor import ParseError
from basestation.language.duration_parser import ALL_UNITS
from basestation.language.expression_parser import ExpressionParser
from basestation.language.from_parser import CLAUSE_STOPS
from basestation.language.keywords import RESERVED
from basestation.language.lexer import NAME, NUMBER, Token
from basestation.language.precedence import OPERATORS, OR, SUM
from basestation.language.syntax import Bad, Binary, Expr, Loop, LoopName, Number, WindowIs
from gateway.source import Source

_LOOP_OPERATORS = {
    word: binding for word, binding in OPERATORS.items() if word not in ("%", "IS", "IN", "LIKE", "BETWEEN", "NOT")
}
_HEADER_STOPS = frozenset((")", "{", "}", "SELECT", "end"))
_PART_STOPS = frozenset((";", ")", "{", "}", "SELECT", "end"))
_WINDOW_STOPS = frozenset((";", ")", "}", "SELECT", "WINDOWIS", "end"))
_NO_UNITS = ("AND", "OR", "NOT", "T", "ST")
_VALUES = ("t", "ST", "a whole number", "a duration", "(")
_AFTER_VALUE = frozenset((*_LOOP_OPERATORS, ";", ",", ")", "!="))
_CHANGES = {"++": "+", "--": "-", "+=": "+", "-=": "-"}
_CHANGE_WORDS = ("++", "--", "+=", "-=", "=")


class LoopParser(ExpressionParser):
    """Parses loops."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.in_loop = False
        self.unknown: set[str] = set()  # names already reported in this loop; each is reported once

    def spell(self, word: str) -> str:
        return "WindowIs" if word == "WINDOWIS" else word

    def loop(self) -> Loop:
        """`FOR ( [t = e] ; cond ; change ) { windows }`."""
        token = self.take()
        opening = self.take()
        self.operators, self.in_loop, self.unknown = _LOOP_OPERATORS, True, set()
        try:
            first, condition, change = self._header()
            self.close(opening)
            windows = self._windows()
        finally:
            self.operators, self.in_loop = OPERATORS, False
        return Loop(first, condition, change, windows, span=self.span_from(token.span.start))

    def _header(self) -> tuple[Expr | None, Expr, Expr]:
        """The first value, the condition and the change, with `;` between them."""
        first: Expr | None
        condition: Expr
        change: Expr
        first = condition = change = Bad(span=self.token.span)
        try:
            first = None if self.at(";") else self._header_part(self._first)
            self._semicolon("the first value of t")
            condition = self._header_part(self._condition)
            self._semicolon("the condition")
            change = self._header_part(self._change)
        except ParseError:
            self.skip_to(_HEADER_STOPS)
        return first, condition, change

    def _header_part(self, parse: Callable[[], Expr]) -> Expr:
        levels = self.levels()
        token = self.token
        try:
            return parse()
        except ParseError:
            self.recover(levels, _PART_STOPS)
            return Bad(span=token.span)

    def _semicolon(self, what: str) -> None:
        if not self.accept(";"):
            self.fail(f"`;` after {what}", (";",), help="a loop is FOR (t = ST; t < ST + 50; t += 5) { … }")

    def _first(self) -> Expr:
        self._variable()
        self.expect("=")
        return self.expression(SUM)

    def _condition(self) -> Expr:
        if self.at(";"):
            self.fail(
                "a condition on t",
                ("t",),
                help="for a loop without end write a condition that always holds: t >= ST",
            )
        return self.expression(OR)

    def _change(self) -> Expr:
        """The new value of t as an expression."""
        start = self.token.span.start
        variable = self._variable()
        sign = self.token
        if not self.at_any(_CHANGE_WORDS):
            self.fail("a change of t", _CHANGE_WORDS, help="a loop steps with t++, t--, t += e, t -= e or t = e")
        self.take()
        if sign.word == "=":
            return self.expression(SUM)
        step = Number(1, span=sign.span) if sign.word in ("++", "--") else self._step(sign)
        return Binary(_CHANGES[sign.word], variable, step, span=self.span_from(start), op_span=sign.span)

    def _step(self, sign: Token) -> Expr:
        """The right side of `+=`, which is the right operand of a plus."""
        self.enter_operand(sign)
        step = self.expression(SUM)
        self.operator_depth -= 1
        return step

    def _variable(self) -> LoopName:
        token = self.token
        if token.kind is NAME and token.text != "t" and self.peek().word in (*_CHANGE_WORDS, "=="):
            self._not_known(f"the variable of a loop is t, not `{token.text}`", ("t",), "did you mean `t`?")
        elif token.text != "t":
            self.fail("t", ("t",), help="the variable of a loop is t")
        else:
            self.take()
        return LoopName("t", span=token.span)

    # --- the windows in braces ---

    def _windows(self) -> tuple[WindowIs | Bad, ...]:
        opening = self.accept("{")
        if not opening:
            self.report_unexpected("`{`", ("{",), "put the windows of a loop in braces: { WindowIs(road, t - 4, t); }")
            if not self.at("WINDOWIS"):
                place = self.token.span
                self.skip_to(CLAUSE_STOPS)
                return (Bad(span=place),)
        windows: list[WindowIs | Bad] = []
        while not self.at_any(("}", "end")):
            levels, place = self.levels(), self.token.span
            try:
                windows.append(self._window_is())
            except ParseError:
                windows.append(Bad(span=place))
                self.recover(levels, _WINDOW_STOPS)
                self.accept(")")
                if not self.accept(";") and not self.at("WINDOWIS"):
                    break
        if not windows:
            self.report_unexpected(
                "WindowIs", ("WindowIs",), "a loop has at least one window: WindowIs(road, t - 4, t);"
            )
        if opening:
            self.close(opening, ("WindowIs",))
        else:
            self.accept("}")
        return tuple(windows)

    def _window_is(self) -> WindowIs:
        """`WindowIs(name [ROWS], left, right);`"""
        start = self.token.span.start
        self.expect("WINDOWIS")
        opening = self.expect("(")
        name = self.name("the name of a stream in FROM", ("a name",))
        rows = self.token.kind is NAME and unit_of(self.token.text) == "ROW"
        if rows:
            self.take()
        self.expect(",", help="WindowIs takes a name and two ends: WindowIs(road, t - 4, t)")
        left = self.expression(SUM)
        self.expect(",", help="WindowIs takes a name and two ends: WindowIs(road, t - 4, t)")
        right = self.expression(SUM)
        self.close(opening)
        if not self.accept(";"):
            self.report_unexpected("`;`", (";",), "each WindowIs(…) ends with `;`")
        return WindowIs(name, rows, left, right, span=self.span_from(start))

    # --- operands ---

    def operand(self) -> Expr:
        """In a loop a whole number, a duration, `t` or `ST`; outside an operand of queries."""
        if not self.in_loop:
            return super().operand()
        token = self.token
        if token.kind is NUMBER:
            unit = self.peek()
            if unit.kind is NAME and unit.word not in _NO_UNITS:
                return self.duration("a duration", ALL_UNITS)
            return Number(self.count("a whole number", least=0), span=token.span)
        if token.text in ("t", "ST"):
            self.take()
            return LoopName(token.text, span=token.span)
        if token.kind is NAME and token.word in ("T", "ST"):
            meant = "t" if token.word == "T" else "ST"
            self._not_known(f"there is no `{token.text}` in a loop", ("t", "ST"), f"did you mean `{meant}`?")
            return LoopName(meant, span=token.span)
        if token.kind is NAME and token.word not in RESERVED and self.peek().word in _AFTER_VALUE:
            help = "a loop has t, the start ST, whole numbers and durations, but no columns"
            if token.word in ("NOW", "STSTSTST"):
                help = "the tick of the query's start is ST"
            self._not_known(f"expected a value of the loop, found `{token.text}`", _VALUES, help)
            return Bad(span=token.span)
        self.fail("a value of the loop", _VALUES)

    def _not_known(self, message: str, expected: Collection[str], help: str) -> None:
        """Take a name that loops do not have; its first occurrence is reported."""
        token = self.take()
        if token.text not in self.unknown:
            self.unknown.add(token.text)
            self.report("SN105", message, token.span, expected, help)
