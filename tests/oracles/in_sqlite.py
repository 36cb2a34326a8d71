"""A second opinion: the relational part of each window, asked of SQLite as one SQL query made from the syntax tree.

The windows of FROM become tables, everything behind them is SQLite's. Features that SQL defines differently raise `NotInSqliteError`.
"""

import math
import sqlite3
from itertools import product

from basestation.language import syntax
from tests.oracles.binding import QueryBinder
from tests.oracles.deliveries import last_moment
from tests.oracles.expressions import Binder, Scope
from tests.oracles.recompute import QueryContext, make_world, read_query
from tests.oracles.relational import SelectWindows
from tests.oracles.schema import read_schema
from tests.oracles.values import COMPARISONS, plain
from tests.oracles.windows import WindowProduct, most_recent


class NotInSqliteError(Exception):
    """SQLite has no such thing, or means something else by it."""


def disagreements(schema, inputs, text):
    """(how many windows were compared, [(window, rows of the oracle, rows of SQLite)])."""
    statement = read_query(text)[0]
    if (
        not isinstance(statement, syntax.QueryStatement)
        or statement.loops
        or not isinstance(statement.query, syntax.Select)
    ):
        raise NotInSqliteError("not a plain window query")
    extents = read_schema(schema)
    inputs = {name: inputs.get(name, []) for name in extents}
    until = last_moment(extents, inputs, [])
    query = QueryBinder(make_world(extents, inputs, [], until), QueryContext(1000)).query(statement.query)
    if not isinstance(query, SelectWindows) or not isinstance(query.product, WindowProduct):
        raise NotInSqliteError("not a window query")
    answers = []
    for clock in range(until + 1):  # streams are looked at in every step
        answers = query.windows(clock)
    found, compared = [], 0
    for combination, window in zip(combinations(query.product, until), answers, strict=True):
        rows = ask(statement.query, query.product.sources, combination)
        mine = [tuple(plain(v) for v in m.row) for m in window.members]
        compared += 1
        if not same_bag(mine, rows, rounding(combination)):
            found.append((window.key, mine, rows))
    return compared, found


def combinations(wanted, until):
    """The windows of FROM below each window of the answer (4.1 to 4.4)."""
    lists = [source.windows(until, until) for source in wanted.sources]
    if len(lists) == 1:
        return [(w,) for w in lists[0]]
    ticks = sorted({w.tick for windows in lists for w in windows})
    return [c for tick in ticks for c in product(*(most_recent(windows, tick) for windows in lists))]


def ask(select, sources, windows):
    """The rows SQLite gives for one combination of windows."""
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA case_sensitive_like = ON")
    names, columns = [], []
    for number, (source, window) in enumerate(zip(sources, windows, strict=True)):
        own = source.stream.columns if hasattr(source, "stream") else source.table.columns
        here = [f"c{i}" for i in range(len(own))]
        database.execute(f"CREATE TABLE e{number} ({', '.join(here)})")
        places = ", ".join("?" for _ in here)
        database.executemany(
            f"INSERT INTO e{number} VALUES ({places})", [[plain(v) for v in m.row] for m in window.members]
        )
        names += [f"e{number}.{c}" for c in here]
        columns += own
    with_sql = ToSql(Scope(tuple(columns)), names)
    try:
        return [tuple(row) for row in database.execute(with_sql.select(select, len(sources)))]
    except (sqlite3.OperationalError, OverflowError) as e:
        raise NotInSqliteError(str(e)) from e
    finally:
        database.close()


class ToSql:
    """Writes expressions as SQL."""

    FUNCTIONS = ("ABS", "COALESCE", "NULLIF", "LOWER", "UPPER", "LENGTH")
    AGGREGATES = ("COUNT", "MIN", "MAX", "SUM", "AVG")

    def __init__(self, scope, names):
        self.scope, self.names = scope, names

    def select(self, select, width):
        items = []
        for item in select.items:
            if isinstance(item, syntax.Star):
                wanted = item.qualifier.text if item.qualifier else None
                items += [
                    n for n, c in zip(self.names, self.scope.columns, strict=True) if wanted in (None, c.qualifier)
                ]
            else:
                items.append(self.expr(item.expr))
        sql = f"SELECT {', '.join(items)} FROM {', '.join(f'e{i}' for i in range(width))}"
        if select.where is not None:
            sql += f" WHERE {self.expr(select.where)}"
        if select.group_by:
            sql += f" GROUP BY {', '.join(self.expr(c) for c in select.group_by)}"
        if select.having is not None:
            sql += f" HAVING {self.expr(select.having)}"
        return sql

    def expr(self, e):
        match e:
            case syntax.Number(value=number):
                return repr(number)
            case syntax.String(value=text):
                return "'" + text.replace("'", "''") + "'"
            case syntax.Null():
                return "NULL"
            case syntax.ColumnRef():
                return self.names[self.scope.find(e.qualifier.text if e.qualifier else None, e.name.text)]
            case syntax.Unary():
                return f"({e.op} {self.expr(e.operand)})"
            case syntax.Binary(op="%"):
                raise NotInSqliteError("% makes integers of floats")
            case syntax.Binary() if e.op in COMPARISONS or e.op in ("AND", "OR", "+", "-", "*", "/"):
                left, right = self.expr(e.left), self.expr(e.right)
                if e.op == "/" and self._is_float(e):
                    left = f"CAST({left} AS REAL)"
                return f"({left} {e.op} {right})"
            case syntax.IsNull():
                return f"({self.expr(e.operand)} IS {'NOT ' * e.negated}NULL)"
            case syntax.Between():
                parts = self.expr(e.operand), self.expr(e.low), self.expr(e.high)
                return "({} {}BETWEEN {} AND {})".format(parts[0], "NOT " * e.negated, *parts[1:])
            case syntax.InList():
                return f"({self.expr(e.operand)} {'NOT ' * e.negated}IN ({', '.join(map(self.expr, e.items))}))"
            case syntax.Like():
                return f"({self.expr(e.operand)} {'NOT ' * e.negated}LIKE {self.expr(e.pattern)} ESCAPE '\\')"
            case syntax.Case():
                whens = " ".join(f"WHEN {self.expr(c)} THEN {self.expr(v)}" for c, v in e.branches)
                return f"CASE {whens} ELSE {self.expr(e.otherwise) if e.otherwise is not None else 'NULL'} END"
            case syntax.Call(star=True):
                return "COUNT(*)"
            case syntax.Call() if e.function in (*self.FUNCTIONS, *self.AGGREGATES):
                distinct = "DISTINCT " * e.distinct
                return f"{e.function}({distinct}{', '.join(map(self.expr, e.arguments))})"
        raise NotInSqliteError(type(e).__name__)

    def _is_float(self, e):
        # A branch that is an integer where the whole is a float is a float (14, on 10.4); SQLite types by value.
        everything = set(range(len(self.scope.columns)))
        return Binder(self.scope, everything).value(e)[0] == "float"


def rounding(windows):
    """How far off SQLite's sums of floats may be: they are rounded at every step, ours once (5.5)."""
    floats = [abs(v) for w in windows for m in w.members for v in m.row if isinstance(v, float)]
    return 1e-9 * max([1.0, *floats])


def same_bag(left, right, tolerance):
    """Equal as bags; floats up to the rounding of SQLite's additions."""
    rest = list(right)
    for row in left:
        match = next((r for r in rest if all(nearly_equal(a, b, tolerance) for a, b in zip(row, r, strict=True))), None)
        if match is None:
            return False
        rest.remove(match)
    return not rest


def nearly_equal(a, b, tolerance):
    if isinstance(a, float) and isinstance(b, int | float):
        return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=tolerance)
    return a == b and (a is None) == (b is None)
