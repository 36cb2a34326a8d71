"""Answers of history: a query over an archive in Spark, its result as an Arrow table."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from acquisition.extent import Extent
from basestation.algebra import expressions as ex
from basestation.algebra.node import walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.table import Once, Scan
from basestation.archive.spark.session import report_failures
from basestation.history.archive_views import Version, name_source, open_views
from basestation.history.compiler import CompiledQuery, compile_plan
from basestation.history.refusal import SparkRefusedError
from basestation.history.statement import HistoryRange
from basestation.planner.plan import Plan

if TYPE_CHECKING:
    from basestation.archive.spark.session import DataFrame, SparkSession


def find_extents(plan: Plan) -> list[Extent]:
    """The extents that a query reads, each once, those of its subqueries too."""
    found: dict[str, Extent] = {}
    pending = [plan.root]
    while pending:
        for node in walk(pending.pop()):
            if isinstance(node, StreamAcquire | StreamReceive | Scan | Once):
                found[node.extent.name] = node.extent
            pending += [
                part.plan for e in node.expressions for part in ex.walk(e) if isinstance(part, ex.SubqueryExpression)
            ]
    return list(found.values())


def prepare(
    plan: Plan, tables: Mapping[str, Sequence[Version]], span: HistoryRange, corrected: Collection[str] = ()
) -> CompiledQuery:
    """The statement of a query, before there is a Spark. SparkRefusedError where Spark cannot answer it exactly.

    `corrected` are the extents whose archive holds corrections.
    """
    sources = {
        e.name: name_source(e, tables.get(e.name, ()), is_corrected=e.name in corrected) for e in find_extents(plan)
    }
    return compile_plan(plan, sources, span)


def answer(
    session: "SparkSession",
    root: Path,
    plan: Plan,
    tables: Mapping[str, Sequence[Version]],
    span: HistoryRange,
    skipped: Collection[Path] = (),
) -> pa.Table:
    """The answer of a query, by tick. SparkRefusedError where Spark cannot give it exactly, SparkFailedError where it fails."""
    with report_failures():
        return open_answer(session, root, plan, tables, span, skipped).toArrow()


def open_answer(
    session: "SparkSession",
    root: Path,
    plan: Plan,
    tables: Mapping[str, Sequence[Version]],
    span: HistoryRange,
    skipped: Collection[Path] = (),
) -> "DataFrame":
    """The answer of a query as a data frame of Spark, which computes it when it is read. SparkRefusedError."""
    views = open_views(session, root, plan.catalog, find_extents(plan), tables, skipped=skipped)
    compiled = compile_plan(plan, views, span)
    run_checks(session, compiled)
    return session.sql(_ordered(compiled))


def run_checks(session: "SparkSession", compiled: CompiledQuery) -> None:
    """SparkRefusedError where the data rule out an exact answer."""
    for check in compiled.checks:
        [row] = session.sql(check.text).toArrow().to_pylist()
        if next(iter(row.values())):
            raise SparkRefusedError(check.reason)


def _ordered(compiled: CompiledQuery) -> str:
    columns = ", ".join(f"`{name.replace('`', '``')}`" for name in compiled.columns)
    return f"SELECT {columns} FROM (\n{compiled.text}) ORDER BY {compiled.order}"
