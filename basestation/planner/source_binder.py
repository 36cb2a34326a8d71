"""Binds the source of a FROM entry: an extent, its history, or a subquery of type stream (semantics 2.2, 2.7)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from acquisition.extent import Catalog, Extent, ExtentKind
from basestation.algebra.expression import Column
from basestation.algebra.node import PlanNode, StreamNode
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.table import Once
from basestation.language import syntax
from basestation.planner.diagnostic_report import Report
from basestation.planner.plan import QueryOptions
from basestation.planner.scope import extent_columns, history_columns, requalify, tag_columns
from gateway.source import did_you_mean


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound query or source. `interval` is that of the one sensed extent below a plain stream, in ticks."""

    node: PlanNode
    columns: tuple[Column, ...]  # under the names that enclosing queries use
    is_one_off: bool = False
    interval: int | None = None

    @property
    def is_stream(self) -> bool:
        return isinstance(self.node, StreamNode)


Subquery: TypeAlias = syntax.ScalarSubquery | syntax.Exists | syntax.InQuery


class QueryContext(Protocol):
    """The state of a statement that the parts of the binder share; QueryBinder implements it."""

    catalog: Catalog
    report: Report
    new_id: Callable[[], int]
    options: QueryOptions
    streams: list[Extent]

    def query(self, written: syntax.QueryExpression) -> Bound | None:
        """The bound query, or None after an error."""

    def subquery(self, written: Subquery) -> PlanNode | None:
        """The node of a one-off subquery outside FROM, or None after an error."""

    def no_subquery(self, written: Subquery) -> None:
        """Report a subquery outside FROM where none may stand."""


@dataclass(frozen=True, slots=True)
class BoundEntry:
    """A bound entry of FROM, without its window."""

    written: syntax.FromEntry
    name: str | None
    bound: Bound

    @property
    def is_table(self) -> bool:
        return isinstance(self.bound.node, Once)


def bind_source(entry: syntax.FromEntry, binder: QueryContext) -> BoundEntry | None:
    """The bound entry, or None after an error."""
    if isinstance(entry.source, syntax.ExtentSource):
        return _extent(entry, entry.source.name, entry.source.history, binder)
    bound = binder.query(entry.source.query)
    if bound is None:
        return None
    if not bound.is_stream:
        what, instead = "a window query", "make a stream of it: RSTREAM(…), ISTREAM(…) or DSTREAM(…)"
        if bound.is_one_off:
            what = "a one-off query"
            instead = "read the tables themselves, with it in an expression: … = (SELECT …), … IN (SELECT …), EXISTS (SELECT …)"
        binder.report.error(
            "SN407", f"{what} cannot stand in FROM: its result is no stream", entry.source, help=instead
        )
        return None
    name = entry.alias.text if entry.alias else None
    if name is not None:
        bound = Bound(bound.node, requalify(bound.columns, name), bound.is_one_off, bound.interval)
    return BoundEntry(entry, name, bound)


def _extent(
    entry: syntax.FromEntry, written: syntax.Name, with_history: bool, binder: QueryContext
) -> BoundEntry | None:
    extent = binder.catalog.find(written.text)
    if extent is None:
        names = [e.name for e in binder.catalog]
        binder.report.error(
            "SN201",
            f"there is no extent `{written.text}`",
            written,
            expected=names if len(names) <= 8 else (),
            help=did_you_mean(written.text, names),
        )
        return None
    name = entry.alias.text if entry.alias else extent.name
    if with_history:
        if extent.kind is ExtentKind.STORED:
            binder.report.error(
                "SN428",
                f"`{extent.name}` is a stored extent: it has versions, not a history",
                entry.source,
                help=f"read `{extent.name}` itself",
            )
            return None
        columns = history_columns(extent, name, binder.new_id)
        return BoundEntry(entry, name, Bound(Once(extent, columns, history=True), columns))
    columns = extent_columns(extent, name, binder.new_id)
    if extent.kind is ExtentKind.STORED:
        return BoundEntry(entry, name, Bound(Once(extent, columns), columns))
    binder.streams.append(extent)
    tags = tag_columns(name, binder.new_id)
    if extent.kind is ExtentKind.PUSHED:
        return BoundEntry(entry, name, Bound(StreamReceive(extent, columns, tags), columns))
    interval = binder.options.acquire_every or extent.interval or 1
    return BoundEntry(entry, name, Bound(StreamAcquire(extent, interval, columns, tags), columns, interval=interval))
