"""Join: a WindowJoin or WindowCrossProduct for many windows at once, by a plan over state modules.

Tuples of one input, or of a kept node, that are in the windows probe the modules of the others, in the order the plan
says, always with the ranges of the windows. Order is given back at the end: the left tuple first, each in its stream's
order (6.4). So plans can be exchanged between two steps: what they keep is built from what the inputs hold.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expressions import Attr, columns_of, conjuncts, substitute
from basestation.algebra.vector import constant
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.integer_arrays import distinct, stable_argsort
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import OperatorDescription
from basestation.execution.joins.join_plan import InvalidJoinPlanError, make_default_plan
from basestation.execution.joins.joined_rows import JoinedRows, concatenate_rows, rows_per_window
from basestation.execution.joins.materialized_node import MaterializedNode
from basestation.execution.joins.probe_span import make_probe_span
from basestation.execution.joins.tuple_store import NEVER
from basestation.execution.joins.window_bounds import ValueBounds, WindowBounds, index_part
from basestation.execution.relational.window_ranges import WindowRanges

MAX_COMBINATIONS = 2**20
"""How many combinations are looked at together."""
_SAMPLE = 64
"""Of about so many windows it is looked up how much they have in common with others."""
_ORDER = None
"""What stands among the columns that are asked for where the order of rows is."""
_FEW = 3
"""Tuples that are in fewer windows than this are put together for each of them: then rows come in the order of windows."""


@dataclass(frozen=True, slots=True)
class JoinKey:
    """An equality between two inputs, with the side of each."""

    sides: dict


class JoinOperator:
    """`node` is what is computed, a join, a product, or a selection over a product; `sides` are the inputs as in FROM;
    of its columns those in `asked` are looked at, and the order of rows where it is `ordered`."""

    def __init__(self, node, sides, asked, ordered):
        self.node, self.sides = node, sides
        self.probes = 0  # rows that looked for partners
        product = node.child if isinstance(node, WindowSelect) else node
        self.homes = {c.id: i for i, child in enumerate(product.inputs) for c in child.columns}
        self._asked = Counter(asked)  # by how many ask for a column, or for _ORDER
        self._asked[_ORDER] += ordered
        keys = getattr(product, "keys", ())
        self._keys = [JoinKey({self._home(side): self._held(side) for side in key}) for key in keys]
        residual = node.predicate if isinstance(node, WindowSelect) else getattr(product, "residual", None)
        terms = () if residual is None else conjuncts(residual)
        self._terms = [(frozenset(self.homes[c.id] for c in columns_of(term)), term) for term in terms]
        self.change_join_plan(make_default_plan(len(sides), [tuple(key.sides) for key in self._keys]))

    def change_join_plan(self, plan):
        """Go on by another plan. NoPlan if it is none for this join."""
        if plan.inputs != len(self.sides):
            raise InvalidJoinPlanError(f"the join has {len(self.sides)} inputs, the plan {plan.inputs}")
        passing = [i for node in plan.kept for i in node if not self.sides[i].is_materializable]
        if passing:
            raise InvalidJoinPlanError(f"input {passing[0]} has no state that lasts, and no node with it can be kept")
        self.plan = plan
        self._kept = {node: MaterializedNode(node, self) for node in plan.kept}

    def show(self, view):
        """Somebody shows this of what is joined, too. [(by whom, what)] is there for it."""
        asked = [*view.asked, *([_ORDER] if view.ordered else ())]
        self._asked.update(asked)
        passing = [
            (side.wants, side.wants.take(side.local_predicate(view.predicate)))
            for side in self.sides
            if side.filters_rows
        ]
        return [(self, asked), *passing]

    def release(self, asked):
        self._asked -= Counter(asked)

    @property
    def state(self):
        """{place: how many tuples are held}, of inputs and of kept nodes."""
        inputs = {(i,): len(side.held) for i, side in enumerate(self.sides)}
        return inputs | {node: kept.count for node, kept in self._kept.items()}

    def describe(self) -> OperatorDescription:
        """What EXPLAIN prints: the join, above its inputs."""
        parts = tuple(side.input.describe() for side in self.sides)
        how = f"index probes; {self.plan}" if self._keys else "all combinations in a window"
        return OperatorDescription("join" if self._keys else "product", how, None, parts)

    def tidy(self):
        for side in self.sides:
            side.tidy()

    def _home(self, expression):
        return next(self.homes[c.id] for c in columns_of(expression))

    def _held(self, expression):
        """An expression over one input, over the columns as they are held."""
        side = self.sides[self._home(expression)]
        return substitute(expression, {c: Attr(_renamed(c, side.ids[c.id])) for c in columns_of(expression)})

    # --- windows -----------------------------------------------------------------------------------------------------

    def prepare(self, stands):
        """These windows are asked for, of each input."""
        for side, asked in zip(self.sides, stands, strict=True):
            side.prepare(asked.windows)

    def reaches(self, stands):
        return [_reach(side, asked) for side, asked in zip(self.sides, stands, strict=True)]

    def frame(self, stands):
        """The tuples of combinations of windows, each a tuple with a window of every input."""
        count = len(stands[0])
        if not count:
            return WindowContents(0, np.empty(0, np.int64), self._none())
        self.prepare(stands)
        return self.framed(self.all(self.reaches(stands)), count)

    def stretched(self, stands):
        """The same, each tuple once for windows in a row that hold it, in no particular order."""
        count, none = len(stands[0]), np.empty(0, np.int64)
        if not count:
            return WindowRanges(0, none, none, self._none())
        self.prepare(stands)
        rows = self._stretches(self.reaches(stands))
        return WindowRanges(count, rows.first, rows.last, self._columns(rows))

    def _none(self):
        return {id: v for side in self.sides for id, v in side.none.columns.items()}

    def all(self, reaches):
        """All rows of windows, each for one window."""
        return self._stretches(reaches).each()

    def _stretches(self, reaches):
        """All rows of windows. Where windows that follow each other overlap, what is in several is put together once."""
        first = self._first(reaches)
        if _overlap(reaches[first]) < _FEW:
            return self._from(first, rows_per_window(np.arange(len(reaches[0])), {}), reaches)
        found = []
        for begin, end in _rising(reaches):
            each = [reach.take(slice(begin, end)) for reach in reaches]
            rows = self._from(first, JoinedRows(constant(0, 1), constant(end - begin - 1, 1), {}), each)
            found.append(rows.behind(begin))
        return concatenate_rows(found)

    def _from(self, first, rows, reaches):
        """All rows, from one input on, or from the kept node that it is in."""
        place, within = self.plan.widest(first), WindowBounds(self.sides, reaches)
        return self.through(self.probed(rows, place, within), self.plan.probes_outside(first, place), within)

    def _first(self, reaches):
        """The input from which on rows are put together: one that is held for this evaluation alone, so that no index of it
        has to be made; among those and others the first, whose order is that of rows, or one that has a fifth less tuples.
        """
        able = [i for i, side in enumerate(self.sides) if side.begins] or range(len(self.sides))
        able = [i for i in able if not self.sides[i].is_materializable] or able
        if len(able) == 1:
            return able[0]
        return min(able, key=lambda i: (4 if i == 0 else 5) * _extent(self.sides[i], reaches[i]))

    def overlapping(self, reaches, others):
        """Where every input has a tuple in both windows, so that a row may have stayed."""
        found = np.ones(len(reaches[0]), bool)
        for side, a, b in zip(self.sides, reaches, others, strict=True):
            stayed = a.both(b)
            found &= side.held.module(()).count(make_probe_span(stayed.left, stayed.right)) > 0
        return found

    def shared(self, stands, mine, theirs):
        """About which part of the rows of windows others have as well: of some of these, evenly apart."""
        some = slice(None, None, 1 + len(mine) // _SAMPLE)
        mine, theirs, part = mine[some], theirs[some], 1.0
        for side, asked in zip(self.sides, stands, strict=True):
            side.prepare(asked.windows)
            reach = _reach(side, asked)
            own = reach.take(mine)
            stayed = own.both(reach.take(theirs))
            module = side.held.module(())
            whole = module.count(make_probe_span(own.left, own.right)).sum()
            part *= float(module.count(make_probe_span(stayed.left, stayed.right)).sum()) / max(1, int(whole))
            if not part:
                break
        return part

    def rows_gained(self, reaches, others):
        """The rows of windows with a tuple that is not in others (a window for each): none twice.

        The first input whose tuple came says where a row is counted: those before it stayed, those after it may be either.
        """
        stayed = [a.both(b) for a, b in zip(reaches, others, strict=True)]
        parts = []
        for i, side in enumerate(self.sides):
            rows = self._filtered(self._came(side, i, reaches[i], others[i]), set())
            if len(rows):
                within = WindowBounds(self.sides, [*stayed[:i], *reaches[i:]])
                parts.append(self.through(rows, self.plan.orders[i], within))
        none = np.empty(0, np.int64)
        return concatenate_rows(parts) if parts else rows_per_window(none, dict.fromkeys(range(len(self.sides)), none))

    def rows_with_values(self, i, values, window, reaches):
        """The rows of windows that have wanted values in columns, from input i on, which has some of them.

        `values` {input: {column as it is held: Vector}} and `window` tell what is wanted where; no two want the same.
        """
        each = [reach.take(window) for reach in reaches]
        within = ValueBounds(self.sides, each, values)
        place = self.plan.widest(i)
        rows = self.probed(rows_per_window(np.arange(len(window)), {}), place, within)
        rows = self.through(rows, self.plan.probes_outside(i, place), within)
        return rows_per_window(window[rows.first], rows.at)

    def _came(self, side, i, reach, other):
        """The tuples of one input that are in the windows and not in the others."""
        module = side.held.module(())
        if side.held.has_late_appends:
            window, at = module.probe([], make_probe_span(reach.left, reach.right))
            found = side.inside(reach, window, at) & ~side.inside(other, window, at)
            return rows_per_window(window[found], {i: at[found]})
        empty = other.left > other.right
        pieces = [
            (reach.left, np.where(empty, reach.right, np.minimum(reach.right, other.left - 1))),
            (np.where(empty, reach.right + 1, np.maximum(reach.left, other.right + 1)), reach.right),
        ]
        found = []
        for left, right in pieces:
            asked = np.flatnonzero(left <= right)
            if len(asked):
                which, at = module.probe([], make_probe_span(left[asked], right[asked]))
                found.append((asked[which], at))
        window = np.concatenate([np.empty(0, np.int64), *(w for w, _ in found)])
        return rows_per_window(window, {i: np.concatenate([np.empty(0, np.int64), *(at for _, at in found)])})

    # --- probing -----------------------------------------------------------------------------------------------------

    def begun(self, i, positions):
        """Tuples of one input as rows, of no window in particular."""
        return self._filtered(rows_per_window(np.zeros(len(positions), np.int64), {i: positions}), set())

    def through(self, rows, order, within):
        """Rows that have probed, one after another, what an order says."""
        for number, place in enumerate(order):
            portions = self._portions(rows, place, within)
            if len(portions) > 1:
                return concatenate_rows([self.through(part, order[number:], within) for part in portions])
            rows = self.probed(rows, place, within)
        return rows

    def _portions(self, rows, place, within):
        """Rows, cut where no key chooses and a term may: then not all combinations are there at once."""
        if len(rows) < 2 or not self._terms or any(self._ends(key, rows.at, place) for key in self._keys):
            return [rows]
        if within.wanted(rows, place):
            return [rows]
        combinations = int(self.source(place).module(()).count(within.range(rows, place[0])).sum())
        step = max(1, len(rows) * MAX_COMBINATIONS // max(1, combinations))
        return [rows.take(slice(at, at + step)) for at in range(0, len(rows), step)]

    def probed(self, rows, place, within):
        """Rows with what agrees with them at a place: an input or a kept node."""
        source = self.source(place)
        self.probes += len(rows)
        keys = [self._ends(key, rows.at, place) for key in self._keys]
        keys = [ends for ends in keys if ends is not None]
        wanted = within.wanted(rows, place)
        asking = [*(self.vector(rows, i, mine) for i, mine, _ in keys), *(vector for _, vector in wanted)]
        module = source.module((*(theirs for _, _, theirs in keys), *(theirs for theirs, _ in wanted)))
        which, positions = module.probe(asking, within.range(rows, place[0]))
        if rows.single and not rows.at:  # they are the windows, in their order
            rows, which = rows_per_window(which, {}), slice(None)
        elif len(which) == len(rows) and (which[1:] > which[:-1]).all():  # each has found one
            which = slice(None)
        return self._filtered(within.held(rows, which, source.spread(place, positions)), set(rows.at))

    def source(self, place):
        """What is probed at a place."""
        if len(place) == 1:
            return self.sides[place[0]].held
        kept = self._kept[place]
        kept.refresh()
        return kept

    def _ends(self, key, bound, place):
        """(an input that is bound, its side of a key, the side at a place as it is indexed there); None if it is no key here."""
        (a, left), (b, right) = key.sides.items()
        if a in bound and b in place:
            return a, left, index_part(b, right, place)
        if b in bound and a in place:
            return b, right, index_part(a, left, place)
        return None

    def vector(self, rows, i, expression):
        """An expression over what one input holds, of rows."""
        return self.sides[i].held.vectors([expression], rows.at[i])[0]

    def _filtered(self, rows, before):
        """Rows without those for which a term that can be told now is not true."""
        bound = set(rows.at)
        for homes, term in self._terms:
            if homes <= bound and (not before or not homes <= before) and len(rows):
                columns = {c.id: self._column(rows, c.id) for c in columns_of(term)}
                rows = rows.take(Evaluation(columns, len(rows)).of(term).is_true)
        return rows

    def _column(self, rows, id):
        i = self.homes[id]
        return self.sides[i].column(id, rows.at[i])

    # --- frames ------------------------------------------------------------------------------------------------------

    def framed(self, rows, windows):
        """Rows as a Frame, in order if that counts, with the columns that are asked for."""
        rows = self._sorted(rows) if self._asked[_ORDER] else rows
        return WindowContents(windows, rows.first, self._columns(rows))

    def _columns(self, rows):
        return {id: self._column(rows, id) for id in self.homes if self._asked[id]}

    def _sorted(self, rows):
        if len(rows) < 2:
            return rows
        rank = self.sides[0].rank(rows.at[0])
        later = rank[1:] > rank[:-1]
        if not later.all():
            later |= (rank[1:] == rank[:-1]) & (rows.first[1:] > rows.first[:-1])
        if not later.all():
            ranks = [rank, *(side.rank(rows.at[i]) for i, side in enumerate(self.sides) if i)]
            code, room = np.zeros(len(rows), np.int64), 1
            for rank in ranks:
                least = int(rank.min())
                span = int(rank.max()) - least + 1
                room *= span
                if room >= NEVER:
                    return rows.take(np.lexsort((*ranks[::-1], rows.first)))
                code = code * span + (rank - least)
            rises = code[1:] >= code[:-1]
            if not rises.all():
                if _in_order(rows.first, rises):
                    return rows
                rows = rows.take(np.argsort(code))  # equal ones are of different windows
        in_order = (rows.first[1:] >= rows.first[:-1]).all()
        return rows if in_order else rows.take(stable_argsort(rows.first))


def _in_order(window, rises):
    """Whether rows stand window by window, and rise where a window goes on."""
    return bool((window[1:] >= window[:-1]).all() and (rises | (window[1:] > window[:-1])).all())


def _reach(side, asked):
    """The ranges of windows of one input that stand in combinations."""
    reach = side.reach(asked.windows)
    return reach if asked.at is None else replace(reach, at=asked.at, first=int(asked.at[0]))


def _renamed(column, id):
    return column if column.id == id else type(column)(id, column.type, column.name, None, column.scale)


def _extent(side, reach):
    """How many tuples, living or not, an input has from the least to the greatest tick of windows."""
    some = reach.left <= reach.right
    if not some.any():
        return 0
    return int(
        side.held.module(()).count(
            make_probe_span(reach.left[some].min(keepdims=True), reach.right[some].max(keepdims=True))
        )[0]
    )


def _overlap(reach):
    """In how many windows a tick of them is, on an average; some of them, evenly apart, stand for all."""
    each = 1 + len(reach) // _SAMPLE
    left, right = reach.left[::each], reach.right[::each]
    sizes = np.maximum(right - left + 1, 0).astype(np.float64)
    some = sizes > 0
    if not some.any():
        return 0.0
    return each * float(sizes.sum()) / (int(right[some].max()) - int(left[some].min()) + 1)


def _rising(reaches):
    """Where the windows, of all inputs, begin and end in the order in which they are given: such a run, and the next."""
    falls = distinct(np.concatenate([reach.falls for reach in reaches]))
    return pairwise([0, *falls.tolist(), len(reaches[0])])
