"""Graph: the operators of all queries, in the order of their steps; what is alike is there once.

In each step the streams of a level give their changes; the blocks over them look at the answers that will look
different; then the stores take the changes in, and the blocks answer. Converters make of blocks the streams of the next
level. Nothing asks who reads it.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from basestation.execution.counters import OperatorCounters, OperatorReport
from basestation.execution.description import DescribedOperator, OperatorDescription, RunningOperator, flatten

STREAM, STORE, BLOCK, OUTPUT, MEMBER = range(5)
"""The kinds of operators, in the order in which those of one level stand on each other. Members take no steps."""
_STEPS = {
    STREAM: ((0, "step"),), STORE: ((2, "apply"),), BLOCK: ((1, "look"), (3, "answer")), OUTPUT: ((4, "step"),),
    MEMBER: (),
}  # fmt: skip


class Operator:
    """Has a `level` and a `kind`, takes its steps, is told what is still `need`ed of it, and then `tidy`s."""

    def __init__(self, level):
        self.level, self.counts = level, OperatorCounters()

    def describe(self) -> OperatorDescription:
        """What it is, how it works and which state it holds, as EXPLAIN prints it."""
        return OperatorDescription(type(self).__name__)

    def close(self):
        """Nobody uses it any more; what it stands on is there still."""


class OperatorGraph:
    """`timer` is a function that tells the time, if somebody wants to know what operators take of it."""

    def __init__(self, timer=None):
        self.timer = timer
        self._operators = {}  # key -> operator, those that others stand on first
        self._numbers, self._next = {}, 0  # key -> number, in the same order
        self._below = {}  # key -> the keys of what it stands on
        self._uses = Counter()
        self._making = []  # for each operator that is being made, the keys that it has used
        self._steps = self._tidying = None  # who does what, in order; found when it is asked for

    def get(self, key, make):
        """The operator of a key, made if there is none; whoever is being made, or has asked, uses it."""
        if key not in self._operators:
            self._making.append([])
            try:
                made = make()
            except Exception:
                self.release(self._making.pop())  # what could not be made leaves nothing behind
                raise
            self._operators[key], self._below[key] = made, self._making.pop()
            self._numbers[key], self._next = self._next, self._next + 1
            self._changed(made)
        self._uses[key] += 1
        if self._making:
            self._making[-1].append(key)
        return self._operators[key]

    def release(self, keys):
        """Uses end; what nobody uses any more is gone, and uses nothing."""
        pending = list(keys)
        while pending:
            key = pending.pop()
            self._uses[key] -= 1
            if not self._uses[key]:
                pending += self._below.pop(key)
                gone = self._operators.pop(key)
                self._changed(gone)
                if gone.kind != MEMBER:
                    gone.close()
                del self._uses[key], self._numbers[key]

    def _changed(self, operator):
        """It has come, or gone."""
        if _STEPS[operator.kind]:
            self._steps = self._tidying = None

    def below(self, key):
        """An operator and all that it stands on, each once, in the order in which they were made."""
        return [self._operators[each] for each in self._keys_below(key)]

    def _keys_below(self, key):
        found, pending = set(), [key]
        while pending:
            each = pending.pop()
            if each not in found:
                found.add(each)
                pending += self._below[each]
        return sorted(found, key=self._numbers.get)

    def counted(self, key):
        """What an operator and all that it stands on have done, those first."""
        below = [(each, self._operators[each]) for each in self._keys_below(key)]
        return [
            OperatorReport(type(operator).__name__, replace(operator.counts), self._uses[each])
            for each, operator in below
        ]

    def describe(self, key) -> tuple[RunningOperator, ...]:
        """An operator and all that it reads, each above those that it reads, as lines of EXPLAIN."""
        made: dict[Any, DescribedOperator] = {}
        for each in self._keys_below(key):  # those that are read come first
            operator = self._operators[each]
            below = dict.fromkeys(self._below[each])
            covered = set().union(*(self._keys_below(one)[:-1] for one in below))  # read by way of another input
            inputs = [made[one] for one in below if one not in covered]
            if operator.kind == MEMBER:  # one reader of an output is not shown beside it
                made[each] = inputs[0]
                continue
            made[each] = DescribedOperator(operator, replace(operator.counts), self._uses[each], inputs)
        return flatten(made[key])

    def __len__(self):
        return len(self._operators)

    def step(self, clock):
        """One step of every operator, at the end of a clock tick."""
        if self._steps is None:
            found = [(op.level, phase, name, op) for op in self._acting() for phase, name in _STEPS[op.kind]]
            self._steps = [(name, op) for _, _, name, op in sorted(found, key=lambda each: each[:2])]
        if self.timer is None:
            for name, operator in self._steps:
                getattr(operator, name)(clock)
            return
        for name, operator in self._steps:
            begin = self.timer()
            getattr(operator, name)(clock)
            operator.counts.time += self.timer() - begin

    def tidy(self):
        """Let go of what no reader needs: those that read first."""
        if self._tidying is None:
            self._tidying = self._acting()[::-1]
        for operator in self._tidying:
            operator.tidy()

    def _acting(self):
        return [operator for operator in self._operators.values() if _STEPS[operator.kind]]
