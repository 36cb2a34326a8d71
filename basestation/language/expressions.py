"""Expressions: operators by precedence, and what they stand between.

One method climbs the precedences (SEMANTICS 2.1), so that a bracket costs few frames of Python's stack and a flat
chain of ten thousand operators costs none. Loops put their own operators and operands in (`loops.py`).
"""

from basestation.language.cursor import HIGHEST, Misread, TooDeep
from basestation.language.durations import Durations
from basestation.language.syntax import (
    Bad,
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    InList,
    InQuery,
    IsNull,
    Like,
    Name,
    Null,
    Number,
    Scalar,
    String,
    Unary,
)
from basestation.language.tokens import BAD, NAME, NUMBER, STRING
from basestation.language.words import BEHIND_QUERY, CONVERTERS, RESERVED

OR, AND, NOT, COMPARE, SUM, PRODUCT, SIGNED = range(1, 8)
"""The precedences, loosest first."""

OPERATORS = {
    "OR": OR, "AND": AND,
    "=": COMPARE, "<>": COMPARE, "!=": COMPARE, "<": COMPARE, "<=": COMPARE, ">": COMPARE, ">=": COMPARE,
    "==": COMPARE, "IS": COMPARE, "IN": COMPARE, "LIKE": COMPARE, "BETWEEN": COMPARE, "NOT": COMPARE,
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT,
}  # fmt: skip

_SAME = {"!=": "<>", "==": "="}
_QUERY_STARTS = CONVERTERS | {"SELECT"}
_ARGUMENT_STOPS = frozenset((",", ")", "]", "}", ";", "FROM", "WHERE", "GROUP", "HAVING", "SELECT"))
_OPERAND = ("a column", "a number", "a string", "a function", "(")
_NEGATABLE = frozenset(("IN", "LIKE", "BETWEEN"))


class Expressions(Durations):
    """Reads expressions. Subqueries are read by `query`, which a class below has."""

    operators = OPERATORS

    def expression(self, loosest=OR):
        """An expression of operators that bind at least as tightly as `loosest`."""
        first = self.token
        self.steps += 1
        if first.word == "NOT" and first.kind is NAME:
            left = self._negation(loosest)
        elif first.word == "(":
            left = self._group()
        elif first.word == "-":
            self.take()
            self.deeper(first)
            operand = self.expression(SIGNED)
            self.depth -= 1
            left = Unary("-", operand, span=self.span_from(first.span.start))
        else:
            left = self.operand()
        compared = False
        while True:
            token = self.token
            self.steps += 1
            binding = self.operators.get(token.word)
            if binding is None or binding < loosest:
                return left
            if binding == COMPARE and token.word == "NOT" and self.peek().word not in _NEGATABLE:
                return left
            if compared and binding >= COMPARE:
                self._chain(left, token)
            self.higher(token)
            self.take()
            if binding == COMPARE:
                left, compared = self._comparison(left, token, first.span.start), True
            else:
                right = self.expression(binding + 1)
                left = Binary(token.word, left, right, span=self.span_from(first.span.start), op_span=token.span)
            self.operator_depth -= 1

    def higher(self, token):
        """Count the right operand of `token` as a level, so that the height of every tree is bounded."""
        self.operator_depth += 1
        if self.operator_depth > HIGHEST:
            self.report("SN109", f"operators are nested more than {HIGHEST} deep here", token.span,
                        help="take the expression apart, or say it flatter")  # fmt: skip
            raise TooDeep

    def _negation(self, loosest):
        token = self.take()
        if loosest > NOT:
            self.report("SN105", "NOT cannot stand here without parentheses", token.span, help="write (NOT …)")
        self.deeper(token)
        operand = self.expression(NOT)
        self.depth -= 1
        return Unary("NOT", operand, span=self.span_from(token.span.start))

    # --- comparisons ---

    def _comparison(self, left, token, start):
        """What follows the left side of a comparison: an operator and its right side, IS NULL, IN, LIKE, BETWEEN."""
        negated = token.word == "NOT"
        word = self.take().word if negated else token.word
        if word == "IS":
            negated = self.accept("NOT") is not None
            if self.at_any(("TRUE", "FALSE", "UNKNOWN")):
                self.report("SN112", f"SNEEql has no IS {self.token.word}", token.span.to(self.token.span),
                            help="a predicate stands for itself: WHERE p, WHERE NOT p")  # fmt: skip
                self.take()
                return Bad(span=self.span_from(start))
            if self.at("DISTINCT"):
                self.refuse("SN112", "SNEEql has no IS DISTINCT FROM", token.span.to(self.token.span),
                            "write a <> b OR a IS NULL …")  # fmt: skip
            self.expect("NULL")
            return IsNull(left, negated, span=self.span_from(start))
        if word == "IN":
            return self._membership(left, negated, start)
        if word == "LIKE":
            pattern = self.expression(SUM)
            return Like(left, pattern, negated, span=self.span_from(start))
        if word == "BETWEEN":
            low = self.expression(SUM)
            self.expect("AND", help="BETWEEN takes two ends: BETWEEN low AND high")
            high = self.expression(SUM)
            return Between(left, low, high, negated, span=self.span_from(start))
        if word == "==" and self.operators is OPERATORS:
            self.report("SN105", "`==` is no comparison of SNEEql", token.span, ("=",), "equality is written =")
        elif self.token.word in ("<", ">", "=") and self.token.span.start == token.span.end:
            swapped = {"=<": "<=", "=>": ">=", "><": "<>"}.get(token.word + self.token.word)
            if swapped:
                self.report("SN105", f"`{token.word}{self.token.word}` is no comparison of SNEEql",
                            token.span.to(self.token.span), (swapped,), f"did you mean `{swapped}`?")  # fmt: skip
                self.take()
                word = swapped
        right = self.expression(SUM)
        return Binary(_SAME.get(word, word), left, right, span=self.span_from(start), op_span=token.span)

    def _membership(self, left, negated, start):
        opening = self.expect("(", help="IN takes a list: IN (1, 2, 3)")
        self.deeper(opening)
        if self.at_any(_QUERY_STARTS):
            query = self.query()
            self.close_query(opening)
            made = InQuery(left, query, negated, span=self.span_from(start))
        else:
            items = self.arguments(opening)
            made = InList(left, items, negated, span=self.span_from(start))
        self.depth -= 1
        return made

    def _chain(self, left, token):
        """Report a comparison of a comparison, and read on as if it had been one."""
        help = "a comparison has no value that could be compared; combine comparisons with AND and OR"
        word = token.word
        if isinstance(left, Binary) and word in _CHAINING:
            first, middle = self.source.cut(left.span), self.source.cut(left.right.span)
            if len(first) + len(middle) < 60 and "\n" not in first:
                help = f"write `{first} AND {middle} {token.text} …`"
        if not self.silent():
            self.report("SN108", "comparisons do not chain", token.span, help=help)

    # --- operands ---

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
            return Column(None, name, span=token.span)
        return self._qualified(name)

    def _qualified(self, qualifier):
        """The column behind `qualifier`; the dot is looked at."""
        self.take()
        if self.at("*"):
            self.fail("a column", ("a column",), help=f"{qualifier.text}.* stands only in the SELECT list, for itself")
        name = self.name("a column", ("a column",))
        if self.at("("):
            self.refuse("SN105", f"a function has no qualifier: {qualifier.text}.{name.text}(", qualifier.span)
        if self.at("."):
            self.refuse("SN105", "a column has one qualifier", self.token.span,
                        f"write {qualifier.text}.{name.text}, with the name that the extent has in FROM")  # fmt: skip
        return Column(qualifier, name, span=self.span_from(qualifier.span.start))

    def _no_operand(self, token):
        """Complain that no operand stands here. Where the text goes on sensibly without one, so does the parser."""
        word, help = token.word, None
        if word == "*":
            help = "`*` stands for all columns only in the SELECT list, and for all tuples only in COUNT(*)"
        elif word == "+":
            help = "a number needs no plus"
        elif word in _QUERY_STARTS:
            help = "a subquery stands in parentheses"
        elif word == ":" and self.peek(-1).word == ":":
            help = "write CAST(e AS type)"
        elif word in RESERVED and token.kind is NAME and self.peek().word in _AFTER_OPERAND:
            if not self.silent():
                self.report("SN111", f"`{token.text}` is a reserved word and cannot be a column", token.span)
            self.take()
            return Bad(span=token.span)
        self.complain("an expression", _OPERAND, help)
        if word not in _WITHOUT_OPERAND:
            raise Misread
        self.hush()
        return Bad(span=token.span)

    def _group(self):
        """`( expression )` or `( query )`."""
        opening = self.take()
        self.deeper(opening)
        if self.at_any(_QUERY_STARTS):
            query = self.query()
            self.close_query(opening)
            made = Scalar(query, span=self.span_from(opening.span.start))
        else:
            levels = self.levels()
            try:
                made = self.expression()
            except Misread:
                made = Bad(span=opening.span)
                self.recover(levels, _ARGUMENT_STOPS)
            if self.at(","):
                self.complain("`)`", (")",), "a list in parentheses stands only behind IN")
                self.skip_to(_AFTER_LIST)
            self.close(opening, ("an operator",))
        self.depth -= 1
        return made

    def close_query(self, opening):
        """The parenthesis behind a subquery."""
        help = None
        if self.token.word in BEHIND_QUERY:
            help = f"{self.token.word} concerns the whole query and stands behind its last parenthesis"
        self.close(opening, help=help)

    def arguments(self, opening):
        """`e, e, … )`, at least one."""
        items = []
        while True:
            levels = self.levels()
            try:
                items.append(self.expression())
            except Misread:
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
        self.deeper(opening)
        start = token.span.start
        if token.word == "CAST":
            made = self._cast(opening, start)
        elif token.word == "EXISTS":
            if not self.at_any(_QUERY_STARTS):
                self.fail("a query", ("SELECT",), help="write EXISTS (SELECT …)")
            query = self.query()
            self.close_query(opening)
            made = Exists(query, span=self.span_from(start))
        else:
            made = self._function(token, opening)
        self.depth -= 1
        return made

    def _cast(self, opening, start):
        operand = self.expression()
        self.expect("AS", help="write CAST(e AS type)")
        type = self.name("a type", ("integer", "float", "string", "time"))
        if self.at("("):
            self.refuse("SN112", "types have no length", self.token.span, f"write {type.text}")
        self.close(opening)
        return Cast(operand, type, span=self.span_from(start))

    def _function(self, token, opening):
        name = Name(token.text, span=token.span)
        star = distinct = False
        items = ()
        if token.word in ("ANY", "ALL", "SOME") and self.at_any(_QUERY_STARTS):
            self.refuse("SN112", f"SNEEql has no {token.word}", token.span, "use IN (SELECT …), EXISTS (SELECT …) or MAX and MIN")
        if token.word == "DISTINCT":
            self.refuse("SN105", "DISTINCT cannot stand here", token.span, "it is said first in SELECT or in COUNT(…)")
        if self.at("*") and self.peek().word == ")":
            if token.word != "COUNT":
                self.report("SN105", f"only COUNT takes `*`, {token.text} takes an expression", self.token.span)
            self.take()
            self.take()
            star = True
        elif not self.accept(")"):
            distinct = self.says_distinct()
            items = self.arguments(opening)
        return Call(name, items, star, distinct, span=self.span_from(token.span.start))

    def says_distinct(self):
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
        self.deeper(token)
        if not self.at("WHEN"):
            self.refuse("SN112", "CASE is followed by WHEN", self.token.span,
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


_CHAINING = frozenset(("=", "<>", "!=", "<", "<=", ">", ">="))
_AFTER_COLUMN = frozenset((",", ")", ".", "FROM", "AS", ";", "]", "end"))
_AFTER_OPERAND = frozenset((",", ")", ".", "AS", "FROM")) | {word for word in OPERATORS if word != "NOT"}
_WITHOUT_OPERAND = (_ARGUMENT_STOPS - {"SELECT"}) | {"AND", "OR", "end"} | _CHAINING
_AFTER_LIST = _ARGUMENT_STOPS - {","}
