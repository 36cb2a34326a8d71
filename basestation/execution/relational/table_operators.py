"""One-off: what only one-off queries have (SEMANTICS 10.6): joins with ON, DISTINCT, ORDER BY, LIMIT, unions of tables.

Frames come in and go out, as in `relational`; so all of this also stands below a converter.
"""

import numpy as np

from basestation.algebra import one_off
from basestation.algebra.evaluation import multiples_to_doubles
from basestation.algebra.expressions import Attr, Compare, columns_of, conjunction, conjuncts
from basestation.algebra.vector import Vector
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_contents import WindowContents, factorize
from basestation.execution.relational import row_operators

TABLE_NODES = one_off.TableJoin | one_off.ResultModifier | one_off.TableUnion
_LEFT, _RIGHT = -1, -2  # the columns in which pairs say where they are from


def evaluate(node, frames):
    """What a node makes of the frames of its children."""
    match node:
        case one_off.TableJoin(kind=kind, condition=condition):
            return join(*frames, kind, condition)
        case one_off.Distinct():
            return distinct(*frames, node.columns)
        case one_off.Sort(keys=keys):
            return sort(*frames, keys)
        case one_off.Limit(count=count):
            return limit(*frames, count)
        case one_off.TableUnion(parts=parts, attributes=attributes):
            return union(frames, [part.columns for part in parts], attributes)
    raise TypeError(f"no one-off operator: {type(node).__name__}")


# --- joins -----------------------------------------------------------------------------------------------------------


def join(left, right, kind, condition):
    """The pairs for which ON is true; the outer kinds add what found no partner, once, with nulls for the other side.

    A left tuple without a partner stands where its pairs would have stood, right ones behind all others.
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


def _pairs(left, right, condition):
    """Positions (in left, in right) of the pairs for which the condition is true. Equalities choose them by hashing."""
    keys, rest = [], []
    for term in conjuncts(condition):
        sides = _sides(term, set(left.columns), set(right.columns))
        (keys if sides else rest).append(sides or term)
    residual = conjunction(rest) if rest else None
    needed = {c.id for c in columns_of(condition)}
    right = _narrow(right, needed, _RIGHT)
    left = _narrow(left, needed, _LEFT)
    found = row_operators.join([left, right], keys, residual)
    return found.columns[_LEFT].values, found.columns[_RIGHT].values


def _sides(term, left, right):
    """The two sides of an equality between the inputs, the left one's first; None if the term is none."""
    if not (isinstance(term, Compare) and term.op == "="):
        return None
    a, b = ({c.id for c in columns_of(side)} for side in (term.left, term.right))
    if a and b and a <= left and b <= right:
        return term.left, term.right
    if a and b and a <= right and b <= left:
        return term.right, term.left
    return None


def _narrow(frame, needed, place):
    """The frame with no other columns, and with the positions of its tuples."""
    columns = {id: v for id, v in frame.columns.items() if id in needed}
    return frame.with_columns({**columns, place: Vector(np.arange(len(frame)))})


def _with_gaps(vector, positions):
    """The entries at positions, null where a position is -1."""
    if len(positions) == 0 or positions.min() >= 0:
        return vector.take(positions)
    blank = "" if vector.values.dtype == object else 0
    return Vector(np.append(vector.values, blank)[positions], np.append(vector.validity, False)[positions])


# --- shaping ---------------------------------------------------------------------------------------------------------


def distinct(frame, columns):
    """The first of equal tuples."""
    code, count = factorize([frame.columns[c.id] for c in columns], len(frame))
    _, first = np.unique(frame.window * count + code, return_index=True)
    return frame.take(np.sort(first))


def sort(frame, keys):
    """By the first key, among equals by the next; what is equal in all of them stays in its order."""
    ranks = [_rank(frame, *key) for key in keys]
    return frame.take(np.lexsort((*reversed(ranks), frame.window)))


def _rank(frame, expression, descending, nulls_first):
    """Whole numbers in the order of the values. Multiples are ordered as what they stand for."""
    if isinstance(expression, Attr):
        vector = frame.columns[expression.column.id]
    else:
        vector = frame.evaluation.as_type(expression, expression.type)
    _, rank = np.unique(vector.values, return_inverse=True)
    rank = -rank if descending else rank
    return np.where(vector.validity, rank, -len(frame) if nulls_first else len(frame))


def limit(frame, count):
    position = np.arange(len(frame)) - frame.bounds()[frame.window]
    return frame.take(position < min(count, len(frame)))


def union(frames, sources, attributes):
    """All tuples of all parts, in their order; `sources` are the columns of each part, by position."""
    columns = {}
    for place, ours in enumerate(attributes):
        parts = [_united(frame, columns[place], ours) for frame, columns in zip(frames, sources, strict=True)]
        columns[ours.id] = concatenate_vectors(parts)
    window = np.concatenate([frame.window for frame in frames])
    return WindowContents(frames[0].windows, window, columns).take(np.argsort(window, kind="stable"))


def _united(frame, theirs, ours):
    """A column of a part as the union has it: as doubles where the scales differ."""
    vector = frame.columns[theirs.id]
    if theirs.scale is not None and ours.scale is None:
        return Vector(multiples_to_doubles(vector.values, theirs.scale), vector.valid)
    return vector
