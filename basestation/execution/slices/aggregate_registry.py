"""Aggregate registry: the aggregates that queries read of the same slices and groups, each computed once."""

from collections.abc import Iterable, Sequence

from acquisition.arrays import IntArray
from basestation.algebra.expression import Column
from basestation.algebra.expression_signature import signature
from basestation.algebra.expressions import Aggregate, columns_of
from basestation.execution.columns.intern_table import InternTable
from basestation.execution.columns.tuples import Tuples
from basestation.execution.relational.aggregation import evaluate_argument, make_aggregate
from basestation.execution.streams.stream import Stream
from innet.aggregates import create_mote_aggregate
from innet.aggregates.identity_memo import IdentityMemo
from innet.aggregates.state import AggregateState, StateAggregate, as_mergeable


class AggregateRegistry:
    """Numbers aggregates and counts their users. The owner of states takes changes over when it calls `renew`.

    `functions` are in the order of the states; `positions` has the position of each aggregate by its number.
    """

    def __init__(self) -> None:
        self._used: InternTable[Aggregate] = InternTable()
        self._aggregates: list[Aggregate] = []
        self.positions: dict[int, int] = {}
        self.functions: list[StateAggregate] = [create_mote_aggregate("COUNT")]
        """The first one counts tuples: a group without any does not exist."""
        self.columns: set[int] = set()
        """The ids of the columns that aggregates are computed from."""

    def take(self, aggregates: Iterable[tuple[Column, Aggregate]]) -> list[tuple[Column, int]]:
        """(column, number) of each (column, aggregate), in use until it is released."""
        return [(column, self._used.take(signature(each), each)) for column, each in aggregates]

    def release(self, number: int) -> None:
        """End one use of an aggregate."""
        self._used.release(number)

    @property
    def in_use(self) -> list[Aggregate]:
        """The aggregates in use."""
        return [aggregate for _, aggregate in self._used.items()]

    @property
    def current(self) -> bool:
        """Whether there are states for exactly the aggregates in use."""
        return [number for number, _ in self._used.items()] == list(self.positions)

    @property
    def has_new(self) -> bool:
        """Whether there are no states for one of the aggregates in use."""
        return any(number not in self.positions for number, _ in self._used.items())

    def renew(self) -> tuple[list[int | None], list[int]]:
        """Rearrange for the aggregates in use: (the old position of each function, None of new ones; positions of new ones)."""
        before, known, used = self.positions, self.functions, self._used.items()
        self.positions = {number: at for at, (number, _) in enumerate(used, 1)}
        self._aggregates = [aggregate for _, aggregate in used]
        self.functions = [
            known[0],
            *(known[before[n]] if n in before else as_mergeable(make_aggregate(each)) for n, each in used),
        ]
        self.columns = {column.id for each in self._aggregates for column in columns_of(each)}
        sources = [0, *map(before.get, self.positions)]
        return sources, [at for at, source in enumerate(sources) if source is None]

    def aggregate_rows(
        self, counts: IntArray, key: IntArray | None, tuples: Tuples, stream: Stream
    ) -> list[AggregateState]:
        """The states of groups: counts[g] tuples are in group g, tuple i in group key[i]; without `key`, in group i."""
        rest = self.aggregate_at(range(1, len(self.functions)), counts, key, tuples, stream)
        return [self.functions[0].aggregate_rows(counts, key), *rest]

    def aggregate_at(
        self, positions: Sequence[int], counts: IntArray, key: IntArray | None, tuples: Tuples, stream: Stream
    ) -> list[AggregateState]:
        """The states of the functions at some positions, without the first."""
        # Tuples of one tick get their indexes in the order of their numbers; not in a union, which is not sliced.
        order = (tuples.tick, tuples.site if stream.by_site else tuples.ident)
        memo, columns = IdentityMemo(), tuples.columns
        states = []
        for at in positions:
            values, valid = evaluate_argument(self._aggregates[at - 1], columns, len(tuples))
            states.append(self.functions[at].aggregate_rows(counts, key, values, valid, order, memo))
        return states

    @property
    def can_undo(self) -> bool:
        """Whether all functions can take a tuple back out of their states."""
        return all(each.can_undo for each in self.functions)

    def undo(self, states: Sequence[AggregateState], at: IntArray, tuples: Tuples) -> None:
        """Take tuples out of the states of groups: tuple i out of group at[i]."""
        self.functions[0].undo(states[0], at)
        for function, state, aggregate in zip(self.functions[1:], states[1:], self._aggregates, strict=True):
            function.undo(state, at, *evaluate_argument(aggregate, tuples.columns, len(tuples)))
