"""The parser: a text becomes statements and diagnostics of every independent error in it.

Recursive descent with one token of look-ahead (three in a few places) and without backtracking. Each layer is a class
that derives from the one before: TokenCursor, DurationParser, OperandParser, ExpressionParser and WindowParser,
FromParser, QueryParser and LoopParser, Parser.
"""

from collections.abc import Collection
from dataclasses import dataclass

from acquisition.units import TIME_UNITS
from basestation.language.cursor import NestingError, ParseError
from basestation.language.from_parser import CLAUSE_STOPS
from basestation.language.keywords import SQL_STATEMENTS, STATEMENT_CLAUSES, STATEMENTS
from basestation.language.lexer import NUMBER, STRING, Token
from basestation.language.loop_parser import LoopParser
from basestation.language.operand_parser import QUERY_STARTS
from basestation.language.query_parser import QueryParser
from basestation.language.syntax import (
    Delete,
    Duration,
    Explain,
    Expr,
    Insert,
    Loop,
    Name,
    QueryStatement,
    Revise,
    SinceClause,
    Statement,
    StatementClauses,
)
from gateway.diagnostics import Diagnostic
from gateway.source import Source

_CHANGE_STOPS = frozenset((",", "WHERE", ";"))
_SHOWN = {"ACQUIRE": "ACQUIRE EVERY", "DELIVER": "DELIVER WITHIN"}
_FIELDS = {"ACQUIRE": "acquire_every", "DELIVER": "deliver_within", "FOR": "run_for", "LIFETIME": "lifetime"}


@dataclass(frozen=True, slots=True)
class Parsed:
    """The statements of a text. With diagnostics, they are those that could be parsed, with Bad in place of broken parts.

    `steps` and `tokens` are counts; tests bound the steps per token.
    """

    statements: tuple[Statement, ...]
    diagnostics: tuple[Diagnostic, ...]
    steps: int
    tokens: int


def parse(source: Source) -> Parsed:
    """Parse one or more statements. Never raises for any text: errors become diagnostics."""
    return Parser(source).text()


class Parser(LoopParser, QueryParser):
    """Parses statements."""

    def text(self) -> Parsed:
        """All statements of the text."""
        statements = []
        if self.at("end"):
            self.report_unexpected("a statement", STATEMENTS)
        while not self.at("end"):
            try:
                statements.append(self._statement())
            except (ParseError, NestingError):
                self.depth = self.operator_depth = 0
                self.skip_statement()
            if not self.at_any((";", "end")):
                self.report_unexpected("`;` or the end of the text", (";", "the end of the text"), self._strange())
                self.skip_statement()
            self.accept(";")
        diagnostics = sorted(self.diagnostics, key=lambda d: (d.span.start, d.span.end, d.code))
        return Parsed(tuple(statements), tuple(diagnostics), self.steps, len(self.tokens))

    def _strange(self) -> str | None:
        """The help for text after a complete statement."""
        word = self.token.word
        if word in (")", "]", "}"):
            return f"`{word}` closes no open bracket"
        if word in QUERY_STARTS:
            return "separate statements with `;`"
        return None

    def _statement(self) -> Statement:
        token = self.token
        word = token.word
        if word == "EXPLAIN" and (self.peek().word in QUERY_STARTS or self.peek().word == "ANALYZE"):
            self.take()
            analyze = self.accept("ANALYZE") is not None
            ask = self._query_statement()
            return Explain(ask, analyze, span=self.span_from(token.span.start))
        if word == "REVISE":
            return self._revise()
        if word == "DELETE":
            return self._delete()
        if word == "INSERT":
            return self._insert()
        if word in QUERY_STARTS:
            return self._query_statement()
        if word in SQL_STATEMENTS:
            self.reject("SN112", f"SNEEql has no {word}", token.span, SQL_STATEMENTS[word])
        if word == "(":
            self.reject(
                "SN112", "a query has no parentheses around it", token.span, "leave the parentheses out", ("SELECT",)
            )
        if word == "EXPLAIN":
            self.take()
            self.fail("a query", ("ANALYZE", *STATEMENTS[:4]), help="write EXPLAIN before a query")
        if self.correct_typo(STATEMENTS):
            return self._statement()
        self.fail("a statement", STATEMENTS)

    # --- queries with loops and clauses ---

    def _query_statement(self) -> QueryStatement:
        """`query {loop} [SINCE x] {clause}`."""
        start = self.token.span.start
        query = self.query()
        loops: list[Loop] = []
        sinces: list[SinceClause] = []
        clauses: dict[str, Duration] = {}
        while self.at_any(STATEMENT_CLAUSES) or self.correct_typo(STATEMENT_CLAUSES):
            levels = self.levels()
            token = self.token
            try:
                if token.word == "FOR" and self.peek().word == "(":
                    self._before(token, "a loop belongs before SINCE", sinces or clauses)
                    loops.append(self.loop())
                elif token.word == "SINCE":
                    self._before(token, "SINCE belongs before ACQUIRE, DELIVER, FOR and LIFETIME", clauses)
                    self._once_only(token, bool(sinces))
                    sinces.append(self._since())
                else:
                    self._clause(clauses)
            except ParseError:
                self.recover(levels, CLAUSE_STOPS)
        return QueryStatement(
            query,
            tuple(loops),
            sinces[0] if sinces else None,
            StatementClauses(*(clauses.get(field) for field in _FIELDS.values())),
            span=self.span_from(start),
        )

    def _before(self, token: Token, rule: str, seen: Collection[object]) -> None:
        if seen:
            self.report("SN105", rule, token.span, help="write loops first, then SINCE, then clauses for the network")

    def _once_only(self, token: Token, seen: bool) -> None:
        if seen:
            self.report("SN110", f"{_SHOWN.get(token.word, token.word)} appears twice", token.span)

    def _since(self) -> SinceClause:
        """`SINCE tick`, `SINCE 'time'` or `SINCE NOW - n unit`."""
        start = self.take().span.start
        token = self.token
        if token.kind is NUMBER:
            return SinceClause(self.count("a tick", least=0), span=self.span_from(start))
        if token.kind is STRING:
            self.take()
            return SinceClause(token.string, span=self.span_from(start))
        if not self.accept("NOW"):
            self.fail("the start of the query", ("a tick", "a time in quotes", "NOW"),
                      help="SINCE 86400, SINCE '2026-11-18T06:00:00Z' or SINCE NOW - 1 DAY")  # fmt: skip
        self.expect("-", help="write SINCE NOW - n unit; without SINCE a query starts now")
        return SinceClause(self.duration("how far back"), span=self.span_from(start))

    def _clause(self, clauses: dict[str, Duration]) -> None:
        """One clause for the network, into `clauses`."""
        token = self.take()
        if token.word == "ACQUIRE":
            self.expect("EVERY")
        elif token.word == "DELIVER":
            self.expect("WITHIN")
        field = _FIELDS[token.word]
        units = ("DAY",) if token.word == "LIFETIME" else TIME_UNITS
        duration = self.duration("a duration", units)
        self._once_only(token, field in clauses)
        clauses.setdefault(field, duration)

    # --- revisions ---

    def _revise(self) -> Revise:
        """`REVISE name SET a = e {, a = e} WHERE p`."""
        start = self.take().span.start
        name = self.name("the name of an extent", ("a name",))
        self.expect("SET")
        changes: list[tuple[Name, Expr]] = []
        while True:
            levels = self.levels()
            try:
                attribute = self.name("an attribute", ("a name",))
                self.expect("=")
                changes.append((attribute, self.expression()))
            except ParseError:
                self.recover(levels, _CHANGE_STOPS)
            if not self.accept(","):
                break
        return Revise(name, tuple(changes), self._which("REVISE"), span=self.span_from(start))

    def _delete(self) -> Delete:
        """`DELETE FROM name WHERE p`."""
        start = self.take().span.start
        self.expect("FROM")
        name = self.name("the name of an extent", ("a name",))
        return Delete(name, self._which("DELETE"), span=self.span_from(start))

    def _which(self, statement: str) -> Expr:
        """`WHERE p`. It is required, so that an oversight does not rewrite an archive."""
        self.expect("WHERE", help=f"name the tuples to {statement.lower()}: WHERE site = 3 AND tick = 60")
        return self.expression()

    def _insert(self) -> Insert:
        """`INSERT INTO name ( columns ) VALUES ( e, … ), …`."""
        start = self.take().span.start
        self.expect("INTO")
        name = self.name("the name of an extent", ("a name",))
        opening = self.expect("(", help="name the columns: INSERT INTO road (site, tick, temp) VALUES (3, 60, 21)")
        columns = [self.name("a column", ("a name",))]
        while self.accept(","):
            columns.append(self.name("a column", ("a name",)))
        self.close(opening, (",",))
        if self.at("SELECT"):
            self.reject("SN112", "INSERT takes VALUES, not a query", self.token.span, expected=("VALUES",))
        self.expect("VALUES")
        rows = [self._row()]
        while self.accept(","):
            rows.append(self._row())
        return Insert(name, tuple(columns), tuple(rows), span=self.span_from(start))

    def _row(self) -> tuple[Expr, ...]:
        return self.arguments(self.expect("("))
