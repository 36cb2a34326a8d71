"""Relational: what happens inside windows: selection, projection, joins, aggregation, for many windows at once."""

import numpy as np

from acquisition.schema import Type
from basestation.algebra.comparison import compare
from basestation.algebra.evaluation import doubles
from basestation.algebra.expressions import Attr, columns_of
from basestation.algebra.vector import Vector
from basestation.execution.frame import Frame, codes
from basestation.execution.streams import computed
from innet.aggregates import make


def select(frame, predicate):
    mask = frame.evaluation.of(predicate).true
    return frame if mask.all() else frame.take(mask)


def project(frame, outputs):
    return frame.with_columns(computed(outputs, frame.columns, len(frame)))


# --- joins -----------------------------------------------------------------------------------------------------------


def join(frames, keys, residual):
    """All combinations of tuples of one window that agree on the keys, the first input slowest (6.4)."""
    out, pending = frames[0], list(keys)
    for right in frames[1:]:
        have, come = set(out.columns), set(right.columns)
        usable = [k for k in pending if _ids(k[0]) <= have and _ids(k[1]) <= come]
        pending = [k for k in pending if k not in usable]
        out = _pair(out, right, usable)
    for left, right in pending:  # keys between inputs that were put together by others
        mask = compare("=", out.evaluation.of(left), out.evaluation.of(right)).true
        out = out.take(mask)
    return out if residual is None else select(out, residual)


def _ids(expression):
    return {c.id for c in columns_of(expression)}


def _pair(left, right, keys):
    sides = [(left.evaluation.of(a), right.evaluation.of(b)) for a, b in keys]
    here = np.arange(len(left))
    there = np.arange(len(right))
    for a, b in sides:  # an equality with null holds for nothing
        here = here[a.there[here]]
        there = there[b.there[there]]
    window = np.concatenate([left.window[here], right.window[there]])
    code, count = codes([_comparable(a.take(here), b.take(there)) for a, b in sides], len(window))
    code = window * count + code
    mine, theirs = code[: len(here)], code[len(here) :]
    order = np.argsort(theirs, kind="stable")
    ordered = theirs[order]
    first, last = np.searchsorted(ordered, mine, "left"), np.searchsorted(ordered, mine, "right")
    counts = last - first
    from_left = here[np.repeat(np.arange(len(here)), counts)]
    from_right = there[order[_ranges(first, counts)]]
    columns = {id: v.take(from_left) for id, v in left.columns.items()}
    columns |= {id: v.take(from_right) for id, v in right.columns.items()}
    paired = Frame(left.windows, left.window[from_left], columns)
    for (a, b) in sides:
        if a.values.dtype != b.values.dtype:  # integers beside floats were put together by their nearest doubles
            mask = compare("=", a.take(from_left), b.take(from_right)).true
            if not mask.all():
                paired, from_left, from_right = paired.take(mask), from_left[mask], from_right[mask]
    return paired


def _comparable(a, b):
    """Both sides of a key as one Vector: of doubles where the types differ."""
    if a.values.dtype == b.values.dtype:
        return Vector(np.concatenate([a.values, b.values]))
    return Vector(np.concatenate([a.values.astype(np.float64), b.values.astype(np.float64)]))


def _ranges(first, counts):
    """first[0], first[0] + 1, … (counts[0] of them), first[1], …"""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(first, counts)


# --- aggregation -----------------------------------------------------------------------------------------------------


def aggregate(frame, node):
    """One tuple for each group of each window; without grouping exactly one (5.6, 5.7)."""
    if node.grouped:
        vectors = [frame.columns[e.column.id] for _, e in node.groups]
        code, count = codes(vectors, len(frame))
        _, first, group = np.unique(frame.window * count + code, return_index=True, return_inverse=True)
        by_appearance = np.argsort(first, kind="stable")  # groups in the order of their first tuple
        number = np.empty(len(first), np.int64)
        number[by_appearance] = np.arange(len(first))
        group, first = number[group], first[by_appearance]
        window = frame.window[first]
        columns = {c.id: v.take(first) for (c, _), v in zip(node.groups, vectors, strict=True)}
    else:
        group, window, columns = frame.window, np.arange(frame.windows), {}
    for column, aggregate in node.aggregates:
        columns[column.id] = _aggregated(frame, aggregate, group, len(window))
    return Frame(frame.windows, window, columns)


def _aggregated(frame, aggregate, group, groups):
    """One aggregate of each group, as a Vector."""
    argument = aggregate.argument
    vector, kind, scale = None, "integer", None
    if isinstance(argument, Attr):
        vector, kind, scale = frame.columns[argument.column.id], argument.type.value, argument.column.scale
    elif argument is not None:
        type_ = argument.type or Type.INTEGER
        vector, kind = frame.evaluation.as_type(argument, type_), type_.value
    kind = kind if scale is None else "scaled"
    made = make(aggregate.name, kind, distinct=aggregate.distinct, share=aggregate.share, scale=scale)
    values, valid = (None, None) if vector is None else (vector.values, vector.valid)
    order = None if frame.tick is None else (frame.tick, frame.second)
    out, there = made.evaluate(groups, group, values, valid, order)
    out = doubles(out, scale) if made.result == "scaled" else out
    return Vector(out, None if there.all() else there)
