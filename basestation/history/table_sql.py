"""Table SQL: stored extents and the history of streams, read at ticks or once (semantics 1.6, 2.6, 10.7)."""

from basestation.algebra.table import Once, Scan
from basestation.history.refusal import SparkRefusedError
from basestation.history.scalar_sql import columns_text, name_of
from basestation.history.source_sql import attribute_text
from basestation.history.statement import ArchiveView, Grid, SparkStatement, WindowRelation
from basestation.history.window_sql import grid_windows, make_grid, spread


def read_scan(statement: SparkStatement, node: Scan, tick_ms: int) -> WindowRelation:
    """A window with the table at each multiple of the interval."""
    return _read(statement, node, make_grid(statement, node.interval), tick_ms)


def read_once(statement: SparkStatement, node: Once, tick_ms: int) -> WindowRelation:
    """The table when the query is asked."""
    ask = statement.span.ask
    return _read(statement, node, Grid(ask, 1, ask), tick_ms)


def _read(statement: SparkStatement, node: Scan | Once, grid: Grid, tick_ms: int) -> WindowRelation:
    if node.extent.name not in statement.sources:
        raise SparkRefusedError(f"`{node.extent.name}` has no archive")
    source = statement.sources[node.extent.name]
    if node.history:
        table, low, high = _history(statement, node, tick_ms), "_arr", f"{grid.last}L"
    else:
        table, low, high = _versions(statement, node, source), "_from", "_to"
    columns = columns_text(node.columns)
    if grid.is_empty:
        body = f"SELECT CAST(NULL AS BIGINT) AS _w, 1L AS _n, _ord{columns} FROM {table} WHERE FALSE"
    elif grid.first == grid.last:
        body = f"SELECT {grid.first}L AS _w, 1L AS _n, _ord{columns} FROM {table} WHERE {low} <= {grid.first} AND {high} >= {grid.first}"
    else:
        window, where = spread(low, high, grid)
        body = f"SELECT {window} AS _w, 1L AS _n, _ord{columns} FROM {table} WHERE {where}"
    return WindowRelation(
        statement.add("rows", body), grid_windows(statement, grid), grid, frozenset({node.extent.name})
    )


def _versions(statement: SparkStatement, node: Scan | Once, source: ArchiveView) -> str:
    """The rows of all versions, with the first and last tick at which each is the newest."""
    columns = "".join(f", {attribute_text(node.extent, column)} AS {name_of(column)}" for column in node.attributes)
    last = "".join(
        f" WHEN _version = {version} THEN {following - 1}L"
        for version, following in zip(source.versions, source.versions[1:], strict=False)
    )
    until = f"CASE{last} ELSE {2**62}L END" if last else f"{2**62}L"
    return statement.add(
        "versions", f"SELECT _version AS _from, {until} AS _to, array(_position) AS _ord{columns} FROM {source.name}"
    )


def _history(statement: SparkStatement, node: Scan | Once, tick_ms: int) -> str:
    """All tuples of a stream with their arrival; those beyond the horizon too, without an index."""
    raise SparkRefusedError("HISTORY is not compiled yet")
