"""The plan of a query: a tree of the algebra and the query's options. The correction of a REVISE, DELETE or INSERT."""

from dataclasses import dataclass

from acquisition.extent import Catalog, Extent
from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode, StreamNode
from basestation.language.syntax import Statement


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The clauses of a query about time and the network (semantics 10.7, 11). Durations in ticks; None: no clause."""

    since: int | None = None  # the tick at which it begins
    since_ago: int | None = None  # or how long before now
    acquire_every: int | None = None
    deliver_within: int | None = None
    run_for: int | None = None  # FOR
    lifetime: int | None = None
    whole_readings: bool = False  # motes deliver its readings one by one, since another engine answers it


@dataclass(frozen=True, slots=True)
class Plan:
    """A bound query. The engine can run it as it is; rewrites make it cheaper."""

    statement: Statement
    catalog: Catalog
    root: PlanNode
    is_one_off: bool = False
    options: QueryOptions = QueryOptions()
    extensions: tuple[tuple[str, str], ...] = ()  # used language extensions: (section, construct)

    @property
    def kind(self) -> str:
        """`stream` for a sequence of tuples, `window` for a sequence of windows."""
        return "stream" if isinstance(self.root, StreamNode) else "window"


@dataclass(frozen=True, slots=True)
class Correction:
    """REVISE, DELETE or INSERT, bound (12.2).

    `changes` pairs columns with their new values (REVISE); `rows` are the tuples of INSERT in the order of `columns`;
    `predicate` chooses the tuples (None: all).
    """

    statement: Statement
    extent: Extent
    how: str  # revise, delete, insert
    columns: tuple[Column, ...] = ()
    tags: tuple[Column, Column] | None = None
    predicate: Expression | None = None
    changes: tuple[tuple[Column, Expression], ...] = ()
    rows: tuple[tuple[Expression, ...], ...] = ()
