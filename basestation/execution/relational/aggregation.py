"""Aggregation: the groups of windows, and the aggregates of `innet` applied to them (semantics 5.5 to 5.7)."""

from collections.abc import Mapping

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from acquisition.schema import Type
from basestation.algebra.evaluation import Evaluation, multiples_to_doubles
from basestation.algebra.expressions import Aggregate, Attr
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.vector import Vector, all_true
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.execution.columns.window_contents import WindowContents, factorize
from innet.aggregates import create_aggregate
from innet.aggregates.protocol import EvaluableAggregate


def aggregate(frame: WindowContents, node: WindowAggregation) -> WindowContents:
    """One row for each group of each window; without grouping exactly one for each window."""
    group, window, first = assign_groups(frame.window, frame.windows, group_keys(node, frame.columns), node.grouped)
    columns = {c.id: v.take(first) for (c, _), v in zip(node.groups, group_keys(node, frame.columns), strict=True)}
    order = None if frame.tick is None or frame.second is None else (frame.tick, frame.second)
    for column, each in node.aggregates:
        function = make_aggregate(each)
        values, valid = evaluate_argument(each, frame.columns, len(frame))
        columns[column.id] = result_vector(function, *function.evaluate(len(window), group, values, valid, order))
    return WindowContents(frame.windows, window, columns)


def group_keys(node: WindowAggregation | SliceAggregation, columns: Mapping[int, Vector]) -> list[Vector]:
    """The columns that are grouped by."""
    return [columns[e.column.id] for _, e in node.groups if isinstance(e, Attr)]


def assign_groups(
    window: IntArray, windows: int, keys: list[Vector], by_keys: bool
) -> tuple[IntArray, IntArray, IntArray]:
    """(the group of each row; the window of each group; the first row of each group).

    Groups are in order of their windows, then of their first rows (6.4). Without grouping every window is a group, an empty
    one too, and there are no first rows.
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


def make_aggregate(
    aggregate: Aggregate,
) -> EvaluableAggregate:
    """The object of `innet` that computes an aggregate over values of the type of its argument."""
    argument, kind = aggregate.argument, "integer"
    scale: int | None = None
    if isinstance(argument, Attr):
        kind, scale = (argument.type or Type.INTEGER).value, argument.column.scale
    elif argument is not None:
        kind = (argument.type or Type.INTEGER).value
    kind = kind if scale is None else "scaled"
    return create_aggregate(aggregate.name, kind, distinct=aggregate.distinct, share=aggregate.share, scale=scale)


def evaluate_argument(
    aggregate: Aggregate, columns: Mapping[int, Vector], length: int
) -> tuple[AnyArray | None, BoolArray | None]:
    """(values, validity) of the argument of an aggregate; (None, None) for COUNT(*). Values with a scale are multiples."""
    argument = aggregate.argument
    if argument is None:
        return None, None
    if isinstance(argument, Attr):
        vector = columns[argument.column.id]
    else:
        vector = Evaluation(columns, length).as_type(argument, argument.type or Type.INTEGER)
    return vector.values, vector.valid


def result_vector(
    function: EvaluableAggregate,
    values: AnyArray,
    validity: BoolArray,
) -> Vector:
    """The results of an aggregate as a column; a scaled one becomes doubles (14)."""
    if function.result == "scaled" and function.scale is not None:
        values = multiples_to_doubles(values, function.scale)
    return Vector(values, None if all_true(validity) else validity)
