"""Expression: the base of all expressions; and Column, over which expressions are.

A `Column` is identified by its number alone, unique within a plan. So an expression keeps its meaning wherever a
rewrite moves it, and two uses of one extent never mix. The kinds of expressions are in `basestation.algebra.expressions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from acquisition.schema import Type


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the output of an operator. Only `id` identifies it; the other fields describe it."""

    id: int
    type: Type = field(compare=False)
    name: str | None = field(default=None, compare=False)  # None: computed, without an alias; no name refers to it
    qualifier: str | None = field(default=None, compare=False)
    scale: int | None = field(default=None, compare=False)  # values are integer multiples of 10^-scale
    unit: str | None = field(default=None, compare=False)  # a UCUM code
    text: str | None = field(default=None, compare=False)  # the text of the expression, if the column has no name

    @property
    def label(self) -> str:
        """The heading of the column in a result."""
        return self.name or self.text or f"#{self.id}"

    def __str__(self) -> str:
        if self.name is None:
            return self.label
        return f"{self.qualifier}.{self.name}" if self.qualifier else self.name


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """The base: an expression has a type (None for the bare NULL), parts, and is a predicate or a value."""

    @property
    def is_predicate(self) -> bool:
        """Whether its outcome is true, false or unknown, and not a value."""
        return False

    @property
    def identity(self) -> tuple[Any, ...]:
        """The fields that must be equal for two expressions of one kind to be equal."""
        return tuple(getattr(self, f.name) for f in fields(self) if f.compare)

    def __eq__(self, other: object) -> bool:
        """Equal if all fields are. Without recursion, as in `transform`: the depth of a tree is not bounded."""
        pending: list[tuple[object, object]] = [(self, other)]
        while pending:
            a, b = pending.pop()
            if a is b:
                continue
            if isinstance(a, Expression):
                if type(a) is not type(b) or not isinstance(b, Expression):
                    return False
                pending.extend(zip(a.identity, b.identity, strict=True))
            elif isinstance(a, tuple) and isinstance(b, tuple):
                if len(a) != len(b):
                    return False
                pending.extend(zip(a, b, strict=True))
            elif a != b:
                return False
        return True

    def __hash__(self) -> int:
        leaves: list[object] = []
        pending: list[object] = [self]
        while pending:
            found = pending.pop()
            if isinstance(found, Expression):
                leaves.append(type(found).__name__)
                pending.extend(found.identity)
            elif isinstance(found, tuple):
                leaves.append(len(found))
                pending.extend(found)
            else:
                leaves.append(found)
        return hash(tuple(leaves))

    @property
    def type(self) -> Type | None:
        """The type of its value; None for the bare NULL and for predicates."""
        return None

    @property
    def parts(self) -> "tuple[Expression, ...]":
        """The expressions directly below."""
        return ()

    def with_parts(self, parts: "Sequence[Expression]") -> "Expression":
        """This expression over other parts."""
        return self
