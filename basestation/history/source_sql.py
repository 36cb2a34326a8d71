"""Source SQL: the tuples of an extent from its archived deliveries (semantics 1.3 to 1.5): which are taken in, when they enter, in which order."""

from collections.abc import Sequence
from datetime import date

from acquisition.extent import Extent, ExtentKind, LatePolicy
from acquisition.schema import Type
from acquisition.ticks import date_of, grid_at_or_after
from basestation.algebra.expression import Column
from basestation.history.correction_sql import check_deletions, read_current, read_lives, read_versions
from basestation.history.refusal import SparkRefusedError
from basestation.history.scalar_sql import SQL_TYPES, name_of
from basestation.history.statement import ArchiveView, SparkStatement, StreamRelation
from basestation.history.stations import STATION, is_of_stations

Ticks = tuple[int, int]
"""The least and the greatest tick that windows may hold."""
_EVER = 2**62


def read_extent(
    statement: SparkStatement,
    extent: Extent,
    attributes: Sequence[Column],
    ticks: Ticks,
    tick_ms: int,
    interval: int | None,
) -> StreamRelation:
    """The stream of a sensed or pushed extent, of the ticks given; with an interval only its multiples."""
    source = statement.sources.get(extent.name)
    if source is None:
        raise SparkRefusedError(f"`{extent.name}` has no archive")
    if source.is_corrected and (statement.is_ordered or statement.is_limited):
        raise SparkRefusedError(f"rows, indexes or FOR over `{extent.name}`, whose archive holds corrections")
    statement.scalars.largest |= {
        c: source.largest[c.name] for c in attributes if c.name is not None and c.name in source.largest
    }
    if statement.is_ordered or statement.has_arrivals:
        ticks = (-_EVER, _EVER)  # lateness and rows depend on the tuples before
    taken = _taken(statement, source, attributes, ticks, tick_ms)
    entered = _entered(statement, extent, taken)
    where = [] if interval in (None, extent.interval) else [f"_tick % {interval} = 0"]
    index = "row_number() OVER (ORDER BY _arr, _ord)" if statement.is_ordered else "CAST(NULL AS BIGINT)"
    second = "_site" if extent.kind is ExtentKind.SENSED else "_idx"
    columns = "".join(f", {name_of(column)}" for column in attributes)
    body = f"SELECT _tick, _site, _late, _dlv, _arr, _ord, CAST({index} AS BIGINT) AS _idx{columns} FROM {entered}"
    if where:
        body = f"SELECT * FROM ({body}) WHERE {' AND '.join(where)}"
    body = f"SELECT *, {second} AS _sec FROM ({body})"
    name = statement.add(extent.name, body)
    return StreamRelation(name, extent.late is LatePolicy.APPEND, frozenset({extent.name}))


def read_tuples(statement: SparkStatement, extent: Extent, attributes: Sequence[Column], tick_ms: int) -> str:
    """The tuples of the history of an extent, with `_beyond`: whether one lies beyond the horizon and never entered."""
    source = statement.sources[extent.name]
    taken = _taken(statement, source, attributes, (-_EVER, _EVER), tick_ms, with_history=True)
    return _entered(statement, extent, taken, with_history=True)


def _taken(
    statement: SparkStatement,
    source: ArchiveView,
    attributes: Sequence[Column],
    ticks: Ticks,
    tick_ms: int,
    with_history: bool = False,
) -> str:
    """The first delivery of each tuple; those set aside as off the schedule or too far ahead left out."""
    extent = source.extent
    if source.is_corrected:
        return _taken_corrected(statement, source, attributes, ticks, tick_ms, with_history)
    columns = "".join(f", {attribute_text(extent, column)} AS {name_of(column)}" for column in attributes)
    station = f", {STATION}" if is_of_stations(extent) else ""
    where = ["_weight = 1", "coalesce(_revision, 0) = 0", "_tick >= 0"]  # files of layout 1 have no `_revision`
    if ticks[0] > -_EVER:
        where += _day_range(ticks, tick_ms)
    if extent.ahead is not None:
        where.append(f"_tick - _arrival <= {extent.ahead}")
    if extent.kind is not ExtentKind.SENSED:
        body = f"SELECT _tick, _site, _arrival AS _dlv, coalesce(_index, 0L) AS _pos{station}{columns} FROM {source.name} WHERE {' AND '.join(where)}"
        if source.is_unique(*_days(ticks, tick_ms)):
            return statement.add("taken", body)
        copies = f"SELECT *, row_number() OVER (PARTITION BY _pos, _dlv, _tick{station} ORDER BY _tick) AS _copy FROM (\n{body})"
        return statement.add("taken", f"SELECT * FROM (\n{copies}) WHERE _copy = 1 OR _pos = 0")
    sites = ", ".join(map(str, extent.sites or ()))
    where += [f"_tick % {extent.interval} = 0", f"_site IN ({sites})" if sites else "FALSE"]
    body = f"SELECT _tick, _site, _arrival AS _dlv, coalesce(_index, 0L) AS _pos{station}{columns} FROM {source.name} WHERE {' AND '.join(where)}"
    if source.is_unique(*_days(ticks, tick_ms)):
        return statement.add("taken", body)
    copies = (
        f"SELECT *, row_number() OVER (PARTITION BY _site, _tick{station} ORDER BY _dlv, _pos) AS _copy FROM (\n{body})"
    )
    return statement.add("taken", f"SELECT * FROM (\n{copies}) WHERE _copy = 1")


def _taken_corrected(
    statement: SparkStatement,
    source: ArchiveView,
    attributes: Sequence[Column],
    ticks: Ticks,
    tick_ms: int,
    with_history: bool,
) -> str:
    """The tuples as revised so far; with the history, all their versions."""
    extent = source.extent
    columns = "".join(f", {attribute_text(extent, column)} AS {name_of(column)}" for column in attributes)
    where = ["_weight <> 0", "_tick >= 0"]
    if ticks[0] > -_EVER:
        where += _day_range(ticks, tick_ms)
    if extent.ahead is not None:
        where.append(f"_tick - _arrival <= {extent.ahead}")
    if extent.kind is ExtentKind.SENSED:
        sites = ", ".join(map(str, extent.sites or ()))
        where += [f"_tick % {extent.interval} = 0", f"_site IN ({sites})" if sites else "FALSE"]
    system = "_tick, _site, _arrival AS _clock, coalesce(_index, 0L) AS _pos, _weight, coalesce(_revision, 0) AS _rev"
    station = f", {STATION}" if is_of_stations(extent) else ""
    rows = f"SELECT {system}{station}{columns} FROM {source.name} WHERE {' AND '.join(where)}"
    lives = read_lives(statement, extent, rows)
    is_judged = extent.kind is ExtentKind.SENSED and _needs_lateness(statement, extent)
    if is_judged or (with_history and statement.is_ordered):
        check_deletions(
            statement, extent, lives, f"a tuple of `{extent.name}` was deleted before its tick was complete"
        )
    if with_history:
        return read_versions(statement, extent, lives, attributes)
    return read_current(statement, extent, lives, attributes)


def _needs_lateness(statement: SparkStatement, extent: Extent) -> bool:
    """Whether it must be known of each tuple if it came late."""
    horizon = extent.horizon if extent.late is LatePolicy.REVISE else None
    return (
        statement.is_ordered
        or statement.has_arrivals
        or extent.late is not LatePolicy.REVISE
        or (horizon is not None and horizon < extent.wait)
    )


def _days(ticks: Ticks, tick_ms: int) -> tuple[date, date]:
    """The UTC days of ticks."""
    first, last = max(0, ticks[0]), min(ticks[1], 253_402_300_799_000 // tick_ms)
    return date_of(first, tick_ms), date_of(max(first, last), tick_ms)


def _day_range(ticks: Ticks, tick_ms: int) -> list[str]:
    """Conditions on the tick, and on the day, so that Spark opens only the files of those days."""
    if ticks[1] < max(0, ticks[0]):
        return ["FALSE"]
    first, last = _days(ticks, tick_ms)
    return [f"_tick BETWEEN {ticks[0]} AND {ticks[1]}", f"`date` BETWEEN DATE'{first}' AND DATE'{last}'"]


def _entered(statement: SparkStatement, extent: Extent, taken: str, with_history: bool = False) -> str:
    """The tuples that enter the stream or belong to windows, with `_late`, `_arr` and `_ord`."""
    horizon = extent.horizon if extent.late is LatePolicy.REVISE else None
    if not _needs_lateness(statement, extent):
        where = "" if horizon is None else f" WHERE _dlv - _tick <= {horizon}"
        return statement.add(
            "entered",
            f"SELECT *, FALSE AS _late, _tick AS _arr, CAST(array() AS ARRAY<BIGINT>) AS _ord FROM {taken}{where}",
        )
    if is_of_stations(extent):
        raise SparkRefusedError(
            "what depends on lateness or the order of arrivals, over many stations: each has its own clock"
        )
    is_sensed = extent.kind is ExtentKind.SENSED
    judged = (
        _judge_sensed(statement, extent, taken)
        if is_sensed
        else f"SELECT *, _tick + {extent.wait} < _dlv AS _late FROM {taken}"
    )
    on_time = "_tick" if is_sensed else "least(_tick, _dlv)"
    order = "array(_dlv, _pos)"
    if is_sensed:
        sites = ", ".join(f"{site}L" for site in extent.sites or (0,))
        order = f"array(if(_late, 1L, 0L), if(_late, _tick, 0L), array_position(array({sites}), _site))"
    where, beyond = "TRUE", "FALSE"
    if extent.late is LatePolicy.DROP:
        where = "NOT _late"
    elif horizon is not None:
        beyond = f"(_late AND _dlv - _tick > {horizon})"
        where = "TRUE" if with_history else f"NOT {beyond}"
    statement.entered[extent.name] = name = statement.add(
        "entered",
        f"SELECT *, if(_late, _dlv, {on_time}) AS _arr, {order} AS _ord, {beyond} AS _beyond FROM (\n{judged}) WHERE {where}",
    )
    return name


def _judge_sensed(statement: SparkStatement, extent: Extent, taken: str) -> str:
    """With `_late`: whether the watermark had passed the tick before the delivery (semantics 1.5).

    A due tick is done when all its sites have delivered, at the latest after the wait; the watermark passes a tick when all due
    ticks up to it are done.
    """
    interval = extent.interval or 1
    first = grid_at_or_after(statement.span.first, interval)
    sites = len(extent.sites or ())
    due = statement.add(
        "due",
        f"SELECT explode(sequence({first}L, greatest({first}L, _last), {interval}L)) AS _due "
        f"FROM (SELECT max(_tick) AS _last FROM {taken}) WHERE _last IS NOT NULL",
    )
    done = (
        f"SELECT _due, max(CASE WHEN _count = {sites} THEN greatest(_due, least(_last, _due + {extent.wait})) ELSE _due + {extent.wait} END) "
        f"OVER (ORDER BY _due) AS _done FROM {due} LEFT JOIN (\n"
        f"SELECT _tick AS _of, count(DISTINCT _site) AS _count, max(_dlv) AS _last FROM {taken} GROUP BY _tick) ON _of = _due"
    )
    return f"SELECT t.*, coalesce(d._done < t._dlv, t._tick + {extent.wait} < t._dlv) AS _late FROM {taken} t LEFT JOIN (\n{done}) d ON d._due = t._tick"


def attribute_text(extent: Extent, column: Column) -> str:
    """A column of the files as the statement has it: a scaled one as whole multiples."""
    site, time = extent.site_attribute, extent.time_attribute
    if site is not None and column.name == site.name:
        return "_site"
    if time is not None and column.name == time.name:
        return "_tick"
    text = f"`{column.name}`"
    if column.scale is not None:
        near = f"CAST({text} AS DOUBLE)"
        return (
            f"(CASE WHEN abs({near}) < 1E{15 - column.scale}D THEN CAST(rint({near} * 1E{column.scale}D) AS BIGINT) "
            f"ELSE CAST({text} * CAST('1E{column.scale}' AS DECIMAL(19,0)) AS BIGINT) END)"
        )
    return f"CAST({text} AS {SQL_TYPES[column.type]})" if column.type is not Type.STRING else text
