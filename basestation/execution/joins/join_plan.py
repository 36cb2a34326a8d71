"""JoinPlan: how an n-way join is computed, as a value: from no intermediate state to all of it (JTree).

The inputs are 0, 1, … in the order of FROM. A plan says for each input in which order the others are probed with its
tuples, and which inner nodes, sets of inputs, are kept: their joined tuples stay, and are probed like an input. A node
that is not kept is computed anew by whoever needs it. No plan changes an answer.
"""

from dataclasses import dataclass
from itertools import permutations, product

from gateway.errors import MoteloomError

Place = tuple[int, ...]
"""What can be probed: one input or a kept node, as its inputs in ascending order."""


class InvalidJoinPlanError(MoteloomError, ValueError):
    """What was given is no plan for this join."""


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """`orders[i]` is what tuples of input i probe, one after another, until every input is there; `kept` is sorted."""

    orders: tuple[tuple[Place, ...], ...]
    kept: tuple[Place, ...] = ()

    def __post_init__(self):
        why = _wrong(self.orders, self.kept)
        if why:
            raise InvalidJoinPlanError(why)

    @property
    def inputs(self):
        return len(self.orders)

    def probes_inside(self, i, node):
        """What tuples of input i probe to become tuples of a kept node."""
        return tuple(place for place in self.orders[i] if set(place) <= set(node))

    def probes_outside(self, i, node):
        """What tuples of a node with input i in it probe to become tuples of the join."""
        return tuple(place for place in self.orders[i] if not set(place) <= set(node))

    def widest(self, i):
        """The largest kept node with an input; the input alone where it is in none."""
        return max((node for node in self.kept if i in node), key=len, default=(i,))

    def __str__(self):
        orders = [f"{i}: {', '.join(map(_text, order))}" for i, order in enumerate(self.orders)]
        kept = [f"keep {', '.join(map(_text, self.kept))}"] if self.kept else []
        return " | ".join([*orders, *kept])


def parse_join_plan(text):
    """The plan that its text form stands for. NoPlan if it stands for none."""
    orders, kept = [], ()
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


def _text(place):
    return "+".join(map(str, place))


def _place(text):
    return tuple(sorted(int(number) for number in text.split("+")))


# --- which plans there are -------------------------------------------------------------------------------------------


def _children(node, kept):
    """The places directly below a node: the largest kept nodes in it, and the inputs in none of those."""
    below = [k for k in kept if set(k) < set(node)]
    largest = [k for k in below if not any(set(k) < set(other) for other in below)]
    alone = [(i,) for i in node if not any(i in k for k in largest)]
    return sorted([*largest, *alone])


def _levels(i, inputs, kept):
    """What tuples of input i have to probe, level by level: at each the siblings, in any order."""
    everything = tuple(range(inputs))
    levels = []
    for node in sorted([k for k in kept if i in k] + [everything], key=len):
        levels.append([place for place in _children(node, kept) if i not in place])
    return levels


def _wrong(orders, kept):
    """Why this is no plan, or None."""
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


def _families(nodes):
    """All sets of nodes that do not overlap but by containing one another."""
    if not nodes:
        yield ()
        return
    first, rest = nodes[0], nodes[1:]
    yield from _families(rest)
    fitting = [n for n in rest if not set(n) & set(first) or set(n) < set(first) or set(first) < set(n)]
    yield from ((first, *family) for family in _families(fitting))


def enumerate_join_plans(inputs, is_materializable=None):
    """All plans for so many inputs; only nodes made of `keepable` inputs are kept."""
    able = range(inputs) if is_materializable is None else sorted(is_materializable)
    masks = range(1 << inputs)
    sets = [tuple(i for i in range(inputs) if mask >> i & 1) for mask in masks]
    nodes = sorted(s for s in sets if 2 <= len(s) < inputs and set(s) <= set(able))
    for kept in _families(nodes):
        kept = tuple(sorted(kept))
        choices = []
        for i in range(inputs):
            levels = [permutations(siblings) for siblings in _levels(i, inputs, kept)]
            choices.append([tuple(place for level in found for place in level) for found in product(*levels)])
        for orders in product(*choices):
            yield JoinPlan(orders, kept)


def make_default_plan(inputs, edges, kept=()):
    """A plan that probes along equalities where it can, in the order of FROM otherwise.

    `edges` are pairs of inputs that an equality connects. Without kept nodes this is the plan without intermediate state.
    """
    kept = tuple(sorted(tuple(sorted(node)) for node in kept))
    orders = []
    for i in range(inputs):
        bound, order = {i}, []
        for siblings in _levels(i, inputs, kept):
            waiting = list(siblings)
            while waiting:
                place = next((p for p in waiting if _connected(bound, p, edges)), waiting[0])
                waiting.remove(place)
                order.append(place)
                bound |= set(place)
        orders.append(tuple(order))
    return JoinPlan(tuple(orders), kept)


def _connected(bound, place, edges):
    return any((a in bound and b in place) or (b in bound and a in place) for a, b in edges)
