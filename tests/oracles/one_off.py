"""One-off queries: SQL's SELECT over tables, once, at the query's start (2.6, 10.6)."""

from basestation.language import syntax
from tests.oracles.errors import RejectedError
from tests.oracles.expressions import Binder, Env, Member, Scope, has_aggregate
from tests.oracles.relational import groups
from tests.oracles.select_list import aggregates_here, grouping, select_list
from tests.oracles.windows import Window


class OneOff:
    """A one-off query. It is a window query with exactly one window, at its start."""

    def __init__(self, binder, select):
        self.binder, self.select, self.context = binder, select, binder.context
        self.tables = []
        self.sources = [self._source(entry) for entry in select.entries]
        self.scope = Scope(tuple(c for columns, _ in self.sources for c in columns))
        self.where = self._binder().predicate(select.where) if select.where is not None else None
        aggregated = aggregates_here(select) or any(has_aggregate(o.expr) for o in select.order_by)
        self.group = (grouping(select, self.scope) or set()) if aggregated else None
        self.group_places = [
            self.scope.find(c.qualifier.text if c.qualifier else None, c.name.text) for c in select.group_by
        ]
        self.having = self._binder(self.group).predicate(select.having) if select.having is not None else None
        self.columns, self.items, _ = select_list(select.items, self.scope, self._binder(self.group))
        self.order = [self._order(o) for o in select.order_by]
        self.moment = (0, 0)  # tick and clock of the evaluation that is going on

    @classmethod
    def union(cls, parts, columns, query):
        return _OneOffUnion(parts, columns, query)

    def _binder(self, group=None):
        return Binder(self.scope, group, self._subquery)

    def _subquery(self, query):
        """A subquery outside FROM; it does not see the outer FROM (7)."""
        inner = self.binder.query(query)
        if not isinstance(inner, (OneOff, _OneOffUnion)):
            raise RejectedError("static", "a subquery outside FROM is a one-off query")
        self.tables += inner.tables
        return inner.columns, lambda: inner.rows(*self.moment)

    # --- FROM --------------------------------------------------------------------------------------------------------

    def _source(self, entry):
        """(columns, function of tick and clock that gives rows) of an entry or a join of entries."""
        if not isinstance(entry, syntax.Join):
            table = self.binder.table(entry)
            self.tables.append(table)
            return table.columns, table.scan
        left_columns, left = self._source(entry.left)
        right_columns, right = self._source(entry.right)
        columns = (*left_columns, *right_columns)
        holds = None
        if entry.condition is not None:
            holds = Binder(Scope(columns), None, self._subquery).predicate(entry.condition)
        nothing_left, nothing_right = (None,) * len(left_columns), (None,) * len(right_columns)

        def joined(tick, clock):
            lefts, rights = left(tick, clock), right(tick, clock)
            matched, rows = set(), []
            for a in lefts:
                hits = [i for i, b in enumerate(rights) if holds is None or holds(Env(row=a + b)) is True]
                matched.update(hits)
                rows += [a + rights[i] for i in hits]
                if not hits and entry.kind in ("LEFT", "FULL"):
                    rows.append(a + nothing_right)
            if entry.kind in ("RIGHT", "FULL"):
                rows += [nothing_left + b for i, b in enumerate(rights) if i not in matched]
            return rows

        return columns, joined

    def _product(self, tick, clock):
        rows = [()]
        for _, source in self.sources:
            rows = [a + b for a in rows for b in source(tick, clock)]  # the left tuple first (6.4)
        return rows

    # --- the rest ----------------------------------------------------------------------------------------------------

    def _order(self, order):
        """(function of Env and output row, descending, nulls first); SELECT aliases are allowed (10.6)."""
        expr = order.expr
        if isinstance(expr, syntax.Number):
            raise RejectedError("static", "a constant sorts nothing")  # positions are no part of the language
        named = []
        if isinstance(expr, syntax.ColumnRef) and not expr.qualifier:  # a column that kept its qualifier has no alias
            named = [i for i, c in enumerate(self.columns) if c.name == expr.name.text and c.qualifier is None]
        if named:
            return (lambda env, row: row[named[0]]), order
        shown = any(isinstance(i, syntax.Star) or i.expr == expr for i in self.select.items)
        if self.select.distinct and not shown:
            raise RejectedError("static", "after DISTINCT only what is in the SELECT list can be sorted by")
        _, function = self._binder(self.group).value(expr)
        return (lambda env, row: function(env)), order

    def rows(self, tick, clock):
        self.moment = (tick, clock)
        kept = [row for row in self._product(tick, clock) if self.where is None or self.where(Env(row=row)) is True]
        if self.group is None:
            envs = [Env(row=row) for row in kept]
        else:
            envs = groups([Member(row) for row in kept], self.group_places, self.having)
        pairs = [(env, tuple(item(env) for item in self.items)) for env in envs]
        if self.select.distinct:
            seen, once = set(), []
            for env, row in pairs:
                if row not in seen:
                    seen.add(row)
                    once.append((env, row))
            pairs = once
        pairs = in_order(pairs, self.order)
        return limited([row for _, row in pairs], self.select.limit)

    # --- as a window query -------------------------------------------------------------------------------------------

    def watermark(self, clock):
        return min(table.watermark(clock) for table in self.tables)

    def windows(self, clock):
        start = self.context.start
        if start > self.watermark(clock):
            return []
        members = tuple(Member(row) for row in self.rows(start, clock))
        return [Window(start, 1, None, members, ())]  # 2.6: exactly one window, with that tick

    def nothing(self, clock):
        return []


class _OneOffUnion(OneOff):
    """UNION ALL of one-off queries; ORDER BY and LIMIT belong to the whole."""

    def __init__(self, parts, columns, query):
        self.parts, self.columns, self.query, self.context = parts, columns, query, parts[0].context
        self.tables = [table for part in parts for table in part.tables]
        binder = Binder(Scope(columns))
        self.order = []
        for order in query.order_by:
            if isinstance(order.expr, syntax.Number):
                raise RejectedError("static", "a constant sorts nothing")
            self.order.append(((lambda env, row, f=binder.value(order.expr)[1]: f(Env(row=row))), order))

    def rows(self, tick, clock):
        pairs = [(None, row) for part in self.parts for row in part.rows(tick, clock)]
        return limited([row for _, row in in_order(pairs, self.order)], self.query.limit)


def in_order(pairs, order):
    """ORDER BY: nulls first ascending, last descending, unless it says otherwise; equal ones stay as they are."""
    for key, by in reversed(order):
        keyed = [(key(env, row), (env, row)) for env, row in pairs]
        present = [k for k in keyed if k[0] is not None]
        nulls = [k for k in keyed if k[0] is None]
        present.sort(key=lambda k: k[0], reverse=by.descending)
        nulls_first = by.nulls_first if by.nulls_first is not None else not by.descending
        pairs = [pair for _, pair in (nulls + present if nulls_first else present + nulls)]
    return pairs


def limited(rows, limit):
    return rows if limit is None else rows[: limit.value]
