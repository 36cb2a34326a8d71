"""What motes can do, as operators: a language of its own, much smaller than the base station's algebra.

"Can a mote run this?" means "can it be said with these?". Each operator is a frozen value in a file of its own. At the
top stands a Deliver, which sends readings, or a Fold, which sends partials; below it selections, joins, and at the
bottom what is sampled.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MoteOperator:
    """Something a mote does with the tuples of one epoch."""

    @property
    def children(self) -> tuple["MoteOperator", ...]:
        return ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """What a tuple of the result consists of."""
        raise TypeError(f"{type(self).__name__} does not say its attributes")

    def label(self) -> str:
        """The operator as one line of explain."""
        raise TypeError(f"{type(self).__name__} has no label")


def walk(operator: MoteOperator) -> Iterator[MoteOperator]:
    """The operator and everything below it, from the top."""
    yield operator
    for child in operator.children:
        yield from walk(child)


def outline(operator: MoteOperator) -> list[tuple[int, str]]:
    """The labels of an operator and of all below it, each with its depth."""
    return [
        (0, operator.label()),
        *((depth + 1, text) for child in operator.children for depth, text in outline(child)),
    ]
