"""Node: what every operator of the algebra has in common.

A node is a frozen value: it knows its children, the columns it gives, how to copy itself with other children, and its
label. Streams carry two tags, tick and index, that selections and projections never touch (SEMANTICS 1.7).
"""

from dataclasses import dataclass

from basestation.algebra.expression import Column


@dataclass(frozen=True, slots=True)
class PlanNode:
    @property
    def children(self):
        return ()

    def with_children(self, children):
        return self

    @property
    def columns(self) -> tuple[Column, ...]:
        """What a tuple of the result consists of."""
        raise TypeError(f"{type(self).__name__} does not say its columns")

    @property
    def expressions(self):
        """The expressions that the operator itself evaluates."""
        return ()

    @property
    def operator(self):
        """The name in the paper's algebra."""
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class StreamNode(PlanNode):
    """A node whose result is a stream of tagged tuples."""

    @property
    def tags(self) -> tuple[Column, Column]:
        """The tick and the index of its tuples, as columns that expressions may use."""
        raise TypeError(f"{type(self).__name__} does not say its tags")


@dataclass(frozen=True, slots=True)
class WindowNode(PlanNode):
    """A node whose result is a stream of windows."""


def walk(node):
    """The node and everything below it, from the top, left before right."""
    pending = [node]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(reversed(found.children))


def rebuild(node, change):
    """The plan with `change` applied to every node from below; the same object where nothing changed.

    Without recursion: a chain of joins is as deep as it is long.
    """
    done, pending = [], [(node, False)]
    while pending:
        found, below_done = pending.pop()
        children = found.children
        if not below_done and children:
            pending.append((found, True))
            pending.extend((child, False) for child in reversed(children))
            continue
        changed = tuple(done[len(done) - len(children) :])
        del done[len(done) - len(children) :]
        if any(new is not old for new, old in zip(changed, children, strict=True)):
            found = found.with_children(changed)
        done.append(change(found))
    return done[0]
