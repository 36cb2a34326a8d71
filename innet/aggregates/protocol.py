"""The interface of an aggregate, for its callers and for those who add one.

An aggregate is an object without data of its own; its knowledge of some groups is a *state*. Everything is columnar and
grouped: row i of a batch is `values[i]` for the group `groups[i]`, an int64 number below the number of groups.

| argument | type | meaning |
|---|---|---|
| `values` | int64 for integer, time and scaled; float64 for float; object for string | one value per row |
| `valid` | bool, or None for all | rows that have a value; every aggregate ignores nulls (semantics 5.5, 10.5) |
| `weights` | int64, or None for all +1 | +1 inserts a row, -1 retracts it; -1 needs `can_undo` |
| `order` | two int64 arrays: tick, then site or index | for FIRST and LAST, compared in that order |
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, TypeAlias

from acquisition.arrays import AnyArray, BoolArray, IntArray
from innet.aggregates.identity_memo import IdentityMemo

Answers: TypeAlias = tuple[AnyArray, BoolArray]
"""(values, valid): one answer per group; it is missing where `valid` is False (semantics 5.6)."""
Order: TypeAlias = tuple[IntArray, IntArray]
"""(tick, site or index) of each row."""


class StateField(NamedTuple):
    """One integer of the state that a mote sends, and the number of bits that always suffices for it."""

    name: str
    bits: int


class EvaluableAggregate(ABC):
    """An aggregate that evaluates whole groups at once, from all their rows.

    Mergeable aggregates add states: `innet.aggregates.state.StateAggregate`.
    """

    name: str
    """The name in the language."""
    is_mergeable = False
    """Whether it is a StateAggregate; the state of the others would grow with the data (semantics 10.5)."""
    can_undo = False
    """Whether retracting a row leaves exactly the state without it."""

    def __init__(self, type: str, scale: int | None = None) -> None:
        self.type, self.scale = type, scale

    @property
    def result(self) -> str:
        """The type of the answers: integer, float, string, or scaled (multiples of 10^-`scale`)."""
        return self.type

    @property
    def can_evaluate_ranges(self) -> bool:
        """Whether it has `evaluate_ranges`."""
        return False

    @abstractmethod
    def evaluate(
        self,
        n_groups: int,
        groups: IntArray,
        values: AnyArray | None = None,
        valid: BoolArray | None = None,
        order: Order | None = None,
    ) -> Answers:
        """Return the answer of each group, from rows that each belong to one group."""

    def evaluate_ranges(
        self,
        n_groups: int,
        first: IntArray,
        last: IntArray,
        values: AnyArray | None,
        valid: BoolArray | None,
        memo: IdentityMemo,
    ) -> Answers:
        """Return the answer of each group, where row i belongs to all groups from first[i] to last[i].

        Calls with the same `memo` share intermediate arrays.
        """
        raise TypeError(f"{self.name} cannot evaluate ranges of groups")

    @abstractmethod
    def layout(self) -> tuple[StateField, ...] | None:
        """Return the fields of its state on a mote, or None: motes know integers only, and keep no rows."""
