"""Expressions: operators by precedence, between the operands of `operand_parser.py`.

One method climbs the precedences. So a bracket needs few frames of Python's stack, and a flat chain of ten thousand
operators none. Loops replace the operators and operands (`loop_parser.py`).
"""

from basestation.language.cursor import MAX_OPERATOR_NESTING, NestingError
from basestation.language.lexer import NAME, Token
from basestation.language.operand_parser import QUERY_STARTS, OperandParser
from basestation.language.precedence import COMPARE, COMPARISONS, NOT, OPERATORS, OR, SIGNED, SUM
from basestation.language.syntax import Bad, Between, Binary, Expr, InList, InQuery, IsNull, Like, Unary

_SAME = {"!=": "<>", "==": "="}
_NEGATABLE = frozenset(("IN", "LIKE", "BETWEEN"))


class ExpressionParser(OperandParser):
    """Parses expressions."""

    def expression(self, loosest: int = OR) -> Expr:
        """An expression of operators that bind at least as tightly as `loosest`."""
        first = self.token
        self.steps += 1
        left: Expr
        if first.word == "NOT" and first.kind is NAME:
            left = self._negation(loosest)
        elif first.word == "(":
            left = self._group()
        elif first.word == "-":
            self.take()
            self.enter_level(first)
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
            self.enter_operand(token)
            self.take()
            if binding == COMPARE:
                left, compared = self._comparison(left, token, first.span.start), True
            else:
                right = self.expression(binding + 1)
                left = Binary(token.word, left, right, span=self.span_from(first.span.start), op_span=token.span)
            self.operator_depth -= 1

    def enter_operand(self, token: Token) -> None:
        """Count the right operand of `token` as a level, so that the height of every tree is bounded."""
        self.operator_depth += 1
        if self.operator_depth > MAX_OPERATOR_NESTING:
            self.report("SN109", f"operators are nested deeper than {MAX_OPERATOR_NESTING} levels", token.span,
                        help="split the expression, or write it with fewer levels")  # fmt: skip
            raise NestingError

    def _negation(self, loosest: int) -> Expr:
        token = self.take()
        if loosest > NOT:
            self.report("SN105", "NOT cannot stand here without parentheses", token.span, help="write (NOT …)")
        self.enter_level(token)
        operand = self.expression(NOT)
        self.depth -= 1
        return Unary("NOT", operand, span=self.span_from(token.span.start))

    # --- comparisons ---

    def _comparison(self, left: Expr, token: Token, start: int) -> Expr:
        """The rest of a comparison after its left side: an operator and an operand, IS NULL, IN, LIKE or BETWEEN."""
        negated = token.word == "NOT"
        word = self.take().word if negated else token.word
        if word == "IS":
            negated = self.accept("NOT") is not None
            if self.at_any(("TRUE", "FALSE", "UNKNOWN")):
                self.report("SN112", f"SNEEql has no IS {self.token.word}", token.span.to(self.token.span),
                            help="write the predicate alone: WHERE p, WHERE NOT p")  # fmt: skip
                self.take()
                return Bad(span=self.span_from(start))
            if self.at("DISTINCT"):
                self.reject("SN112", "SNEEql has no IS DISTINCT FROM", token.span.to(self.token.span),
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
            self.report("SN105", "`==` is not a comparison of SNEEql", token.span, ("=",), "write =")
        elif self.token.word in ("<", ">", "=") and self.token.span.start == token.span.end:
            swapped = {"=<": "<=", "=>": ">=", "><": "<>"}.get(token.word + self.token.word)
            if swapped:
                self.report("SN105", f"`{token.word}{self.token.word}` is not a comparison of SNEEql",
                            token.span.to(self.token.span), (swapped,), f"did you mean `{swapped}`?")  # fmt: skip
                self.take()
                word = swapped
        right = self.expression(SUM)
        return Binary(_SAME.get(word, word), left, right, span=self.span_from(start), op_span=token.span)

    def _membership(self, left: Expr, negated: bool, start: int) -> Expr:
        opening = self.expect("(", help="IN takes a list: IN (1, 2, 3)")
        self.enter_level(opening)
        if self.at_any(QUERY_STARTS):
            query = self.query()
            self.close_query(opening)
            found: Expr = InQuery(left, query, negated, span=self.span_from(start))
        else:
            items = self.arguments(opening)
            found = InList(left, items, negated, span=self.span_from(start))
        self.depth -= 1
        return found

    def _chain(self, left: Expr, token: Token) -> None:
        """Report a comparison of a comparison; parsing goes on as if it were allowed."""
        help = "a comparison has no value to compare; combine comparisons with AND and OR"
        word = token.word
        if isinstance(left, Binary) and word in COMPARISONS:
            first, middle = self.source.cut(left.span), self.source.cut(left.right.span)
            if len(first) + len(middle) < 60 and "\n" not in first:
                help = f"write `{first} AND {middle} {token.text} …`"
        if not self.is_suppressed():
            self.report("SN108", "comparisons do not chain", token.span, help=help)
