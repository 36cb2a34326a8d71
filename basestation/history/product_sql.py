"""Product SQL: which windows of several inputs combine (semantics 4), and their tuples."""

from collections.abc import Sequence

from basestation.algebra.expression import Column
from basestation.history.scalar_sql import columns_text
from basestation.history.statement import SparkStatement, WindowRelation


def product(statement: SparkStatement, inputs: Sequence[tuple[WindowRelation, tuple[Column, ...]]]) -> WindowRelation:
    """Every combination of the most recent windows of all inputs; joined by tick alone where all have the same grid."""
    relations = [relation for relation, _ in inputs]
    extents = frozenset().union(*(relation.extents for relation in relations))
    grid = relations[0].grid
    selected = "".join(columns_text(columns) for _, columns in inputs)
    order = f"concat({', '.join(f'i{at}._ord' for at in range(len(inputs)))})"
    if grid is not None and all(relation.grid == grid for relation in relations):
        joined = f"{relations[0].name} i0" + "".join(
            f" JOIN {relation.name} i{at} ON i{at}._w = i0._w" for at, relation in enumerate(relations[1:], 1)
        )
        name = statement.add("product", f"SELECT i0._w, 1L AS _n, {order} AS _ord{selected} FROM {joined}")
        return WindowRelation(name, relations[0].windows, grid, extents)
    combined = combinations(statement, [relation.windows for relation in relations])
    # Windows of few rows first: Spark joins in the order of the text, and conditions on two inputs hold from the second one on.
    few_first = sorted(enumerate(relations), key=lambda each: (each[1].most_rows is None, each[1].most_rows or 0))
    joined = f"{combined} k" + "".join(
        f" JOIN {relation.name} i{at} ON i{at}._w = k._w{at} AND i{at}._n = k._n{at}" for at, relation in few_first
    )
    name = statement.add("product", f"SELECT k._w, k._n, {order} AS _ord{selected} FROM {joined}")
    return WindowRelation(name, combined, None, extents)


def combinations(statement: SparkStatement, windows: Sequence[str]) -> str:
    """At each tick of any input, all windows of the most recent tick of each: `_w`, `_n`, and `_w0`, `_n0`, … of the inputs."""
    places = range(len(windows))
    of_input = [
        "".join(f", {'_w' if at == of else 'CAST(NULL AS BIGINT)'} AS _w{at}" for at in places) for of in places
    ]
    ticks = " UNION ALL ".join(f"SELECT _w{own} FROM {name}" for own, name in zip(of_input, windows, strict=True))
    latest = ", ".join(f"max(max(_w{at})) OVER (ORDER BY _w) AS _w{at}" for at in places)
    each = statement.add("ticks", f"SELECT _w, {latest} FROM ({ticks}) GROUP BY _w")
    joined = "".join(f" JOIN {name} v{at} ON v{at}._w = t._w{at}" for at, name in enumerate(windows))
    order = ", ".join(f"v{at}._n" for at in places)
    numbers = ", ".join(f"v{at}._w AS _w{at}, v{at}._n AS _n{at}" for at in places)
    return statement.add(
        "combined",
        f"SELECT t._w, CAST(row_number() OVER (PARTITION BY t._w ORDER BY {order}) AS BIGINT) AS _n, {numbers} FROM {each} t{joined}",
    )
