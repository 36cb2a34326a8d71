"""Queries: SELECT and its clauses, converters, UNION ALL, ORDER BY and LIMIT. FROM is read in `sources.py`."""

from dataclasses import replace

from basestation.language.cursor import ParseError
from basestation.language.from_parser import CLAUSE_STOPS, LIST_STOPS, FromParser
from basestation.language.keywords import CONVERTERS, NEVER_ALIASES, QUERY_CLAUSES, RESERVED, STATEMENTS
from basestation.language.lexer import NAME
from basestation.language.node import NO_SPAN
from basestation.language.syntax import (
    Bad,
    ColumnRef,
    ConverterQuery,
    Name,
    Number,
    OrderItem,
    Select,
    SelectItem,
    Star,
    Union,
)

_ITEM_STOPS = frozenset((",", "FROM", "WHERE", "GROUP", "HAVING", "SELECT", ")", "]", "}", ";"))
_SELECT_ENDS = CLAUSE_STOPS - {"WHERE", "GROUP", "HAVING"} | {"end"}
_SHOWN = {"GROUP": "GROUP BY", "ORDER": "ORDER BY"}


class QueryParser(FromParser):
    """Reads queries."""

    def query(self):
        """`part {UNION ALL part} [ORDER BY …] [LIMIT n]`; order and limit belong to the whole union."""
        start = self.token.span.start
        part = self._select() if self.at("SELECT") else self._part()
        order_by, limit = self._order_and_limit()
        parts = [part]
        while self.at("UNION"):
            union = self.take()
            if order_by or limit:
                self.report("SN105", "ORDER BY and LIMIT stand behind the last part of a union", union.span)
            self._all(union)
            parts.append(self._part())
            order_by, limit = self._order_and_limit()
        if len(parts) > 1:
            return Union(tuple(parts), order_by, limit, span=self.span_from(start))
        if not order_by and limit is None:
            return part
        if type(part) is ConverterQuery:
            self.report("SN105", "a stream has no ORDER BY and no LIMIT", order_by[0].span if order_by else limit.span,
                        help=f"{part.kind}(…) gives its tuples as they come")  # fmt: skip
            return part
        return replace(part, order_by=order_by, limit=limit, span=self.span_from(start))

    def _all(self, union):
        if not self.accept("ALL"):
            self.report("SN112", "SNEEql has no UNION without ALL", union.span,
                        help="write UNION ALL; it keeps duplicates")  # fmt: skip
            self.accept("DISTINCT")

    def _part(self):
        """A SELECT, or a query in a converter."""
        if self.at("SELECT") or self.correct_typo(("SELECT",)):
            return self._select()
        if self.at_any(CONVERTERS):
            return self.convert()
        if self.at("("):
            self.reject("SN112", "a query or a part of a union does not stand in parentheses", self.token.span,
                        "leave the parentheses out", ("SELECT",))  # fmt: skip
        self.fail("a query", STATEMENTS[:4])

    def convert(self):
        """`RSTREAM ( query )` and its like."""
        token = self.take()
        opening = self.expect("(", help=f"{token.word} takes a query in parentheses")
        self.enter_level(opening)
        query = self.query()
        self.close_query(opening)
        self.depth -= 1
        return ConverterQuery(token.word, query, span=self.span_from(token.span.start))

    def _select(self):
        """SELECT to HAVING. A clause that cannot be read is Bad; a FROM that cannot be read is empty."""
        start = self.take().span.start
        levels = self.levels()
        distinct_span = self.token.span
        distinct = self.accept_distinct()
        items = self._items()
        entries = ()
        if self.accept("FROM"):
            entries = self.entries()
        else:
            self.report_unexpected("FROM", ("FROM",))
        found, grouping_span = {}, None
        while not self.at_any(_SELECT_ENDS):
            token = self.token
            if token.word not in ("WHERE", "GROUP", "HAVING"):
                if not self.correct_typo(QUERY_CLAUSES):
                    self._unexpected(entries, found)
                continue
            self.take()
            value = None
            try:
                value = self._grouping() if token.word == "GROUP" else self.expression()
            except ParseError:
                value = (Bad(span=token.span),) if token.word == "GROUP" else Bad(span=token.span)
                self.recover(levels, CLAUSE_STOPS)
            self._once(token, found)
            found.setdefault(token.word, value)
            if token.word != "WHERE":
                grouping_span = grouping_span or self.span_from(token.span.start)
        return Select(
            tuple(items), entries, found.get("WHERE"), found.get("GROUP", ()), found.get("HAVING"), distinct,
            span=self.span_from(start), distinct_span=distinct_span, grouping_span=grouping_span or NO_SPAN,
        )  # fmt: skip

    def _once(self, token, found):
        """Report a clause that stands twice or at the wrong place; it was read for the errors in it."""
        shown = _SHOWN.get(token.word, token.word)
        later = [word for word in found if QUERY_CLAUSES.index(word) > QUERY_CLAUSES.index(token.word)]
        if token.word in found:
            predicate = token.word in ("WHERE", "HAVING")
            help = f"one {shown} with AND between the predicates" if predicate else None
            self.report("SN110", f"{shown} is said twice", token.span, help=help)
        elif later:
            self.report("SN105", f"{shown} stands before {_SHOWN.get(later[0], later[0])}", token.span)

    def _unexpected(self, entries, found):
        """Complain about what is neither a clause nor the end of the query, and skip it."""
        if found:
            expected = ("an operator",) if "GROUP" not in list(found)[-1:] else (",",)
            rest = QUERY_CLAUSES[QUERY_CLAUSES.index(list(found)[-1]) + 1 :]
        else:
            expected, rest = (self.after_entry(entries[-1]) if entries else ()), QUERY_CLAUSES
        expected = (*expected, *(_SHOWN.get(word, word) for word in rest[:3]), "the end of the query")
        help = None
        if self.token.word == "FROM":
            help = "a query has one FROM; several extents stand in it with `,` between them"
        self.report_unexpected("a clause or the end of the query", expected, help or self.operator_hint())
        self.take()
        self.skip_to(CLAUSE_STOPS)

    # --- the SELECT list ---

    def _items(self):
        items = []
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

    def _item(self, before):
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
            self.fail("an expression", ("a column", "an expression"), help="the `,` before FROM is one too many")
        if token.word in ("FROM", "end"):
            self.fail("the SELECT list", ("a column", "an expression", "*"), help="SELECT * takes every column")
        expression = self.expression()
        return SelectItem(expression, self.alias(("FROM",)), span=self.span_from(start))

    def _no_from(self, last):
        """Say why neither `,` nor FROM stands behind an item of the SELECT list, or find that FROM is misspelt."""
        aliased = type(last) is Star or last.alias is not None
        expected = (",", "FROM") if aliased else ("an operator", "AS", ",", "FROM")
        help = self.operator_hint()
        if type(last) is Star and (self.at("AS") or self.peek().word in ("FROM", ",")):
            help = "`*` has no alias"
        elif self.token.word in NEVER_ALIASES and self.peek().word in ("FROM", ","):
            help = f"as an alias this word needs AS: AS {self.token.text}"
        elif type(last) is SelectItem and type(last.expr) is ColumnRef:
            self.reject_sql_alias(last.expr.name)
        if not self.correct_typo(("FROM",)):
            self.fail("`,` or FROM", expected, help=help)

    # --- GROUP BY, ORDER BY, LIMIT ---

    def _grouping(self):
        if not self.accept("BY"):
            self.report_unexpected("BY", ("BY",))
            self.suppress_errors()
        columns = [self._grouping_column()]
        while self.accept(","):
            columns.append(self._grouping_column())
        return tuple(columns)

    def _grouping_column(self):
        levels = self.levels()
        token = self.token
        try:
            column = self.expression()
            if type(column) in (ColumnRef, Bad):
                return column
            if not self.is_suppressed():
                self.report("SN105", "GROUP BY takes columns, no expressions", column.span, ("a column",),
                            "compute it in a subquery, with an alias, and group by that")  # fmt: skip
        except ParseError:
            self.recover(levels, LIST_STOPS)
        return Bad(span=token.span)

    def _order_and_limit(self):
        order_by, limit = (), None
        seen = {}
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
            seen[token.word] = True
            self._behind_order(token.word)
        return order_by, limit

    def _behind_order(self, word):
        """Skip what cannot stand behind ORDER BY or LIMIT."""
        while not self.at_any(_SELECT_ENDS) and not self.correct_typo(QUERY_CLAUSES[3:]):
            self.reject_sql_word()
            help = None
            if self.token.word in ("WHERE", "GROUP", "HAVING"):
                help = f"{_SHOWN.get(self.token.word, self.token.word)} stands before {_SHOWN.get(word, word)}"
            expected = (",", "ASC", "DESC", "NULLS", "LIMIT") if word == "ORDER" else ()
            self.report_unexpected("the end of the query", (*expected, "the end of the query"), help)
            self.take()
            self.skip_to(CLAUSE_STOPS)

    def _orders(self):
        orders = []
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

    def _order(self, start):
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

    def _limit(self):
        token = self.token
        value = self.count("the number of rows", least=0)
        return Number(value, span=token.span)
