"""QueryRegistry: the queries that run, with their variants, and the groups that answer them."""

from collections.abc import Callable, Hashable, Iterable, Iterator

from basestation.execution.interfaces import QueryGroup
from basestation.execution.output.plan_switch import PlanSwitch
from basestation.execution.running_query import RunningQuery
from basestation.updates.update import QueryFailure, SharedUpdate, Update, split_by_query


class QueryRegistry:
    """Queries by number. A query whose plan was switched has several variants, each with a negative number of its own."""

    def __init__(self) -> None:
        self.running: dict[int, RunningQuery] = {}  # by the number of the variant
        self._switches: dict[int, PlanSwitch] = {}
        self._variant_count = 0
        self._groups: dict[QueryGroup, int] = {}  # each with its number of queries

    def __contains__(self, number: int) -> bool:
        return number in self.running or number in self._switches

    @property
    def numbers(self) -> list[int]:
        """The numbers of the queries."""
        return list(dict.fromkeys(map(self.number_of, self.running)))

    @property
    def groups(self) -> list[QueryGroup]:
        """The groups that answer queries."""
        return list(self._groups)

    @property
    def folds(self) -> set[int]:
        """The numbers of the folds that queries take partials of."""
        return {fold for query in self.running.values() for fold in query.folds}

    def add(self, variant: int, query: RunningQuery) -> None:
        """Add a query, or a variant of one."""
        self.running[variant] = query
        self._groups[query.output_group] = self._groups.get(query.output_group, 0) + 1

    def stop(self, variant: int) -> None:
        """Stop a query, or a variant of one."""
        query = self.running.pop(variant)
        query.stop()
        self._groups[query.output_group] -= 1
        if not self._groups[query.output_group]:
            del self._groups[query.output_group]

    def remove(self, number: int) -> None:
        """Stop all variants of a query. Raises KeyError if there is none of that number."""
        if number not in self:
            raise KeyError(number)
        switch = self._switches.pop(number, None)
        for variant in (number,) if switch is None else switch.variants:
            self.stop(variant)

    def limit(self, number: int, first: int, last: int) -> None:
        """Let a query answer no tick before `first` and none after `last`. Raises KeyError if there is none of that number."""
        if number not in self:
            raise KeyError(number)
        self._switches.setdefault(number, PlanSwitch(number)).limit(first, last)

    def is_answered(self, number: int, last: int) -> bool:
        """Return whether no answer of a query up to tick `last` may change any more."""
        switch = self._switches.get(number)
        variants = (number,) if switch is None else switch.variants
        return all(self.running[variant].output_group.settled > last for variant in variants)

    def keys_of(self, number: int) -> list[Hashable]:
        """Return the keys of the operators on top of a query's variants."""
        switch = self._switches.get(number)
        variants = (number,) if switch is None else switch.variants
        return [self.running[variant].key for variant in variants if variant in self.running]

    # --- variants ----------------------------------------------------------------------------------------------------

    def next_variant(self) -> int:
        """Return a number for a new variant."""
        self._variant_count += 1
        return -self._variant_count

    def start_variant(self, number: int, variant: int) -> None:
        """Let a running variant follow the others of a query; it is silent until the query switches to it."""
        self._switches.setdefault(number, PlanSwitch(number)).start_variant(variant)

    def switch_variant(self, number: int, clock: int) -> None:
        """Let the newest variant answer all windows after a clock tick."""
        self._switches[number].switch_variant(clock)

    def active(self, number: int) -> RunningQuery:
        """Return the query, or the variant of it, that answers new windows."""
        switch = self._switches.get(number)
        return self.running[number if switch is None else switch.active]

    def number_of(self, variant: int) -> int:
        """Return the number of the query that a variant belongs to."""
        return next((number for number, switch in self._switches.items() if variant in switch.variants), variant)

    def stop_variants(self, is_over: Callable[[PlanSwitch, int], bool]) -> None:
        """Stop the variants for which a function is true."""
        for switch in self._switches.values():
            for variant in [variant for variant in switch.variants if is_over(switch, variant)]:
                switch.release(variant)
                self.stop(variant)

    def select(self, updates: Iterable[Update | SharedUpdate]) -> Iterator[Update | SharedUpdate]:
        """Yield the updates of queries; of those of variants, the ones that the variant answers."""
        if not self._switches:
            yield from updates
            return
        switch_of = {variant: switch for switch in self._switches.values() for variant in switch.variants}
        for update in split_by_query(updates):
            if update.query not in switch_of or isinstance(update, QueryFailure):
                yield update
            else:
                yield from switch_of[update.query].select(update)
