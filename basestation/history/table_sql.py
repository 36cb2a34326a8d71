"""Table SQL: stored extents and the history of streams, read at ticks or once (semantics 1.6, 2.6, 10.7)."""

from acquisition.extent import ExtentKind
from basestation.algebra.table import Once, Scan
from basestation.history.refusal import SparkRefusedError
from basestation.history.scalar_sql import columns_text, name_of
from basestation.history.source_sql import attribute_text, read_tuples
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
    table, low, high = read_table(statement, node, tick_ms)
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


def read_table(statement: SparkStatement, node: Scan | Once, tick_ms: int) -> tuple[str, str, str]:
    """(the part with the rows of a stored extent or a history, the columns with the first and last tick at which each is seen)."""
    source = statement.sources.get(node.extent.name)
    if source is None:
        raise SparkRefusedError(f"`{node.extent.name}` has no archive")
    rows = _history(statement, node, tick_ms) if node.history else _versions(statement, node, source)
    return rows, "_from", "_to"


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
    extent = node.extent
    known = {"tick": "_tick", "index": "_idx", "_site": "_site", "_arrival": "_arr"}
    if extent.kind is not ExtentKind.SENSED:
        known["_site"] = "CAST(NULL AS BIGINT)"
    attributes = [column for column in node.attributes if column.name not in known]
    entered = read_tuples(statement, extent, attributes, tick_ms)
    index = "CAST(NULL AS BIGINT)"
    if statement.is_ordered:
        number = (
            "dense_rank" if statement.sources[extent.name].is_corrected else "row_number"
        )  # versions share an index
        index = (
            f"CASE WHEN NOT _beyond THEN CAST({number}() OVER (PARTITION BY _beyond ORDER BY _arr, _ord) AS BIGINT) END"
        )
    columns = "".join(f", {known.get(c.name or '', name_of(c))} AS {name_of(c)}" for c in node.attributes)
    body = f"SELECT *, {index} AS _idx FROM {entered}"
    first, last = "_arr", f"{2**62}L"
    if statement.sources[extent.name].is_corrected:
        first, last = "greatest(_arr, coalesce(_since, _arr))", f"coalesce(_until - 1, {last})"
    return statement.add(
        "history",
        f"SELECT {first} AS _from, {last} AS _to, array(_arr, coalesce(_idx, {2**62}L)) AS _ord{columns} FROM ({body})",
    )
