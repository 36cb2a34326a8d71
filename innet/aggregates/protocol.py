"""The verbs of an aggregate, for whoever calls one or writes another.

An aggregate is an object without data of its own; what it knows of some groups is a *state*. Everything is columnar and
grouped: row i of a batch is `values[i]` for the group `groups[i]`, an int64 number below the state's `n_groups`.

`values`   int64 for integer, time and scaled, float64 for float, an object array for string
`valid`    which rows are there, None for all; nulls are left out by every aggregate (SEMANTICS 5.5, 10.5)
`weights`  int64, +1 for a row that comes and -1 for one that is taken back, None for all +1; -1 needs `can_undo`
`order`    for FIRST and LAST: two int64 arrays, tick and then site or index, compared in that order
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

Numbers = np.ndarray
"""Of int64."""


class StateField(NamedTuple):
    """A number in the partial state that a mote sends, and the bits that always suffice for it."""

    name: str
    bits: int


class EvaluableAggregate(Protocol):
    """What every aggregate can do: whole groups at once, from all their readings."""

    name: str
    type: str
    scale: int | None
    result: str
    """The type of the answers: integer, float, string, or scaled (then they are multiples of 10^-`scale`, too)."""
    is_mergeable: bool
    """Whether it has the verbs of Aggregate as well; those whose state would grow with the data have not (10.5)."""
    can_undo: bool
    """Whether taking a row back leaves exactly what would be there without it."""
    stretches: bool
    """Whether it has the verb `over`: told rows once for all the groups that they are in, from one to another."""

    def evaluate(
        self,
        n_groups: int,
        groups: Numbers,
        values: np.ndarray | None,
        valid: np.ndarray | None = None,
        order: tuple[Numbers, Numbers] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]: ...

    def over(
        self,
        n_groups: int,
        first: Numbers,
        last: Numbers,
        values: np.ndarray | None,
        valid: np.ndarray | None,
        once: Any,
    ) -> tuple[np.ndarray, np.ndarray]:
        """`evaluate` where row i is in the groups first[i] to last[i]. What is made with the same `once` may be shared."""

    def layout(self) -> tuple[StateField, ...] | None:
        """The fields of a partial state on a mote; None if it has none: motes know integers, and keep no readings."""


class MergeableAggregate(EvaluableAggregate, Protocol):
    """An aggregate whose states can be kept and put together. `update`, `undo`, `merge` and `grow` change the state."""

    def init(self, n_groups: int) -> Any: ...

    def update(
        self,
        state: Any,
        groups: Numbers,
        values: np.ndarray | None = None,
        valid: np.ndarray | None = None,
        weights: Numbers | None = None,
        order: tuple[Numbers, Numbers] | None = None,
    ) -> None:
        """Fold rows in. COUNT(*) is COUNT with neither values nor valid."""

    def undo(
        self,
        state: Any,
        groups: Numbers,
        values: np.ndarray | None = None,
        valid: np.ndarray | None = None,
    ) -> None:
        """Take back rows that were folded in."""

    def folded(
        self,
        counts: Numbers,
        groups: Numbers | None,
        values: np.ndarray | None = None,
        valid: np.ndarray | None = None,
        order: tuple[Numbers, Numbers] | None = None,
        once: Any = None,
    ) -> Any:
        """`init` and `update` in one; `counts` are the rows of each group, and where `groups` are None, each is a group of its own.

        The state may share arrays: it is not changed."""

    def merge(self, state: Any, other: Any, into: Numbers) -> None:
        """Fold group g of another state into the group into[g]; several may go into one."""

    def merged(self, state: Any, other: Any, once: Any = None) -> Any:
        """A new state, group by group of both; it may share arrays with them, and is not changed."""

    def finalize(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """The answers, one for each group, and which of them are there (5.6). The state can be used further."""

    def grow(self, state: Any, n_groups: int) -> None:
        """More groups, empty ones at the end. It copies, so growing by a factor is cheaper than one by one."""

    def take(self, state: Any, positions: np.ndarray) -> Any:
        """A new state of the groups at these positions (numbers or a mask), in that order."""

    def concatenate(self, states: Sequence[Any], once: Any = None) -> Any:
        """A new state of all groups of these, one state after the other. With `once` it may share arrays: it is not changed."""

    def spread(self, state: Any, n_groups: int, into: Numbers, once: Any) -> Any:
        """A new state of so many groups, of which each of `into` is one of these and the others are empty; it is not changed."""

    def dump(self, state: Any) -> dict[str, np.ndarray]:
        """The state as arrays by name. What knows the same dumps the same, however it came to know it."""

    def load(self, dumped: Mapping[str, np.ndarray]) -> Any: ...

    def nbytes(self, state: Any) -> int: ...
