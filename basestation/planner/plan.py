"""Plan: what a statement became: a tree of the algebra with what is asked around it."""

from dataclasses import dataclass

from acquisition.extent import Catalog, Extent
from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode, StreamNode
from basestation.language.syntax import Statement


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What a query asks of the network and of time (SEMANTICS 10.7, 11). Durations in ticks."""

    since: int | None = None  # the tick it begins at
    since_ago: int | None = None  # or how long before now
    acquire_every: int | None = None
    deliver_within: int | None = None
    lasting: int | None = None  # FOR
    lifetime: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A query ready to be run."""

    statement: Statement
    catalog: Catalog
    root: PlanNode
    once: bool = False
    options: QueryOptions = QueryOptions()
    extensions: tuple[tuple[str, str], ...] = ()  # what part II adds that the query uses: (section, what)

    @property
    def kind(self):
        """`stream` or `window`: what the result is a sequence of."""
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
