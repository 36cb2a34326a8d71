"""The operators that motes can run: a language of its own, much smaller than the base station's algebra.

A mote can run a query if these operators can express it. Each operator is a frozen value in a file of its own. At the
top of a tree stands a Deliver, which sends readings, or a Fold, which sends partials; below it selections and joins; at
the bottom the acquisition of readings.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MoteOperator:
    """The base of the operators, which process the tuples of one epoch."""

    @property
    def children(self) -> tuple["MoteOperator", ...]:
        """The operators whose output it reads."""
        return ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of its output tuples."""
        raise TypeError(f"{type(self).__name__} does not declare its attributes")

    def label(self) -> str:
        """Return the operator as one line of EXPLAIN."""
        raise TypeError(f"{type(self).__name__} has no label")


def walk(operator: MoteOperator) -> Iterator[MoteOperator]:
    """Yield the operator and all operators below it, from the top."""
    yield operator
    for child in operator.children:
        yield from walk(child)


def outline(operator: MoteOperator) -> list[tuple[int, str]]:
    """Return (depth, label) of an operator and of all operators below it."""
    return [
        (0, operator.label()),
        *((depth + 1, text) for child in operator.children for depth, text in outline(child)),
    ]
