"""PlanNode: the base of every operator of the algebra.

A node is a frozen value. It knows its children and the columns of its result, and copies itself with other children.
Tuples of a stream carry two tags, tick and index, that selections and projections never change (semantics 1.7).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import is_not
from typing import Self, TypeVar

from basestation.algebra.expression import Column, Expression


@dataclass(frozen=True, slots=True)
class PlanNode:
    """The base of operators; the kinds are in the other modules of this room, one each."""

    @property
    def children(self) -> "tuple[PlanNode, ...]":
        """The nodes that it reads, in the order of FROM."""
        return ()

    def with_children(self, children: "Sequence[PlanNode]") -> Self:
        """This operator over other children, as many as before."""
        return self

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a tuple of the result."""
        raise TypeError(f"{type(self).__name__} defines no columns")

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that the operator itself evaluates."""
        return ()

    @property
    def operator(self) -> str:
        """Its name in the paper's algebra."""
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class StreamNode(PlanNode):
    """A node whose result is a stream of tagged tuples."""

    @property
    def tags(self) -> tuple[Column, Column]:
        """The tick and the index of its tuples, as columns that expressions may read."""
        raise TypeError(f"{type(self).__name__} defines no tags")


@dataclass(frozen=True, slots=True)
class WindowNode(PlanNode):
    """A node whose result is a stream of windows."""


_Node = TypeVar("_Node", bound=PlanNode)


def copy_with(node: _Node, **fields: object) -> _Node:
    """The node with other values of some fields."""
    return replace(node, **fields)


def walk(node: PlanNode) -> Iterator[PlanNode]:
    """The node and everything below it, top-down, left before right."""
    pending = [node]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(reversed(found.children))


def rebuild(node: PlanNode, change: Callable[[PlanNode], PlanNode]) -> PlanNode:
    """The plan with `change` applied to every node, bottom-up; the same object if nothing changed.

    Without recursion: a chain of joins is as deep as it is long.
    """
    done: list[PlanNode] = []
    pending = [(node, False)]
    while pending:
        found, below_done = pending.pop()
        children = found.children
        if children:
            if not below_done:
                pending.append((found, True))
                pending.extend([(child, False) for child in reversed(children)])
                continue
            changed = tuple(done[-len(children) :])
            del done[-len(children) :]
            if any(map(is_not, changed, children)):
                found = found.with_children(changed)
        done.append(change(found))
    return done[0]
