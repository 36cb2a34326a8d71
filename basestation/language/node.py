"""Node: what every node of syntax has in common: it knows its place, and compares by what was said, not by where."""

from dataclasses import dataclass, field, fields
from functools import cache, partial

from gateway.source import Span

NO_SPAN = Span(0, 0)


# Nodes compare by Node's own methods, not by those that dataclass would make.
syntax_node = partial(dataclass, frozen=True, slots=True, eq=False)


def span_field():
    """A field that says where something stands; places do not take part in comparison."""
    return field(default=NO_SPAN, compare=False, repr=False, kw_only=True)


@cache
def _compared_fields(node_type):
    """The names of the fields that were said, as opposed to where."""
    return tuple(f.name for f in fields(node_type) if f.compare)


@syntax_node
class SyntaxNode:
    """Compared without recursion: a chain of ten thousand ANDs is a tree as deep as that."""

    span: Span = span_field()

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        pending = [(self, other)]
        while pending:
            mine, theirs = pending.pop()
            if mine is theirs:
                continue
            if type(mine) is not type(theirs):
                return False
            if isinstance(mine, SyntaxNode):
                pending += [(getattr(mine, name), getattr(theirs, name)) for name in _compared_fields(type(mine))]
            elif type(mine) is tuple:
                if len(mine) != len(theirs):
                    return False
                pending += zip(mine, theirs, strict=True)
            elif mine != theirs:
                return False
        return True

    def __hash__(self):
        pending, leaves = [self], []
        while pending:
            node = pending.pop()
            if isinstance(node, SyntaxNode):
                leaves.append(type(node))
                pending += [getattr(node, name) for name in _compared_fields(type(node))]
            elif type(node) is tuple:
                leaves.append(len(node))
                pending += node
            else:
                leaves.append(node)
        return hash(tuple(leaves))
