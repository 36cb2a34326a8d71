"""Aggregating: the groups of windows, and the aggregates of `innet` applied to them (SEMANTICS 5.5 to 5.7)."""

import numpy as np

from acquisition.schema import Type
from basestation.algebra.evaluation import Evaluation, multiples_to_doubles
from basestation.algebra.expressions import Attr
from basestation.algebra.vector import Vector, all_true
from basestation.execution.columns.window_contents import WindowContents, factorize
from innet.aggregates import create_aggregate


def aggregate(frame, node):
    """One tuple for each group of each window; without grouping exactly one."""
    group, window, first = assign_groups(frame.window, frame.windows, group_keys(node, frame.columns), node.grouped)
    columns = {c.id: v.take(first) for (c, _), v in zip(node.groups, group_keys(node, frame.columns), strict=True)}
    order = None if frame.tick is None else (frame.tick, frame.second)
    for column, aggregate in node.aggregates:
        made = make_aggregate(aggregate)
        values, valid = evaluate_argument(aggregate, frame.columns, len(frame))
        columns[column.id] = result_vector(made, *made.evaluate(len(window), group, values, valid, order))
    return WindowContents(frame.windows, window, columns)


def group_keys(node, columns):
    """The Vectors that are grouped by."""
    return [columns[e.column.id] for _, e in node.groups]


def assign_groups(window, windows, keys, by_keys):
    """For each row the number of its group, for each group its window and its first row.

    Groups stand window by window, in the order of their first row (6.4). Without grouping every window is a group, one
    without rows too, and there are no first rows to speak of.
    """
    if not by_keys:
        return window, np.arange(windows), np.empty(0, np.int64)
    code, count = factorize(keys, len(window))
    _, first, group = np.unique(window * count + code, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    number = np.empty(len(first), np.int64)
    number[by_appearance] = np.arange(len(first))
    first = first[by_appearance]
    return number[group], window[first], first


def make_aggregate(aggregate):
    """The object of `innet` that computes an aggregate over values of its argument's type."""
    argument, kind, scale = aggregate.argument, "integer", None
    if isinstance(argument, Attr):
        kind, scale = argument.type.value, argument.column.scale
    elif argument is not None:
        kind = (argument.type or Type.INTEGER).value
    kind = kind if scale is None else "scaled"
    return create_aggregate(aggregate.name, kind, distinct=aggregate.distinct, share=aggregate.share, scale=scale)


def evaluate_argument(aggregate, columns, length):
    """The values of an aggregate's argument and which of them are there; (None, None) for COUNT(*)."""
    argument = aggregate.argument
    if argument is None:
        return None, None
    if isinstance(argument, Attr):  # with a scale: whole multiples
        vector = columns[argument.column.id]
    else:
        vector = Evaluation(columns, length).as_type(argument, argument.type or Type.INTEGER)
    return vector.values, vector.valid


def result_vector(made, values, there):
    """The Vector of what an aggregate gave; a scaled one loses its scale (14)."""
    values = multiples_to_doubles(values, made.scale) if made.result == "scaled" else values
    return Vector(values, None if all_true(there) else there)
