"""SyntaxNode: the base of all syntax nodes. A node has a span, and compares by its content, not by its span."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, dataclass_transform

from gateway.source import Span

NO_SPAN = Span(0, 0)

_Class = TypeVar("_Class")


def span_field(*, default: Span, kw_only: Literal[True]) -> Any:
    """A field for a span; spans do not take part in comparison."""
    return field(default=default, compare=False, repr=False, kw_only=kw_only)


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(span_field,))
def syntax_node(cls: type[_Class]) -> type[_Class]:
    """A frozen dataclass with slots that keeps the comparison of SyntaxNode."""
    make: Callable[[type[_Class]], type[_Class]] = dataclass(frozen=True, slots=True, eq=False)
    return make(cls)


_COMPARED: "dict[type[SyntaxNode], tuple[str, ...]]" = {}


def _compared_fields(node_type: "type[SyntaxNode]") -> tuple[str, ...]:
    """The names of the fields that take part in comparison."""
    found = _COMPARED.get(node_type)
    if found is None:
        found = _COMPARED[node_type] = tuple(f.name for f in fields(node_type) if f.compare)
    return found


@syntax_node
class SyntaxNode:
    """Compared without recursion: a chain of ten thousand ANDs is a tree of that depth."""

    span: Span = span_field(default=NO_SPAN, kw_only=True)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        pending: list[tuple[Any, Any]] = [(self, other)]
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

    def __hash__(self) -> int:
        pending: list[Any] = [self]
        leaves: list[Any] = []
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
