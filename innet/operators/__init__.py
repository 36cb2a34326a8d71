"""What motes can do, as operators: a language of its own, much smaller than the base station's algebra.

"Can a mote run this?" means "can it be said with these?". Each operator is a frozen value in a file of its own.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operator:
    """Something a mote does with the tuples of one epoch."""

    @property
    def children(self) -> tuple["Operator", ...]:
        return ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """What a tuple of the result consists of."""
        raise TypeError(f"{type(self).__name__} does not say its attributes")

    def label(self) -> str:
        """The operator as one line of explain."""
        raise TypeError(f"{type(self).__name__} has no label")
