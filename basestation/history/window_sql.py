"""Window SQL: windows over streams and tables (semantics 3, 10.3, 10.8), each tuple once for each window that holds it."""

from acquisition.ticks import grid_at_or_after
from basestation.algebra.window import LandmarkWindow, RowWindow, TimeWindow
from basestation.history.refusal import SparkRefusedError
from basestation.history.scalar_sql import columns_text
from basestation.history.statement import Grid, SparkStatement, StreamRelation, WindowRelation


def grid_windows(statement: SparkStatement, grid: Grid) -> str:
    """The part that lists the windows of a grid."""
    if grid.is_empty:
        return statement.add("windows", "SELECT CAST(NULL AS BIGINT) AS _w, 1L AS _n WHERE FALSE")
    return statement.add(
        "windows", f"SELECT explode(sequence({grid.first}L, {grid.last}L, {grid.slide}L)) AS _w, 1L AS _n"
    )


def make_grid(statement: SparkStatement, slide: int) -> Grid:
    """The multiples of a slide in the span of the query (semantics 1.1)."""
    first = grid_at_or_after(statement.span.start, slide)
    return Grid(first, slide, statement.span.until // slide * slide)


def spread(low: str, high: str, grid: Grid) -> tuple[str, str]:
    """(the windows of a grid from the tick `low` to `high`, the condition that there are some)."""
    first = f"greatest({grid.first}L, -floor(-({low}) / {grid.slide}D) * {grid.slide}L)"
    last = f"least({grid.last}L, floor(({high}) / {grid.slide}D) * {grid.slide}L)"
    return f"explode(sequence({first}, {last}, {grid.slide}L))", f"{first} <= {last}"


def time_windows(statement: SparkStatement, node: TimeWindow, stream: StreamRelation) -> WindowRelation:
    """The window at w holds the tuples with w + begin <= tick <= w + end."""
    grid = make_grid(statement, node.slide)
    columns = columns_text(node.columns)
    where = "TRUE"
    if node.end < node.begin or grid.is_empty:
        window, where = "CAST(NULL AS BIGINT)", "FALSE"
    elif node.begin == node.end == 0:
        window = "_tick"
        where = f"_tick BETWEEN {grid.first} AND {grid.last}" + (
            f" AND _tick % {node.slide} = 0" if node.slide > 1 else ""
        )
    elif node.end - node.begin < node.slide:  # no two windows hold one tuple
        window = f"greatest({grid.first}L, ceil((_tick - ({node.end}L)) / {node.slide}D) * {node.slide}L)"
        where = f"{window} <= least({grid.last}L, _tick - ({node.begin}L))"
    else:
        window, where = spread(f"_tick - ({node.end}L)", f"_tick - ({node.begin}L)", grid)
    body = f"SELECT {window} AS _w, 1L AS _n, array(_idx) AS _ord, _tick, _sec, _arr{columns} FROM {stream.name} WHERE {where}"
    if stream.is_append:
        body = f"SELECT * FROM ({body}) WHERE _arr <= _w"
    name = statement.add("rows", body)
    return WindowRelation(name, grid_windows(statement, grid), grid, stream.extents, has_order=True)


def numbered_rows(statement: SparkStatement, stream: StreamRelation) -> str:
    """The stream with `_row`, counted from the start of the query: earlier tuples are rows 0, -1, … (semantics 1.1)."""
    before = f"sum(if(_arr < {statement.span.start}, 1L, 0L)) OVER ()"
    return statement.add(
        "numbered",
        f"SELECT *, row_number() OVER (ORDER BY _arr, _ord) - {before} AS _row FROM {stream.name} WHERE _arr <= {statement.span.until}",
    )


def row_windows(statement: SparkStatement, node: RowWindow, stream: StreamRelation) -> WindowRelation:
    """The window at row k holds the rows k + begin to k + end; its tick is the arrival of row k."""
    numbered = numbered_rows(statement, stream)
    windows = statement.add(
        "windows",
        f"SELECT _arr AS _w, CAST(row_number() OVER (PARTITION BY _arr ORDER BY _row) AS BIGINT) AS _n, _row AS _of FROM {numbered} "
        f"WHERE _row >= {node.slide} AND _row % {node.slide} = 0",
    )
    if node.end < node.begin:
        members = f"SELECT *, 0L AS _k FROM {numbered} WHERE FALSE"
    else:
        low = f"greatest({node.slide}L, -floor(-(_row - ({node.end}L)) / {node.slide}D) * {node.slide}L)"
        high = f"floor((_row - ({node.begin}L)) / {node.slide}D) * {node.slide}L"
        members = (
            f"SELECT *, explode(sequence({low}, {high}, {node.slide}L)) AS _k FROM {numbered} WHERE {low} <= {high}"
        )
    name = statement.add(
        "rows",
        f"SELECT _w, _n, array(_row) AS _ord, _tick, _sec{columns_text(node.columns)} FROM ({members}) JOIN {windows} ON _of = _k",
    )
    most = max(0, node.end - node.begin + 1)
    return WindowRelation(name, windows, None, stream.extents, has_order=True, most_rows=most)


def landmark_windows(statement: SparkStatement, node: LandmarkWindow, stream: StreamRelation) -> WindowRelation:
    """Every slide, all tuples since the start of the query (semantics 10.3)."""
    start = statement.span.start
    columns = columns_text(node.columns)
    if node.rows:
        numbered = numbered_rows(statement, stream)
        windows = statement.add(
            "windows",
            f"SELECT _arr AS _w, CAST(row_number() OVER (PARTITION BY _arr ORDER BY _row) AS BIGINT) AS _n, _row AS _of FROM {numbered} "
            f"WHERE _row >= {node.slide} AND _row % {node.slide} = 0",
        )
        name = statement.add(
            "rows",
            f"SELECT _w, _n, array(_row) AS _ord, _tick, _sec{columns} FROM {numbered} JOIN {windows} ON _row >= 1 AND _row <= _of",
        )
        return WindowRelation(name, windows, None, stream.extents, has_order=True)
    grid = make_grid(statement, node.slide)
    if grid.is_empty:
        raise SparkRefusedError("the range holds no window of the query")
    window, where = spread("_tick", f"{grid.last}L", grid)
    body = f"SELECT {window} AS _w, 1L AS _n, array(_idx) AS _ord, _tick, _sec, _arr{columns} FROM {stream.name} WHERE _tick >= {start} AND {where}"
    if stream.is_append:
        body = f"SELECT * FROM ({body}) WHERE _arr <= _w"
    return WindowRelation(
        statement.add("rows", body), grid_windows(statement, grid), grid, stream.extents, has_order=True
    )
