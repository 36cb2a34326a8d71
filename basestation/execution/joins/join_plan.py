"""Join plan: how an n-way join is computed, as a value: from no intermediate state to all of it (JTree).

Inputs are 0, 1, … in the order of FROM. For each input a plan says in which order its tuples probe the others, and which
inner nodes, sets of inputs, are materialized: their joined tuples are kept, and are probed like an input. A node that is not
kept is computed again by each reader. No plan changes an answer.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

from gateway.errors import MoteloomError

Place = tuple[int, ...]
"""One input or a materialized node, which can be probed: its inputs in ascending order."""


class InvalidJoinPlanError(MoteloomError, ValueError):
    """An orders-and-nodes value that is no plan for the join."""


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """Tuples of input i probe the places of `orders[i]`, one after another, until every input is there; `kept` is
    sorted.
    """

    orders: tuple[tuple[Place, ...], ...]
    kept: tuple[Place, ...] = ()

    def __post_init__(self) -> None:
        problem = _find_problem(self.orders, self.kept)
        if problem:
            raise InvalidJoinPlanError(problem)

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return len(self.orders)

    def probes_inside(self, i: int, node: Place) -> tuple[Place, ...]:
        """The places that tuples of input i probe to become rows of a kept node."""
        return tuple(place for place in self.orders[i] if set(place) <= set(node))

    def probes_outside(self, i: int, node: Place) -> tuple[Place, ...]:
        """The places that rows of a node with input i in it probe to become rows of the join."""
        return tuple(place for place in self.orders[i] if not set(place) <= set(node))

    def widest(self, i: int) -> Place:
        """The largest kept node with an input; the input alone where it is in none."""
        alone: Place = (i,)
        return max((node for node in self.kept if i in node), key=len, default=alone)

    def __str__(self) -> str:
        orders = [f"{i}: {', '.join(map(_text, order))}" for i, order in enumerate(self.orders)]
        kept = [f"keep {', '.join(map(_text, self.kept))}"] if self.kept else []
        return " | ".join([*orders, *kept])


def parse_join_plan(text: str) -> JoinPlan:
    """The plan of a text form, as `str` gives it. Raises InvalidJoinPlanError if it is none."""
    orders: list[tuple[Place, ...]] = []
    kept: tuple[Place, ...] = ()
    try:
        for part in text.split("|"):
            part = part.strip()
            if part.startswith("keep "):
                kept = tuple(sorted(_place(p) for p in part[5:].split(",")))
                continue
            number, _, order = part.partition(":")
            if int(number) != len(orders):
                raise InvalidJoinPlanError(f"the order of input {len(orders)} is missing")
            orders.append(tuple(_place(p) for p in order.split(",")))
    except ValueError as why:
        raise InvalidJoinPlanError(f"`{text}` is no plan of a join: {why}") from why
    return JoinPlan(tuple(orders), kept)


def _text(place: Place) -> str:
    return "+".join(map(str, place))


def _place(text: str) -> Place:
    return tuple(sorted(int(number) for number in text.split("+")))


# --- which plans there are -------------------------------------------------------------------------------------------


def _children(node: Place, kept: Sequence[Place]) -> list[Place]:
    """The places directly below a node: the largest kept nodes in it, and the inputs in none of those."""
    below = [k for k in kept if set(k) < set(node)]
    largest = [k for k in below if not any(set(k) < set(other) for other in below)]
    alone: list[Place] = [(i,) for i in node if not any(i in k for k in largest)]
    return sorted([*largest, *alone])


def _levels(i: int, inputs: int, kept: Sequence[Place]) -> list[list[Place]]:
    """The places that tuples of input i have to probe, level by level: at each level the siblings, in any order."""
    everything = tuple(range(inputs))
    levels = []
    for node in sorted([k for k in kept if i in k] + [everything], key=len):
        levels.append([place for place in _children(node, kept) if i not in place])
    return levels


def _find_problem(orders: Sequence[Sequence[Place]], kept: Sequence[Place]) -> str | None:
    """Why this is no plan; None if it is one."""
    inputs = len(orders)
    if inputs < 2:
        return "a join has two inputs at least"
    for node in kept:
        if list(node) != sorted(set(node)) or not set(node) <= set(range(inputs)) or not 2 <= len(node) < inputs:
            return f"{_text(node)} is no inner node of a join of {inputs} inputs"
    if list(kept) != sorted(set(kept)):
        return "the kept nodes are not in order"
    for a, b in product(kept, kept):
        if set(a) & set(b) and not (set(a) <= set(b) or set(b) <= set(a)):
            return f"{_text(a)} and {_text(b)} overlap"
    for i, order in enumerate(orders):
        at = 0
        for siblings in _levels(i, inputs, kept):
            if sorted(order[at : at + len(siblings)]) != siblings:
                return f"input {i} has to probe {', '.join(map(_text, siblings))} after {at} others"
            at += len(siblings)
        if at != len(order):
            return f"input {i} probes too much"
    return None


def _families(nodes: Sequence[Place]) -> Iterator[tuple[Place, ...]]:
    """All sets of nodes of which any two are disjoint, or one contains the other."""
    if not nodes:
        yield ()
        return
    first, rest = nodes[0], nodes[1:]
    yield from _families(rest)
    fitting = [n for n in rest if not set(n) & set(first) or set(n) < set(first) or set(first) < set(n)]
    yield from ((first, *family) for family in _families(fitting))


def enumerate_join_plans(inputs: int, materializable: Collection[int] | None = None) -> Iterator[JoinPlan]:
    """All plans for so many inputs; only nodes of `materializable` inputs are kept, of any inputs if it is None."""
    able = range(inputs) if materializable is None else materializable
    masks = range(1 << inputs)
    sets = [tuple(i for i in range(inputs) if mask >> i & 1) for mask in masks]
    nodes = sorted(s for s in sets if 2 <= len(s) < inputs and set(s) <= set(able))
    for family in _families(nodes):
        kept = tuple(sorted(family))
        choices = []
        for i in range(inputs):
            levels = [permutations(siblings) for siblings in _levels(i, inputs, kept)]
            choices.append([tuple(place for level in found for place in level) for found in product(*levels)])
        for orders in product(*choices):
            yield JoinPlan(orders, kept)


def make_default_plan(inputs: int, edges: Iterable[Sequence[int]], kept: Iterable[Iterable[int]] = ()) -> JoinPlan:
    """A plan that probes along equalities where it can, in the order of FROM otherwise.

    `edges` are pairs of inputs that an equality connects. Without `kept` nodes it has no intermediate state.
    """
    pairs = [(a, b) for a, b in edges]
    nodes = tuple(sorted(tuple(sorted(node)) for node in kept))
    orders = []
    for i in range(inputs):
        bound, order = {i}, []
        for siblings in _levels(i, inputs, nodes):
            waiting = list(siblings)
            while waiting:
                place = next((p for p in waiting if _connected(bound, p, pairs)), waiting[0])
                waiting.remove(place)
                order.append(place)
                bound |= set(place)
        orders.append(tuple(order))
    return JoinPlan(tuple(orders), nodes)


def _connected(bound: set[int], place: Place, edges: Iterable[tuple[int, int]]) -> bool:
    return any((a in bound and b in place) or (b in bound and a in place) for a, b in edges)
