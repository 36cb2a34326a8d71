"""Converter SQL: from windows back to a stream (semantics 6): the rows of each window, or its differences from the window before."""

from collections.abc import Sequence

from basestation.algebra.converters import Converter, DStream, IStream
from basestation.history.refusal import SparkRefusedError
from basestation.history.scalar_sql import columns_text, name_of
from basestation.history.statement import SparkStatement, StreamRelation, WindowRelation


def convert(statement: SparkStatement, node: Converter, relation: WindowRelation) -> StreamRelation:
    """The stream of RSTREAM, ISTREAM or DSTREAM."""
    columns = columns_text(node.columns)
    if isinstance(node, IStream | DStream):
        if any(column in statement.scalars.inexact for column in node.columns):
            raise SparkRefusedError(
                "ISTREAM and DSTREAM compare values that Spark rounds otherwise than the live engine"
            )
        body = _difference(statement, node, relation)
    else:
        body = f"SELECT _w, _n, _ord{columns} FROM {relation.name}"
    tagged = f"SELECT _w AS _tick, _w AS _arr, concat(array(_n), _ord) AS _ord{columns} FROM ({body})"
    index = "row_number() OVER (ORDER BY _arr, _ord)" if statement.is_ordered else "NULL"
    numbered = f"SELECT *, CAST({index} AS BIGINT) AS _idx FROM ({tagged})"
    name = statement.add("converted", f"SELECT *, _idx AS _sec FROM ({numbered})")
    return StreamRelation(name, False, relation.extents, is_converted=True)


def _difference(statement: SparkStatement, node: Converter, relation: WindowRelation) -> str:
    """Of equal rows the first ones of a window pair with those of the other; the rest is the difference."""
    columns = [name_of(column) for column in node.columns]
    listed = ", ".join(columns)
    numbered = statement.add(
        "numbered",
        f"SELECT _w, _n, CAST(row_number() OVER (ORDER BY _w, _n) AS BIGINT) AS _q FROM {relation.windows}",
    )
    rows = statement.add(
        "rows",
        f"SELECT r.*, w._q FROM {relation.name} r JOIN {numbered} w ON w._w = r._w AND w._n = r._n",
    )
    if not statement.is_ordered:
        return _count_difference(statement, isinstance(node, IStream), rows, numbered, columns)
    copies = f"SELECT *, row_number() OVER (PARTITION BY _q, {listed} ORDER BY _ord) AS _copy FROM {rows}"
    # ISTREAM subtracts the window before from each window, DSTREAM each window from the one before it.
    shift = 1 if isinstance(node, IStream) else -1
    counts = f"SELECT _q + {shift} AS _of, {', '.join(f'{c} AS p{c}' for c in columns)}, count(1) AS _count FROM {rows} GROUP BY _q, {listed}"
    equal = " AND ".join(f"{c} <=> p{c}" for c in columns)
    left = f"SELECT l.* FROM ({copies}) l LEFT JOIN ({counts}) p ON _of = _q AND {equal} WHERE _copy > coalesce(_count, 0L)"
    if isinstance(node, IStream):
        return left
    return f"SELECT n._w, n._n, l._ord, {', '.join(f'l.{c}' for c in columns)} FROM ({left}) l JOIN {numbered} n ON n._q = l._q + 1"


def _count_difference(
    statement: SparkStatement, is_istream: bool, rows: str, numbered: str, columns: Sequence[str]
) -> str:
    """The difference where the order of rows does not matter: each row counts in its window, and against it in the next one."""
    listed = ", ".join(columns)
    first, second = (1, -1) if is_istream else (-1, 1)
    signed = (
        f"SELECT {listed}, inline(array(struct(_q AS _at, {first}L AS _sign), struct(_q + 1 AS _at, {second}L AS _sign))) "
        f"FROM {rows}"
    )
    counted = f"SELECT _at, {listed}, sum(_sign) AS _more FROM ({signed}) GROUP BY _at, {listed} HAVING sum(_sign) > 0"
    each = statement.add(
        "difference", f"SELECT _at, {listed}, explode(sequence(1L, _more)) AS _copy FROM (\n{counted})"
    )
    found = ", ".join(f"d.{c}" for c in columns)
    empty = "CAST(array() AS ARRAY<BIGINT>)"
    return f"SELECT n._w, n._n, {empty} AS _ord, {found} FROM {each} d JOIN {numbered} n ON n._q = d._at"
