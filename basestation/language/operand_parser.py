"""Operands: what stands between operators, and what is made of it with parentheses: groups, calls, CASE."""

from basestation.language.cursor import ParseError
from basestation.language.duration_parser import DurationParser
from basestation.language.keywords import CONVERTERS, RESERVED, STATEMENT_CLAUSES
from basestation.language.lexer import BAD, NAME, NUMBER, STRING
from basestation.language.precedence import COMPARISONS, OPERATORS
from basestation.language.syntax import (
    Bad,
    Call,
    Case,
    Cast,
    ColumnRef,
    Exists,
    Name,
    Null,
    Number,
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
    """Reads operands. Expressions are read by `expression` and queries by `query`, which classes over this one have."""

    operators = OPERATORS

    def operand(self):
        """What stands between operators, but for a group."""
        token = self.token
        self.steps += 1
        if token.kind is NUMBER:
            self.take()
            return Number(token.value, span=token.span)
        if token.kind is STRING:
            self.take()
            return String(token.value, span=token.span)
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

    def _qualified(self, qualifier):
        """The column behind `qualifier`; the dot is looked at."""
        self.take()
        if self.at("*"):
            self.fail("a column", ("a column",), help=f"{qualifier.text}.* stands only in the SELECT list, for itself")
        name = self.name("a column", ("a column",))
        if self.at("("):
            self.reject("SN105", f"a function has no qualifier: {qualifier.text}.{name.text}(", qualifier.span)
        if self.at("."):
            self.reject("SN105", "a column has one qualifier", self.token.span,
                        f"write {qualifier.text}.{name.text}, with the name that the extent has in FROM")  # fmt: skip
        return ColumnRef(qualifier, name, span=self.span_from(qualifier.span.start))

    def _no_operand(self, token):
        """Complain that no operand stands here. Where the text goes on sensibly without one, so does the parser."""
        word, help = token.word, None
        if word == "*":
            help = "`*` stands for all columns only in the SELECT list, and for all tuples only in COUNT(*)"
        elif word == "+":
            help = "a number needs no plus"
        elif word in QUERY_STARTS:
            help = "a subquery stands in parentheses"
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

    def _group(self):
        """`( expression )` or `( query )`."""
        opening = self.take()
        self.enter_level(opening)
        if self.at_any(QUERY_STARTS):
            query = self.query()
            self.close_query(opening)
            made = ScalarSubquery(query, span=self.span_from(opening.span.start))
        else:
            levels = self.levels()
            try:
                made = self.expression()
            except ParseError:
                made = Bad(span=opening.span)
                self.recover(levels, _ARGUMENT_STOPS)
            if self.at(","):
                self.report_unexpected("`)`", (")",), "a list in parentheses stands only behind IN")
                self.skip_to(_AFTER_LIST)
            self.close(opening, ("an operator",))
        self.depth -= 1
        return made

    def close_query(self, opening):
        """The parenthesis behind a subquery."""
        help = None
        if self.token.word in STATEMENT_CLAUSES:
            help = f"{self.token.word} concerns the whole query and stands behind its last parenthesis"
        self.close(opening, help=help)

    def arguments(self, opening):
        """`e, e, … )`, at least one."""
        items = []
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

    def _call(self):
        """`name ( … )`; EXISTS and CAST are told by the parenthesis."""
        token = self.take()
        opening = self.take()
        self.enter_level(opening)
        start = token.span.start
        levels = self.levels()
        try:
            if token.word == "CAST":
                made = self._cast(opening, start)
            elif token.word == "EXISTS":
                if not self.at_any(QUERY_STARTS):
                    self.fail("a query", ("SELECT",), help="write EXISTS (SELECT …)")
                query = self.query()
                self.close_query(opening)
                made = Exists(query, span=self.span_from(start))
            else:
                made = self._function(token, opening)
        except ParseError:
            self.recover(levels, _AFTER_LIST)
            self.accept(")")
            made = Bad(span=self.span_from(start))
        self.depth -= 1
        return made

    def _cast(self, opening, start):
        operand = self.expression()
        self.expect("AS", help="write CAST(e AS type)")
        type = self.name("a type", ("integer", "float", "string", "time"))
        if self.at("("):
            self.reject("SN112", "types have no length", self.token.span, f"write {type.text}")
        self.close(opening)
        return Cast(operand, type, span=self.span_from(start))

    def _function(self, token, opening):
        name = Name(token.text, span=token.span)
        star = distinct = False
        items = ()
        if token.word in ("ANY", "ALL", "SOME") and self.at_any(QUERY_STARTS):
            self.reject(
                "SN112",
                f"SNEEql has no {token.word}",
                token.span,
                "use IN (SELECT …), EXISTS (SELECT …) or MAX and MIN",
            )
        if token.word == "DISTINCT":
            self.reject("SN105", "DISTINCT cannot stand here", token.span, "it is said first in SELECT or in COUNT(…)")
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

    def accept_distinct(self):
        """Take DISTINCT where it is the keyword: where the next token could not go on after a column of that name."""
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

    def _case(self):
        """`CASE WHEN p THEN e … [ELSE e] END`."""
        token = self.take()
        self.enter_level(token)
        if not self.at("WHEN"):
            self.reject("SN112", "CASE is followed by WHEN", self.token.span,
                        "CASE x WHEN 1 THEN … is written CASE WHEN x = 1 THEN …", ("WHEN",))  # fmt: skip
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
