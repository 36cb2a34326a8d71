"""Table operators: joins with ON, DISTINCT, ORDER BY, LIMIT and unions of tables (semantics 10.6).

Only one-off queries have them in their SELECT. They map window contents to window contents, so they also work below a
converter.
"""

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra import one_off
from basestation.algebra.evaluation import multiples_to_doubles
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Attr, Compare, columns_of, conjunction, conjuncts
from basestation.algebra.node import PlanNode
from basestation.algebra.vector import Vector
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_contents import WindowContents, factorize
from basestation.execution.relational import row_operators

TABLE_NODES = one_off.TableJoin | one_off.ResultModifier | one_off.TableUnion
_LEFT, _RIGHT = -1, -2  # ids of the columns with the positions of a pair


def evaluate(node: PlanNode, frames: list[WindowContents]) -> WindowContents:
    """The contents of a node, from those of its children."""
    match node:
        case one_off.TableJoin(kind=kind, condition=condition):
            return join(frames[0], frames[1], kind, condition)
        case one_off.Distinct():
            return distinct(frames[0], node.columns)
        case one_off.Sort(keys=keys):
            return sort(frames[0], keys)
        case one_off.Limit(count=count):
            return limit(frames[0], count)
        case one_off.TableUnion(parts=parts, attributes=attributes):
            return union(frames, [part.columns for part in parts], attributes)
    raise TypeError(f"expected a table operator, found {type(node).__name__}")


def describe(node: PlanNode) -> tuple[str, str]:
    """(name, how) of a node, for EXPLAIN."""
    match node:
        case one_off.TableJoin(kind=kind):
            return f"{kind.lower()} join", "hash join, or all pairs without an equality"
        case one_off.Distinct():
            return "distinct", "sort of whole rows"
        case one_off.Sort():
            return "sort", ""
        case one_off.Limit(count=count):
            return "limit", f"{count} rows"
    return "union", "part by part"


# --- joins -----------------------------------------------------------------------------------------------------------


def join(left: WindowContents, right: WindowContents, kind: str, condition: Expression) -> WindowContents:
    """The pairs for which ON is true. Outer joins add each row without a partner once, with nulls for the other side.

    A left row without a partner is where its pairs would be, right ones are behind all pairs.
    """
    here, there = _pairs(left, right, condition)
    if kind in ("LEFT", "FULL"):
        alone = np.setdiff1d(np.arange(len(left)), here)
        here, there = np.concatenate([here, alone]), np.concatenate([there, np.full(len(alone), -1)])
    if kind in ("RIGHT", "FULL"):
        alone = np.setdiff1d(np.arange(len(right)), there)
        here, there = np.concatenate([here, np.full(len(alone), -1)]), np.concatenate([there, alone])
    window = np.append(left.window, 0)[here]
    window = np.where(here < 0, np.append(right.window, 0)[there], window)
    order = np.lexsort((there, np.where(here < 0, len(left), here), window))
    here, there = here[order], there[order]
    columns = {id: _with_gaps(v, here) for id, v in left.columns.items()}
    columns |= {id: _with_gaps(v, there) for id, v in right.columns.items()}
    return WindowContents(left.windows, window[order], columns)


def _pairs(left: WindowContents, right: WindowContents, condition: Expression) -> tuple[IntArray, IntArray]:
    """Positions (in left, in right) of the pairs for which the condition is true; equalities are hashed."""
    keys: list[tuple[Expression, Expression]] = []
    rest: list[Expression] = []
    for term in conjuncts(condition):
        sides = _sides(term, set(left.columns), set(right.columns))
        if sides:
            keys.append(sides)
        else:
            rest.append(term)
    residual = conjunction(rest) if rest else None
    needed = {c.id for c in columns_of(condition)}
    right = _narrow(right, needed, _RIGHT)
    left = _narrow(left, needed, _LEFT)
    found = row_operators.join([left, right], keys, residual)
    return found.columns[_LEFT].values, found.columns[_RIGHT].values


def _sides(term: Expression, left: set[int], right: set[int]) -> tuple[Expression, Expression] | None:
    """The sides of an equality between the inputs, the left one first; None if the term is no such equality."""
    if not (isinstance(term, Compare) and term.op == "="):
        return None
    a, b = ({c.id for c in columns_of(side)} for side in (term.left, term.right))
    if a and b and a <= left and b <= right:
        return term.left, term.right
    if a and b and a <= right and b <= left:
        return term.right, term.left
    return None


def _narrow(frame: WindowContents, needed: set[int], id_of_positions: int) -> WindowContents:
    """Only the needed columns, and the positions of the rows as column `place`."""
    columns = {id: v for id, v in frame.columns.items() if id in needed}
    return frame.with_columns({**columns, id_of_positions: Vector(np.arange(len(frame)))})


def _with_gaps(vector: Vector, positions: IntArray) -> Vector:
    """The values at positions, null where a position is -1."""
    if len(positions) == 0 or positions.min() >= 0:
        return vector.take(positions)
    blank = "" if vector.values.dtype == object else 0
    return Vector(np.append(vector.values, blank)[positions], np.append(vector.validity, False)[positions])


# --- shaping ---------------------------------------------------------------------------------------------------------


def distinct(frame: WindowContents, columns: tuple[Column, ...]) -> WindowContents:
    """The first of equal rows."""
    code, count = factorize([frame.columns[c.id] for c in columns], len(frame))
    _, first = np.unique(frame.window * count + code, return_index=True)
    return frame.take(np.sort(first))


def sort(frame: WindowContents, keys: tuple[tuple[Expression, bool, bool], ...]) -> WindowContents:
    """By the first key, among equal rows by the next; rows that are equal in all keys keep their order."""
    ranks = [_rank(frame, *key) for key in keys]
    return frame.take(np.lexsort((*reversed(ranks), frame.window)))


def _rank(frame: WindowContents, expression: Expression, descending: bool, nulls_first: bool) -> IntArray:
    """Integers in the order of the values; multiples are in the order of the numbers they stand for."""
    if isinstance(expression, Attr):
        vector = frame.columns[expression.column.id]
    else:
        vector = frame.evaluation.as_type(expression, expression.type)
    _, rank = np.unique(vector.values, return_inverse=True)
    rank = -rank if descending else rank
    return np.where(vector.validity, rank, -len(frame) if nulls_first else len(frame))


def limit(frame: WindowContents, count: int) -> WindowContents:
    """The first rows of each window."""
    position = np.arange(len(frame)) - frame.bounds()[frame.window]
    return frame.take(position < min(count, len(frame)))


def union(
    frames: list[WindowContents], sources: list[tuple[Column, ...]], attributes: tuple[Column, ...]
) -> WindowContents:
    """All rows of all parts, in order; `sources` are the columns of each part, by position."""
    columns = {}
    for place, column in enumerate(attributes):
        parts = [_convert(frame, of_part[place], column) for frame, of_part in zip(frames, sources, strict=True)]
        columns[column.id] = concatenate_vectors(parts)
    window = np.concatenate([frame.window for frame in frames])
    return WindowContents(frames[0].windows, window, columns).take(np.argsort(window, kind="stable"))


def _convert(frame: WindowContents, source: Column, target: Column) -> Vector:
    """A column of a part as the union has it: as doubles where the scales differ."""
    vector = frame.columns[source.id]
    if source.scale is not None and target.scale is None:
        return Vector(multiples_to_doubles(vector.values, source.scale), vector.valid)
    return vector
