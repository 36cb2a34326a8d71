"""Queries: SELECT and its clauses, converters, UNION ALL, ORDER BY and LIMIT. `from_parser.py` parses FROM."""

from collections.abc import Sequence
from dataclasses import replace

from basestation.language.cursor import ParseError
from basestation.language.from_parser import CLAUSE_STOPS, LIST_STOPS, FromParser
from basestation.language.keywords import CONVERTERS, NEVER_ALIASES, QUERY_CLAUSES, RESERVED, STATEMENTS
from basestation.language.lexer import NAME, Token
from basestation.language.node import NO_SPAN
from basestation.language.syntax import (
    Bad,
    ColumnRef,
    ConverterQuery,
    Expr,
    FromEntry,
    Join,
    Name,
    Number,
    OrderItem,
    QueryExpression,
    Select,
    SelectItem,
    Star,
    Union,
)

_ITEM_STOPS = frozenset((",", "FROM", "WHERE", "GROUP", "HAVING", "SELECT", ")", "]", "}", ";"))
_SELECT_ENDS = CLAUSE_STOPS - {"WHERE", "GROUP", "HAVING"} | {"end"}
_SHOWN = {"GROUP": "GROUP BY", "ORDER": "ORDER BY"}


class QueryParser(FromParser):
    """Parses queries."""

    def query(self) -> QueryExpression:
        """`part {UNION ALL part} [ORDER BY …] [LIMIT n]`; order and limit belong to the whole union."""
        start = self.token.span.start
        part = self._select() if self.at("SELECT") else self._part()
        order_by, limit = self._order_and_limit()
        parts = [part]
        while self.at("UNION"):
            union = self.take()
            if order_by or limit:
                self.report("SN105", "ORDER BY and LIMIT belong after the last part of a union", union.span)
            self._all(union)
            parts.append(self._part())
            order_by, limit = self._order_and_limit()
        if len(parts) > 1:
            return Union(tuple(parts), order_by, limit, span=self.span_from(start))
        if not order_by and limit is None:
            return part
        if isinstance(part, ConverterQuery):
            first = order_by[0] if order_by else limit
            assert first is not None
            self.report("SN105", "a stream has no ORDER BY and no LIMIT", first.span,
                        help=f"{part.kind}(…) gives its tuples in the order of the stream")  # fmt: skip
            return part
        return replace(part, order_by=order_by, limit=limit, span=self.span_from(start))

    def _all(self, union: Token) -> None:
        if not self.accept("ALL"):
            self.report("SN112", "SNEEql has no UNION without ALL", union.span,
                        help="write UNION ALL; it keeps duplicates")  # fmt: skip
            self.accept("DISTINCT")

    def _part(self) -> Select | ConverterQuery:
        """A SELECT, or a query in a converter."""
        if self.at("SELECT") or self.correct_typo(("SELECT",)):
            return self._select()
        if self.at_any(CONVERTERS):
            return self.convert()
        if self.at("("):
            self.reject("SN112", "a query or a part of a union has no parentheses", self.token.span,
                        "leave the parentheses out", ("SELECT",))  # fmt: skip
        self.fail("a query", STATEMENTS[:4])

    def convert(self) -> ConverterQuery:
        """`RSTREAM ( query )`, and ISTREAM and DSTREAM likewise."""
        token = self.take()
        opening = self.expect("(", help=f"{token.word} takes a query in parentheses")
        self.enter_level(opening)
        query = self.query()
        self.close_query(opening)
        self.depth -= 1
        return ConverterQuery(token.word, query, span=self.span_from(token.span.start))

    def _select(self) -> Select:
        """SELECT to HAVING. A clause that cannot be read is Bad; a FROM that cannot be read is empty."""
        start = self.take().span.start
        levels = self.levels()
        distinct_span = self.token.span
        distinct = self.accept_distinct()
        items = self._items()
        entries: tuple[FromEntry | Join, ...] = ()
        if self.accept("FROM"):
            entries = self.entries()
        else:
            self.report_unexpected("FROM", ("FROM",))
        seen: list[str] = []
        predicates: dict[str, Expr] = {}
        group_by: tuple[ColumnRef | Bad, ...] | None = None
        grouping_span = None
        while not self.at_any(_SELECT_ENDS):
            token = self.token
            if token.word not in ("WHERE", "GROUP", "HAVING"):
                if not self.correct_typo(QUERY_CLAUSES):
                    self._unexpected(entries, seen)
                continue
            self.take()
            if token.word == "GROUP":
                columns = self._grouping()
                group_by = columns if group_by is None else group_by
            else:
                try:
                    predicate = self.expression()
                except ParseError:
                    predicate = Bad(span=token.span)
                    self.recover(levels, CLAUSE_STOPS)
                predicates.setdefault(token.word, predicate)
            self._once(token, seen)
            if token.word not in seen:
                seen.append(token.word)
            if token.word != "WHERE":
                grouping_span = grouping_span or self.span_from(token.span.start)
        return Select(
            tuple(items), entries, predicates.get("WHERE"), group_by or (), predicates.get("HAVING"), distinct,
            span=self.span_from(start), distinct_span=distinct_span, grouping_span=grouping_span or NO_SPAN,
        )  # fmt: skip

    def _once(self, token: Token, seen: Sequence[str]) -> None:
        """Report a clause that appears twice or out of order; it was parsed for the errors in it."""
        shown = _SHOWN.get(token.word, token.word)
        later = [word for word in seen if QUERY_CLAUSES.index(word) > QUERY_CLAUSES.index(token.word)]
        if token.word in seen:
            predicate = token.word in ("WHERE", "HAVING")
            help = f"write one {shown} with AND between the predicates" if predicate else None
            self.report("SN110", f"{shown} appears twice", token.span, help=help)
        elif later:
            self.report("SN105", f"{shown} belongs before {_SHOWN.get(later[0], later[0])}", token.span)

    def _unexpected(self, entries: Sequence[FromEntry | Join], seen: Sequence[str]) -> None:
        """Report and skip text that is neither a clause nor the end of the query; `seen` are the clauses before it."""
        expected: tuple[str, ...]
        if seen:
            expected = ("an operator",) if seen[-1] != "GROUP" else (",",)
            rest = QUERY_CLAUSES[QUERY_CLAUSES.index(seen[-1]) + 1 :]
        else:
            expected, rest = (self.after_entry(entries[-1]) if entries else ()), QUERY_CLAUSES
        expected = (*expected, *(_SHOWN.get(word, word) for word in rest[:3]), "the end of the query")
        help = None
        if self.token.word == "FROM":
            help = "a query has one FROM; separate several extents in it with `,`"
        self.report_unexpected("a clause or the end of the query", expected, help or self.operator_hint())
        self.take()
        self.skip_to(CLAUSE_STOPS)

    # --- the SELECT list ---

    def _items(self) -> list[SelectItem | Star]:
        items: list[SelectItem | Star] = []
        while True:
            levels = self.levels()
            try:
                item = self._item(items)
                items.append(item)
                if not self.at_any((",", "FROM")):
                    self._no_from(item)
            except ParseError:
                items.append(SelectItem(Bad(span=self.token.span), None))
                self.recover(levels, _ITEM_STOPS)
            if not self.accept(","):
                return items

    def _item(self, before: Sequence[SelectItem | Star]) -> SelectItem | Star:
        """An expression with an alias, `*` or `x.*`."""
        token = self.token
        start = token.span.start
        if self.accept("*"):
            return Star(None, span=token.span)
        if token.kind is NAME and self.peek().word == "." and self.peek(2).word == "*" and token.word not in RESERVED:
            self.take()
            self.take()
            self.take()
            return Star(Name(token.text, span=token.span), span=self.span_from(start))
        if token.word == "FROM" and before:
            self.fail("an expression", ("a column", "an expression"), help="leave the `,` before FROM out")
        if token.word in ("FROM", "end"):
            self.fail("the SELECT list", ("a column", "an expression", "*"), help="SELECT * takes every column")
        expression = self.expression()
        return SelectItem(expression, self.alias(("FROM",)), span=self.span_from(start))

    def _no_from(self, last: SelectItem | Star) -> None:
        """Report that neither `,` nor FROM follows an item of the SELECT list, unless FROM is misspelt."""
        aliased = isinstance(last, Star) or last.alias is not None
        expected = (",", "FROM") if aliased else ("an operator", "AS", ",", "FROM")
        help = self.operator_hint()
        if isinstance(last, Star) and (self.at("AS") or self.peek().word in ("FROM", ",")):
            help = "`*` has no alias"
        elif self.token.word in NEVER_ALIASES and self.peek().word in ("FROM", ","):
            help = f"as an alias this word needs AS: AS {self.token.text}"
        elif isinstance(last, SelectItem) and isinstance(last.expr, ColumnRef):
            self.reject_sql_alias(last.expr.name)
        if not self.correct_typo(("FROM",)):
            self.fail("`,` or FROM", expected, help=help)

    # --- GROUP BY, ORDER BY, LIMIT ---

    def _grouping(self) -> tuple[ColumnRef | Bad, ...]:
        if not self.accept("BY"):
            self.report_unexpected("BY", ("BY",))
            self.suppress_errors()
        columns = [self._grouping_column()]
        while self.accept(","):
            columns.append(self._grouping_column())
        return tuple(columns)

    def _grouping_column(self) -> ColumnRef | Bad:
        levels = self.levels()
        token = self.token
        try:
            column = self.expression()
            if isinstance(column, ColumnRef | Bad):
                return column
            if not self.is_suppressed():
                self.report("SN105", "GROUP BY takes columns, not expressions", column.span, ("a column",),
                            "compute it in a subquery with an alias, and group by the alias")  # fmt: skip
        except ParseError:
            self.recover(levels, LIST_STOPS)
        return Bad(span=token.span)

    def _order_and_limit(self) -> tuple[tuple[OrderItem, ...], Number | None]:
        order_by: tuple[OrderItem, ...] = ()
        limit = None
        seen: list[str] = []
        while self.at_any(("ORDER", "LIMIT")):
            token = self.take()
            levels = self.levels()
            try:
                if token.word == "ORDER":
                    self.expect("BY")
                    order_by = self._orders() or order_by
                else:
                    limit = self._limit()
            except ParseError:
                self.recover(levels, CLAUSE_STOPS)
            self._once(token, seen)
            seen.append(token.word)
            self._after_order(token.word)
        return order_by, limit

    def _after_order(self, word: str) -> None:
        """Report and skip text that cannot follow ORDER BY or LIMIT."""
        while not self.at_any(_SELECT_ENDS) and not self.correct_typo(QUERY_CLAUSES[3:]):
            self.reject_sql_word()
            help = None
            if self.token.word in ("WHERE", "GROUP", "HAVING"):
                help = f"{_SHOWN.get(self.token.word, self.token.word)} belongs before {_SHOWN.get(word, word)}"
            expected = (",", "ASC", "DESC", "NULLS", "LIMIT") if word == "ORDER" else ()
            self.report_unexpected("the end of the query", (*expected, "the end of the query"), help)
            self.take()
            self.skip_to(CLAUSE_STOPS)

    def _orders(self) -> tuple[OrderItem, ...]:
        orders: list[OrderItem] = []
        while True:
            start = self.token.span.start
            levels = self.levels()
            try:
                orders.append(self._order(start))
            except ParseError:
                orders.append(OrderItem(Bad(span=self.token.span)))
                self.recover(levels, LIST_STOPS)
            if not self.accept(","):
                return tuple(orders)

    def _order(self, start: int) -> OrderItem:
        expression = self.expression()
        descending = self.accept("DESC") is not None
        if not descending:
            self.accept("ASC")
        nulls_first = None
        if self.accept("NULLS"):
            nulls_first = self.accept("FIRST") is not None
            if not nulls_first:
                self.expect("LAST", "FIRST or LAST")
        return OrderItem(expression, descending, nulls_first, span=self.span_from(start))

    def _limit(self) -> Number:
        token = self.token
        value = self.count("the number of rows", least=0)
        return Number(value, span=token.span)
