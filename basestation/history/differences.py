"""Differences: what an answer over the archive has now, and did not have over what had arrived by an earlier tick, and the reverse."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acquisition.schema import Type
from basestation.algebra.node import walk
from basestation.algebra.window import LoopWindow
from basestation.archive.spark.session import report_failures
from basestation.history.answer import find_extents, run_checks
from basestation.history.archive_views import Version, open_views
from basestation.history.compiler import CompiledQuery, compile_plan
from basestation.history.statement import HistoryRange
from basestation.planner.plan import Plan

if TYPE_CHECKING:
    from basestation.archive.spark.session import SparkSession

CHANGE = "_change"
"""The column that says whether a row was `removed` or `added`."""
ADDED, REMOVED = "added", "removed"
_TOLERANCE = 1e-12
"""Of a value: some thousands of roundings."""
_TYPES = {Type.INTEGER: pa.int64(), Type.TIME: pa.int64(), Type.FLOAT: pa.float64(), Type.STRING: pa.string()}
Row = Mapping[str, Any]


def compare_answers(
    session: "SparkSession",
    root: Path,
    plan: Plan,
    tables: Mapping[str, Sequence[Version]],
    span: HistoryRange,
    since: int,
    skipped: Collection[Path] = (),
) -> pa.Table:
    """The rows in which the answer differs from the one over what had arrived by the tick `since`, window by window.

    SparkRefusedError where Spark cannot give one of the answers exactly, SparkFailedError where it fails.
    """
    with report_failures():
        compiled: list[CompiledQuery] = []
        for prefix, arrived_by in (("then_", since), ("now_", None)):
            views = open_views(session, root, plan.catalog, find_extents(plan), tables, prefix, skipped, arrived_by)
            compiled.append(compile_plan(plan, views, span, prefix))
            run_checks(session, compiled[-1])
        then, now = compiled
        found = session.sql(_differing(then, now)).toArrow()
    rows = _cancel_roundings([*_expand(found.to_pylist())], now)
    columns = [*now.tags, CHANGE, *now.names]
    schema = pa.schema(
        [pa.field(name, pa.string()) if name == CHANGE else found.schema.field(name) for name in columns]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def no_differences(plan: Plan, query: CompiledQuery) -> pa.Table:
    """The table of differences where there are none; `query` is the plan, compiled."""
    loops = {node.loop for node in walk(plan.root) if isinstance(node, LoopWindow)}
    types = {name: pa.int64() for name in query.tags}
    if len(loops) > 1:
        types["_t"] = pa.list_(pa.int64())
    types[CHANGE] = pa.string()
    for name, column in zip(query.names, plan.root.columns, strict=True):
        types[name] = pa.float64() if column.scale is not None else _TYPES[column.type]
    return pa.table({name: pa.array([], kind) for name, kind in types.items()})


def _differing(then: CompiledQuery, now: CompiledQuery) -> str:
    """Each row that one answer has more often than the other, with the surplus of the one of now."""
    columns = ", ".join(f"`{name.replace('`', '``')}`" for name in now.columns)
    return (
        f"SELECT {columns}, SUM(_sign) AS {CHANGE} FROM (\n"
        f"SELECT {columns}, 1 AS _sign FROM (\n{now.text})\nUNION ALL\n"
        f"SELECT {columns}, -1 AS _sign FROM (\n{then.text}))\n"
        f"GROUP BY {columns} HAVING SUM(_sign) <> 0 ORDER BY {columns}"
    )


def _expand(found: Sequence[Row]) -> Iterator[Row]:
    for row in found:
        for _ in range(abs(row[CHANGE])):
            yield {**row, CHANGE: ADDED if row[CHANGE] > 0 else REMOVED}


def _cancel_roundings(rows: Sequence[Row], query: CompiledQuery) -> list[Row]:
    """Leave out pairs of rows that differ only in the last digits of floats, which Spark adds in any order."""
    exact = [name for name in query.columns if name not in query.inexact]
    removed: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if query.inexact and row[CHANGE] == REMOVED:
            removed.setdefault(tuple(row[name] for name in exact), []).append(row)
    dropped = set()
    for row in rows:
        if row[CHANGE] == ADDED:
            alike = removed.get(tuple(row[name] for name in exact), [])
            other = next((each for each in alike if all(_is_same(each[n], row[n]) for n in query.inexact)), None)
            if other is not None:
                alike.remove(other)
                dropped |= {id(row), id(other)}
    return [row for row in rows if id(row) not in dropped]


def _is_same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=_TOLERANCE, abs_tol=0)
