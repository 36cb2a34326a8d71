"""Operands of operators: columns, literals, groups in parentheses, calls, CASE."""

from collections.abc import Mapping

from basestation.language.cursor import ParseError
from basestation.language.duration_parser import DurationParser
from basestation.language.keywords import CONVERTERS, RESERVED, STATEMENT_CLAUSES
from basestation.language.lexer import BAD, NAME, NUMBER, STRING, Token
from basestation.language.precedence import COMPARISONS, OPERATORS, OR
from basestation.language.syntax import (
    Bad,
    Call,
    Case,
    Cast,
    ColumnRef,
    Exists,
    Expr,
    Name,
    Null,
    Number,
    QueryExpression,
    ScalarSubquery,
    String,
)

QUERY_STARTS = CONVERTERS | {"SELECT"}

_OPERAND = ("a column", "a number", "a string", "a function", "(")
_ARGUMENT_STOPS = frozenset((",", ")", "]", "}", ";", "FROM", "WHERE", "GROUP", "HAVING", "SELECT"))
_AFTER_LIST = _ARGUMENT_STOPS - {","}
_AFTER_COLUMN = frozenset((",", ")", ".", "FROM", "AS", ";", "]", "end"))
_AFTER_OPERAND = frozenset((",", ")", ".", "AS", "FROM")) | {word for word in OPERATORS if word != "NOT"}
_WITHOUT_OPERAND = (_ARGUMENT_STOPS - {"SELECT"}) | {"AND", "OR", "end"} | COMPARISONS


class OperandParser(DurationParser):
    """Parses operands. Derived classes implement `expression` and `query`."""

    operators: Mapping[str, int] = OPERATORS

    def expression(self, loosest: int = OR) -> Expr:
        """An expression of operators with a precedence of at least `loosest`."""
        raise NotImplementedError

    def query(self) -> QueryExpression:
        """A query without the clauses of a statement."""
        raise NotImplementedError

    def operand(self) -> Expr:
        """An operand, except a group in parentheses."""
        token = self.token
        self.steps += 1
        if token.kind is NUMBER:
            self.take()
            return Number(token.number, span=token.span)
        if token.kind is STRING:
            self.take()
            return String(token.string, span=token.span)
        if token.kind is BAD:
            self.take()
            return Bad(span=token.span)
        if token.kind is not NAME or token.word in RESERVED:
            return self._no_operand(token)
        following = self.peek().word
        if following == "(":
            return self._call()
        if token.word == "NULL":
            self.take()
            return Null(span=token.span)
        if token.word == "CASE":
            return self._case()
        self.take()
        name = Name(token.text, span=token.span)
        if following != ".":
            return ColumnRef(None, name, span=token.span)
        return self._qualified(name)

    def _qualified(self, qualifier: Name) -> Expr:
        """The column after `qualifier`; the current token is the dot."""
        self.take()
        if self.at("*"):
            self.fail(
                "a column", ("a column",), help=f"{qualifier.text}.* is allowed only as an entry of the SELECT list"
            )
        name = self.name("a column", ("a column",))
        if self.at("("):
            self.reject("SN105", f"a function has no qualifier: {qualifier.text}.{name.text}(", qualifier.span)
        if self.at("."):
            self.reject("SN105", "a column has one qualifier", self.token.span,
                        f"write {qualifier.text}.{name.text}, with the name of the extent in FROM")  # fmt: skip
        return ColumnRef(qualifier, name, span=self.span_from(qualifier.span.start))

    def _no_operand(self, token: Token) -> Expr:
        """Report a missing operand. If the text can go on without one, the result is Bad; otherwise fail."""
        word, help = token.word, None
        if word == "*":
            help = "`*` means all columns only in the SELECT list, and all tuples only in COUNT(*)"
        elif word == "+":
            help = "leave the plus out"
        elif word in QUERY_STARTS:
            help = "put a subquery in parentheses"
        elif word in RESERVED and token.kind is NAME and self.peek().word in _AFTER_OPERAND:
            if not self.is_suppressed():
                self.report("SN111", f"`{token.text}` is a reserved word and cannot be a column", token.span)
            self.take()
            return Bad(span=token.span)
        self.report_unexpected("an expression", _OPERAND, help)
        if word not in _WITHOUT_OPERAND:
            raise ParseError
        self.suppress_errors()
        return Bad(span=token.span)

    def _group(self) -> Expr:
        """`( expression )` or `( query )`."""
        opening = self.take()
        self.enter_level(opening)
        if self.at_any(QUERY_STARTS):
            query = self.query()
            self.close_query(opening)
            found: Expr = ScalarSubquery(query, span=self.span_from(opening.span.start))
        else:
            levels = self.levels()
            try:
                found = self.expression()
            except ParseError:
                found = Bad(span=opening.span)
                self.recover(levels, _ARGUMENT_STOPS)
            if self.at(","):
                self.report_unexpected("`)`", (")",), "a list in parentheses is allowed only after IN")
                self.skip_to(_AFTER_LIST)
            self.close(opening, ("an operator",))
        self.depth -= 1
        return found

    def close_query(self, opening: Token) -> None:
        """The parenthesis after a subquery."""
        help = None
        if self.token.word in STATEMENT_CLAUSES:
            help = f"{self.token.word} belongs to the whole query; write it after the last parenthesis"
        self.close(opening, help=help)

    def arguments(self, opening: Token) -> tuple[Expr, ...]:
        """`e, e, … )`, at least one."""
        items: list[Expr] = []
        while True:
            levels = self.levels()
            try:
                items.append(self.expression())
            except ParseError:
                items.append(Bad(span=self.token.span))
                self.recover(levels, _ARGUMENT_STOPS)
            if not self.accept(","):
                break
        self.close(opening, (",", "an operator"))
        return tuple(items)

    # --- functions ---

    def _call(self) -> Expr:
        """`name ( … )`; EXISTS and CAST are keywords only before a parenthesis."""
        token = self.take()
        opening = self.take()
        self.enter_level(opening)
        start = token.span.start
        levels = self.levels()
        found: Expr
        try:
            if token.word == "CAST":
                found = self._cast(opening, start)
            elif token.word == "EXISTS":
                if not self.at_any(QUERY_STARTS):
                    self.fail("a query", ("SELECT",), help="write EXISTS (SELECT …)")
                query = self.query()
                self.close_query(opening)
                found = Exists(query, span=self.span_from(start))
            else:
                found = self._function(token, opening)
        except ParseError:
            self.recover(levels, _AFTER_LIST)
            self.accept(")")
            found = Bad(span=self.span_from(start))
        self.depth -= 1
        return found

    def _cast(self, opening: Token, start: int) -> Expr:
        operand = self.expression()
        self.expect("AS", help="write CAST(e AS type)")
        type = self.name("a type", ("integer", "float", "string", "time"))
        if self.at("("):
            self.reject("SN112", "types have no length", self.token.span, f"write {type.text}")
        self.close(opening)
        return Cast(operand, type, span=self.span_from(start))

    def _function(self, token: Token, opening: Token) -> Expr:
        name = Name(token.text, span=token.span)
        star = distinct = False
        items: tuple[Expr, ...] = ()
        if token.word in ("ANY", "ALL", "SOME") and self.at_any(QUERY_STARTS):
            self.reject(
                "SN112",
                f"SNEEql has no {token.word}",
                token.span,
                "use IN (SELECT …), EXISTS (SELECT …) or MAX and MIN",
            )
        if token.word == "DISTINCT":
            self.reject(
                "SN105", "DISTINCT is not allowed here", token.span, "DISTINCT comes first in SELECT or in COUNT(…)"
            )
        if self.at("*") and self.peek().word == ")":
            if token.word != "COUNT":
                self.report("SN105", f"only COUNT takes `*`, {token.text} takes an expression", self.token.span)
            self.take()
            self.take()
            star = True
        elif not self.accept(")"):
            distinct = self.accept_distinct()
            items = self.arguments(opening)
        return Call(name, items, star, distinct, span=self.span_from(token.span.start))

    def accept_distinct(self) -> bool:
        """Take DISTINCT if it is the keyword: if the next token could not follow a column of that name."""
        if not self.at("DISTINCT"):
            return False
        following = self.peek().word
        if following == "*":
            if self.peek(2).word not in (",", "FROM"):
                return False
        elif following in _AFTER_COLUMN or following in self.operators:
            return False
        self.take()
        return True

    def _case(self) -> Expr:
        """`CASE WHEN p THEN e … [ELSE e] END`."""
        token = self.take()
        self.enter_level(token)
        if not self.at("WHEN"):
            self.reject("SN112", "expected WHEN after CASE", self.token.span,
                        "write CASE x WHEN 1 THEN … as CASE WHEN x = 1 THEN …", ("WHEN",))  # fmt: skip
        branches = []
        while self.accept("WHEN"):
            condition = self.expression()
            self.expect("THEN")
            branches.append((condition, self.expression()))
        otherwise = self.expression() if self.accept("ELSE") else None
        if not self.accept("END"):
            self.fail("END", ("END",) if otherwise else ("WHEN", "ELSE", "END"), help="CASE … ends with END")
        self.depth -= 1
        return Case(tuple(branches), otherwise, span=self.span_from(token.span.start))
