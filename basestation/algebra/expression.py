"""Expression: what every expression has in common; and Column, which they are over.

A `Column` is known by its number alone, unique within a plan, so an expression means the same wherever a rewrite
moves it, and two uses of one extent never mix. The kinds of expressions are in `basestation.algebra.expressions`.
"""

from dataclasses import dataclass, field, fields

from acquisition.schema import Type


@dataclass(frozen=True, slots=True)
class Column:
    """A column of some operator's output; the number alone says which, the rest is what is known of it."""

    id: int
    type: Type = field(compare=False)
    name: str | None = field(default=None, compare=False)  # None: computed, without an alias; cannot be referred to
    qualifier: str | None = field(default=None, compare=False)
    scale: int | None = field(default=None, compare=False)  # values are integer multiples of 10^-scale
    unit: str | None = field(default=None, compare=False)
    text: str | None = field(default=None, compare=False)  # how it was written, where it has no name

    @property
    def label(self):
        """What heads the column in a result."""
        return self.name or self.text or f"#{self.id}"

    def __str__(self):
        if self.name is None:
            return self.label
        return f"{self.qualifier}.{self.name}" if self.qualifier else self.name


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """The base: an expression has a type (None for the bare NULL), parts, and says whether it is a predicate."""

    predicate = False

    @property
    def identity(self):
        """What must be equal for two expressions of one kind to be equal."""
        return tuple(getattr(self, f.name) for f in fields(self) if f.compare)

    def __eq__(self, other):
        """Equal where all is. Without recursion, as `transform`: the depth of a tree is not bounded."""
        pending = [(self, other)]
        while pending:
            a, b = pending.pop()
            if a is b:
                continue
            if isinstance(a, Expression):
                if type(a) is not type(b):
                    return False
                pending.extend(zip(a.identity, b.identity, strict=True))
            elif isinstance(a, tuple) and isinstance(b, tuple):
                if len(a) != len(b):
                    return False
                pending.extend(zip(a, b, strict=True))
            elif a != b:
                return False
        return True

    def __hash__(self):
        told, pending = [], [self]
        while pending:
            found = pending.pop()
            if isinstance(found, Expression):
                told.append(type(found).__name__)
                pending.extend(found.identity)
            elif isinstance(found, tuple):
                told.append(len(found))
                pending.extend(found)
            else:
                told.append(found)
        return hash(tuple(told))

    @property
    def type(self):
        return None

    @property
    def parts(self):
        """The expressions directly below."""
        return ()

    def with_parts(self, parts):
        """This expression over other parts."""
        return self
