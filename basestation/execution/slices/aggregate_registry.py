"""Asked: the aggregates that somebody asks for of the same slices and groups, each there once, for as long as it is asked for."""

from basestation.algebra.expression_signature import signature
from basestation.algebra.expressions import columns_of
from basestation.execution.columns.intern_table import InternTable
from basestation.execution.relational.aggregation import evaluate_argument, make_aggregate
from innet.aggregates import create_mote_aggregate
from innet.aggregates.identity_memo import IdentityMemo
from innet.aggregates.state import as_mergeable


class AggregateRegistry:
    """Aggregates are known by numbers. Whoever keeps states takes note of others in a time of its own, with `renew`.

    States stand in the order of `made`; `places` say where that is, by number.
    """

    def __init__(self):
        self._kinds, self._aggregates, self.places = InternTable(), [], {}
        self.made = [create_mote_aggregate("COUNT")]  # how many tuples a group has: without any it is gone
        self.columns = set()  # that they are computed from

    def take(self, aggregates):
        """[(column, number)] of such pairs with aggregates; each is asked for until it is let go of."""
        return [(column, self._kinds.take(signature(each), each)) for column, each in aggregates]

    def release(self, number):
        """An aggregate is asked for once less."""
        self._kinds.release(number)

    @property
    def current(self):
        """Whether there are states of what is asked for, and of nothing else."""
        return [number for number, _ in self._kinds.items()] == list(self.places)

    def renew(self):
        """States are of what is asked for now, in another order. (where each of them was, None of new ones; the new places)."""
        before, known, asked = self.places, self.made, self._kinds.items()
        self.places = {number: at for at, (number, _) in enumerate(asked, 1)}
        self._aggregates = [aggregate for _, aggregate in asked]
        self.made = [
            known[0],
            *(known[before[n]] if n in before else as_mergeable(make_aggregate(each)) for n, each in asked),
        ]
        self.columns = {column.id for each in self._aggregates for column in columns_of(each)}
        come_from = [0, *map(before.get, self.places)]
        return come_from, [at for at, was in enumerate(come_from) if was is None]

    def aggregate_rows(self, counts, key, tuples, stream):
        """The states of as many groups as `counts` has, which are the tuples of each; `key` has that of each tuple."""
        rest = self.folded_at(range(1, len(self.made)), counts, key, tuples, stream)
        return [self.made[0].aggregate_rows(counts, key), *rest]

    def folded_at(self, places, counts, key, tuples, stream):
        """Those at some places, without the first."""
        # Of one tick, tuples take their indexes in the order in which they came; not in a union, which is not sliced.
        order, once, columns = (
            (tuples.tick, tuples.site if stream.by_site else tuples.ident),
            IdentityMemo(),
            tuples.columns,
        )
        asked = [(self.made[at], self._aggregates[at - 1]) for at in places]
        return [
            made.aggregate_rows(counts, key, *evaluate_argument(each, columns, len(tuples)), order, once)
            for made, each in asked
        ]

    @property
    def can_undo(self):
        return all(each.can_undo for each in self.made)

    def undo(self, states, at, tuples):
        """Take tuples back out of the states of those groups that they are in."""
        self.made[0].undo(states[0], at)
        for made, state, aggregate in zip(self.made[1:], states[1:], self._aggregates, strict=True):
            made.undo(state, at, *evaluate_argument(aggregate, tuples.columns, len(tuples)))
