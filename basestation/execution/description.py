"""Descriptions: what an operator is, how it works, and which state it holds, as EXPLAIN prints it.

`Engine.describe(number)` gives the operators that run for a query, each above those that it reads. An operator that does
several things in turn (a query block has windows, a join, aggregations) names them as `parts`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from acquisition.arrays import AnyArray
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expression_text import format_expression
from basestation.algebra.expressions import Aggregate
from basestation.algebra.node import PlanNode
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.counters import OperatorCounters

LOGGED = "logged tuples"
"""The entries of the log of an extent, which all queries share."""


@dataclass(frozen=True, slots=True)
class StateDescription:
    """The state of one operator.

    `what` names one kind of entry in the plural ("tuples", "partial states"). `limit` is the most entries at the declared
    rates and horizons; None where nothing is declared. `entry_bytes` is what one entry takes.
    `entries` and `bytes` are what is there now: 0 before the query runs.
    """

    what: str
    limit: int | None
    entry_bytes: int
    entries: int = 0
    bytes: int = 0

    @property
    def limit_bytes(self) -> int | None:
        """The most bytes at the declared rates and horizons."""
        return None if self.limit is None else self.limit * self.entry_bytes


@dataclass(frozen=True, slots=True)
class OperatorDescription:
    """One operator: `name` is what it is, `how` the way in which it works.

    `parts` are its stages, the last one first; each reads those below it, in its own `parts`.
    """

    name: str
    how: str = ""
    state: StateDescription | None = None
    parts: tuple["OperatorDescription", ...] = ()


class Describable(Protocol):
    """Whatever EXPLAIN can show."""

    def describe(self) -> OperatorDescription:
        """Say which operator it is, how it works, and which state it holds."""
        ...


@dataclass(frozen=True, slots=True)
class RunningOperator:
    """One line of EXPLAIN: an operator or a stage of one, at its depth below the output.

    `counters` are of the operator; None for a stage. `queries` is how many share it. `repeated` marks an operator that
    stands elsewhere in the same plan already: what is below it is not listed again.
    """

    depth: int
    name: str
    how: str
    state: StateDescription | None
    counters: OperatorCounters | None
    queries: int
    repeated: bool = False


@dataclass(slots=True)
class DescribedOperator:
    """An operator of the graph with those that it reads: what `flatten` makes lines of."""

    operator: Describable
    counters: OperatorCounters
    queries: int
    inputs: list["DescribedOperator"] = field(default_factory=list)


def flatten(top: DescribedOperator) -> tuple[RunningOperator, ...]:
    """The lines of EXPLAIN from the output down, each operator before those that it reads."""
    lines: list[RunningOperator] = []
    seen: set[int] = set()

    def visit(each: DescribedOperator, depth: int) -> None:
        found = each.operator.describe()
        repeated = id(each.operator) in seen
        seen.add(id(each.operator))
        shown = None if repeated else found.state
        lines.append(RunningOperator(depth, found.name, found.how, shown, each.counters, each.queries, repeated))
        if repeated:
            return
        below = depth + 1 + max((_visit_part(part, depth + 1) for part in found.parts), default=0)
        for child in each.inputs:
            visit(child, below)

    def _visit_part(part: OperatorDescription, depth: int) -> int:
        """Add a stage and those below it; how many levels they take."""
        lines.append(RunningOperator(depth, part.name, part.how, part.state, None, 1))
        return 1 + max((_visit_part(each, depth + 1) for each in part.parts), default=0)

    visit(top, 0)
    return tuple(lines)


def held_states(lines: Sequence[RunningOperator]) -> list[RunningOperator]:
    """The lines with a state, of several that read the log of one extent only the one that reaches farthest."""
    found: dict[object, RunningOperator] = {}
    for at, line in enumerate(lines):
        if line.state is None:
            continue
        key: object = line.name if line.state.what == LOGGED else at
        other = found.get(key)
        if other is None or (other.state is not None and (other.state.limit or 0) < (line.state.limit or 0)):
            found[key] = line
    return list(found.values())


def sum_state(lines: Sequence[RunningOperator]) -> tuple[int, tuple[StateDescription, ...]]:
    """(the most bytes of all states with a limit, the states without one)."""
    states = [line.state for line in held_states(lines) if line.state is not None]
    known = sum(limit for state in states if (limit := state.limit_bytes) is not None)
    return known, tuple(state for state in states if state.limit is None)


def count_bytes(description: OperatorDescription) -> int:
    """The bytes that the states of an operator and of its stages hold now, without the log of an extent."""
    state = description.state
    own = 0 if state is None or state.what == LOGGED else state.bytes
    return own + sum(count_bytes(part) for part in description.parts)


def array_bytes(*arrays: Any) -> int:
    """The bytes of numpy arrays, each counted once; None and arrays that repeat one value count as nothing."""
    found: dict[int, int] = {}
    for array in arrays:
        if isinstance(array, np.ndarray) and array.strides != (0,):
            owner = array if array.base is None else array.base
            size = array.nbytes if not isinstance(owner, np.ndarray) else min(array.nbytes, owner.nbytes)
            found[array.__array_interface__["data"][0]] = size
    return sum(found.values())


def find_arrays(*held: object) -> list[AnyArray]:
    """The arrays that objects of the engine hold, directly or through others of its objects."""
    found: list[AnyArray] = []
    pending, seen = list(held), set()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            found.append(each)
        elif isinstance(each, dict):
            pending += each.values()
        elif isinstance(each, list | tuple):
            pending += each
        elif type(each).__module__.startswith("basestation."):
            names = [name for of in type(each).__mro__ for name in getattr(of, "__slots__", ())]
            pending += [getattr(each, name, None) for name in names]
            pending += getattr(each, "__dict__", {}).values()
    return found


# --- texts of operators -----------------------------------------------------------------------------------------------

_MAX_TEXT = 60
"""Characters of the expressions of one operator; the algebra above has them in full."""


def describe_select(predicate: Expression) -> str:
    """`select` with its predicate."""
    return f"select {_shorten(format_expression(predicate))}"


def describe_project(outputs: Iterable[tuple[Column, Expression]]) -> str:
    """`project` with its expressions."""
    return f"project {_list(expression for _, expression in outputs)}"


def describe_aggregate(groups: Iterable[tuple[Column, Expression]], aggregates: Iterable[Aggregate]) -> str:
    """The aggregates, and the expressions by which they are grouped."""
    keys = _list(expression for _, expression in groups)
    return (_list(aggregates) or "groups") + (f" by {keys}" if keys else "")


def describe_step(node: PlanNode, parts: tuple[OperatorDescription, ...] = ()) -> OperatorDescription | None:
    """The description of a selection, projection or aggregation inside windows; None of another node."""
    match node:
        case WindowSelect(predicate=predicate):
            return OperatorDescription(describe_select(predicate), "in batches", None, parts)
        case WindowProject(outputs=outputs):
            return OperatorDescription(describe_project(outputs), "in batches", None, parts)
        case WindowAggregation(groups=groups, aggregates=aggregates):
            name = f"aggregate {describe_aggregate(groups, (each for _, each in aggregates))}"
            return OperatorDescription(name, "one pass over each window", None, parts)
    return None


def _list(expressions: Iterable[Expression]) -> str:
    return _shorten(", ".join(map(format_expression, expressions)))


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
