"""Operator graph: the operators of all queries, in the order of their steps; equal operators exist once.

In each step the streams of a level give their changes. The blocks above them look at the answers that will differ. Then the stores take
in the changes, and the blocks answer. Converters make streams of the next level of the blocks. No operator knows which others read it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

from basestation.execution.counters import OperatorCounters, OperatorReport, OperatorShare
from basestation.execution.description import (
    DescribedOperator,
    OperatorDescription,
    RunningOperator,
    count_bytes,
    flatten,
)

STREAM, STORE, BLOCK, OUTPUT, MEMBER = range(5)
"""The kinds of operators, in the order in which those of one level read each other. Members take no steps."""
_STEPS: dict[int, tuple[tuple[int, str], ...]] = {
    STREAM: ((0, "step"),), STORE: ((2, "apply"),), BLOCK: ((1, "look"), (3, "answer")), OUTPUT: ((4, "step"),),
    MEMBER: (),
}  # fmt: skip


_NO_FAILURES: dict[Hashable, str] = {}


class GraphNode(Protocol):
    """An entry of the graph: an operator, or a member of an output."""

    @property
    def kind(self) -> int:
        """STREAM, STORE, BLOCK, OUTPUT or MEMBER."""

    @property
    def level(self) -> int:
        """How many converters stand below."""

    @property
    def counts(self) -> OperatorCounters:
        """Its work so far."""


class Operator:
    """The base of all operators. An operator takes the steps of its kind."""

    kind: ClassVar[int]

    def __init__(self, level: int) -> None:
        """`level` is how many converters stand below."""
        self.level, self.counts = level, OperatorCounters()

    @property
    def title(self) -> str:
        """Its work in the words of EXPLAIN and of errors; an operator in no defined state has it too."""
        raise NotImplementedError

    def describe(self) -> OperatorDescription:
        """Return what it is, how it works and which state it holds, as EXPLAIN prints it."""
        return OperatorDescription(self.title)

    def tidy(self) -> None:
        """Drop what no reader needs, and tell the operators below what is still needed of them."""

    def close(self) -> None:
        """Release what it uses outside the graph; it has no readers any more, and those below still exist."""


NodeT = TypeVar("NodeT", bound=GraphNode)


class OperatorGraph:
    """Operators by key. Each use of a key is counted, and an operator without uses is dropped."""

    def __init__(self, timer: Callable[[], int] | None = None) -> None:
        """`timer` returns the time, to measure what operators take of it."""
        self.timer = timer
        self._operators: dict[
            Hashable, Any
        ] = {}  # in the order in which they were made: those that are read come first
        self._numbers: dict[Hashable, int] = {}  # the place in that order
        self._next = 0
        self._below: dict[Hashable, list[Hashable]] = {}  # the keys that an operator uses
        self._uses: Counter[Hashable] = Counter()
        self._making: list[list[Hashable]] = []  # for each operator that is being made, the keys that it has used
        self._steps: list[tuple[str, Any]] | None = None  # (method, operator) in order; None after a change
        self._to_tidy: list[Operator] | None = None

    def get(self, key: Hashable, make: Callable[[], NodeT]) -> NodeT:
        """Return the operator of a key, made if there is none, and count a use by the operator that is being made."""
        if key not in self._operators:
            self._making.append([])
            try:
                made = make()
            except Exception:
                self.release(self._making.pop())  # a failure leaves nothing behind
                raise
            self._operators[key], self._below[key] = made, self._making.pop()
            self._numbers[key], self._next = self._next, self._next + 1
            self._reset_order(made)
        self._uses[key] += 1
        if self._making:
            self._making[-1].append(key)
        found: NodeT = self._operators[key]
        return found

    def find(self, key: Hashable) -> Any | None:
        """Return the operator of a key, which counts no use; None if there is none."""
        return self._operators.get(key)

    def release(self, keys: Iterable[Hashable]) -> None:
        """End uses; drop operators without uses, and end the uses that these have."""
        pending = list(keys)
        while pending:
            key = pending.pop()
            self._uses[key] -= 1
            if not self._uses[key]:
                pending += self._below.pop(key)
                dropped = self._operators.pop(key)
                self._reset_order(dropped)
                if dropped.kind != MEMBER:
                    dropped.close()
                del self._uses[key], self._numbers[key]

    def _reset_order(self, operator: GraphNode) -> None:
        """Compute the order of steps anew after an operator that takes steps was added or dropped."""
        if _STEPS[operator.kind]:
            self._steps = self._to_tidy = None

    def below(self, key: Hashable) -> list[Any]:
        """Return an operator and all that it reads, directly or not, each once, in the order in which they were made."""
        return [self._operators[found] for found in self._keys_below(key)]

    def _keys_below(self, key: Hashable) -> list[Hashable]:
        found: set[Hashable] = set()
        pending = [key]
        while pending:
            current = pending.pop()
            if current not in found:
                found.add(current)
                pending += self._below[current]
        return sorted(found, key=self._numbers.__getitem__)

    def counted(self, key: Hashable) -> list[OperatorReport]:
        """Return the counters of an operator and of all that it reads, these first."""
        below = [(found, self._operators[found]) for found in self._keys_below(key)]
        return [
            OperatorReport(type(operator).__name__, replace(operator.counts), self._uses[found])
            for found, operator in below
        ]

    def share(self, keys: Collection[Hashable], users: Mapping[int, Collection[Hashable]]) -> OperatorShare:
        """Return the share of one user in the operators below its `keys`; `users` has the keys of all, this one's among them."""
        readers = Counter(found for used in users.values() for found in self._all_below(used))
        time = held = 0.0
        for found in self._all_below(keys):
            operator = self._operators[found]
            time += operator.counts.time / readers[found]
            if operator.kind != MEMBER:
                held += count_bytes(operator.describe()) / readers[found]
        return OperatorShare(time, held)

    def usage(
        self, users: Mapping[int, Collection[Hashable]], before: Mapping[int, int]
    ) -> tuple[dict[int, OperatorShare], dict[int, int]]:
        """Return the shares of all users in states, and in the time since `before`; and the times now, by operator.

        An operator that was made since has spent all its time since.
        """
        below = {user: self._all_below(keys) for user, keys in users.items()}
        readers = Counter(found for used in below.values() for found in used)
        times = {self._numbers[found]: self._operators[found].counts.time for found in readers}
        spent = {found: times[self._numbers[found]] - before.get(self._numbers[found], 0) for found in readers}
        held = {
            found: 0 if (operator := self._operators[found]).kind == MEMBER else count_bytes(operator.describe())
            for found in readers
        }
        shares = {
            user: OperatorShare(sum(spent[f] / readers[f] for f in used), sum(held[f] / readers[f] for f in used))
            for user, used in below.items()
        }
        return shares, times

    def _all_below(self, keys: Iterable[Hashable]) -> set[Hashable]:
        return {found for key in keys for found in self._keys_below(key)}

    def describe(self, key: Hashable) -> tuple[RunningOperator, ...]:
        """Return an operator and all that it reads, each above those that it reads, as lines of EXPLAIN."""
        made: dict[Hashable, DescribedOperator] = {}
        for found in self._keys_below(key):  # those that are read come first
            operator = self._operators[found]
            below = dict.fromkeys(self._below[found])
            covered = {read for used in below for read in self._keys_below(used)[:-1]}  # read through another input
            inputs = [made[used] for used in below if used not in covered]
            if operator.kind == MEMBER:  # one member of an output is not shown beside it
                made[found] = inputs[0]
                continue
            made[found] = DescribedOperator(operator, replace(operator.counts), self._uses[found], inputs)
        return flatten(made[key])

    def __len__(self) -> int:
        return len(self._operators)

    @property
    def rows_out(self) -> int:
        """The number of rows that the operators have made so far."""
        return sum(operator.counts.rows_out for operator in self._order_to_tidy())

    def step(self, clock: int) -> dict[Hashable, str]:
        """Let every operator take its step, at the end of a clock tick.

        An operator that runs out of memory fails, and with it all that read it. Returns the keys of the failed operators, each with
        the reason. They are in no defined state, and must be released.
        """
        if self._steps is None:
            found = [(op.level, phase, name, op) for op in self._acting() for phase, name in _STEPS[op.kind]]
            self._steps = [(name, op) for _, _, name, op in sorted(found, key=lambda step: step[:2])]
        steps, failed = self._steps, _NO_FAILURES
        while (stop := self._run(steps, clock)) is not None:
            at, error = stop
            operator = steps[at][1]
            failed = failed | self._find_readers(operator, f"{operator.title}: {error}")
            broken = {id(self._operators[key]) for key in failed}
            steps = [step for step in steps[at + 1 :] if id(step[1]) not in broken]
        return failed

    def _run(self, steps: list[tuple[str, Any]], clock: int) -> tuple[int, MemoryError] | None:
        """Take steps up to the first that runs out of memory; return its position and the error, or None."""
        at, timer = 0, self.timer
        try:
            for at, (name, operator) in enumerate(steps):  # noqa: B007 - the position is read where the loop fails
                if timer is None:
                    getattr(operator, name)(clock)
                    continue
                begin = timer()
                getattr(operator, name)(clock)
                operator.counts.time += timer() - begin
        except MemoryError as error:
            return at, error
        return None

    def _find_readers(self, operator: Operator, reason: str) -> dict[Hashable, str]:
        """Return the keys of an operator and of all that read it, directly or not, each with a reason."""
        [failed] = [key for key, known in self._operators.items() if known is operator]
        return {key: reason for key in self._operators if failed in self._keys_below(key)}

    def tidy(self) -> dict[Hashable, str]:
        """Drop what no reader needs, readers first. Returns the keys of operators that ran out of memory, as `step` does."""
        failed = _NO_FAILURES
        for operator in self._order_to_tidy():
            try:
                operator.tidy()
            except MemoryError as error:
                failed = failed | self._find_readers(operator, f"{operator.title}: {error}")
        return failed

    def _order_to_tidy(self) -> list[Any]:
        """Return the operators that take steps, readers first."""
        if self._to_tidy is None:
            self._to_tidy = self._acting()[::-1]
        return self._to_tidy

    def _acting(self) -> list[Any]:
        """Return the operators that take steps."""
        return [operator for operator in self._operators.values() if _STEPS[operator.kind]]
