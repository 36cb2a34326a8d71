"""Notation: a plan as text in the notation of sections 5 and 6 of the SNEEql paper.

Operators of the paper are written as the paper writes them; other operators follow its style. Errors of the paper are
corrected as in semantics 9.13 (`TimeScope (Tick (-300)) (Tick 0)`).
"""

from collections.abc import Iterable, Sequence

from basestation.algebra import converters, one_off, table, window
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expression_text import format_expression
from basestation.algebra.node import PlanNode, StreamNode
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_join import StreamJoin
from basestation.algebra.stream_merged import StreamMerged
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect


def notation(node: PlanNode) -> str:
    """The plan as the paper prints it: `evaluateStream (…)` or `evaluateWindow (…)` around nested operators."""
    evaluate = "evaluateStream" if isinstance(node, StreamNode) else "evaluateWindow"
    return "\n".join(_lines(f"{evaluate} (", [node], 0)) + ")"


def _lines(head: str, children: Sequence[PlanNode], depth: int) -> list[str]:
    """`head` and the children inside its parentheses, each on lines of its own, one step further in."""
    lines = ["  " * depth + head]
    for number, child in enumerate(children):
        below = child.children
        if below:
            lines += _lines(f"{label(child)} (", below, depth + 1)
            lines[-1] += ")"
        else:
            lines.append("  " * (depth + 1) + label(child))
        if number + 1 < len(children):
            lines[-1] += ") ("
    return lines


def outline(node: PlanNode, depth: int = 0) -> list[tuple[int, str]]:
    """The operators of a plan as (depth, label), leaves with the columns they read."""
    columns = [] if node.children else [f" of {', '.join(c.label for c in node.columns) or 'no columns'}"]
    lines = [(depth, label(node) + "".join(columns))]
    for child in node.children:
        lines += outline(child, depth + 1)
    return lines


def label(node: PlanNode) -> str:
    """One operator with its arguments, without its children."""
    match node:
        case StreamAcquire(extent=extent, interval=interval):
            return f'StreamAcquire "{extent.name}" (Tick {interval}) {_sites(extent.sites)}'
        case StreamReceive(extent=extent):
            return f'StreamReceive "{extent.name}"'
        case StreamMerged(number=number):
            return f"StreamMerged (Fold {number})"
        case StreamSelect(predicate=predicate) | WindowSelect(predicate=predicate):
            return f'{node.operator} (Predicate "{format_expression(predicate)}")'
        case StreamProject(outputs=outputs) | WindowProject(outputs=outputs):
            return f"{node.operator} [{', '.join(_output(*pair) for pair in outputs)}]"
        case StreamUnion() | one_off.TableUnion():
            return node.operator
        case StreamJoin(keys=keys):
            return f"StreamJoin [{', '.join(_key(*key) for key in keys)}]"
        case converters.Converter():
            return node.operator
        case table.Scan(extent=extent, interval=interval, history=history):
            return f'Scan (Tick {interval}) "{extent.name}{".history" if history else ""}"'
        case table.Once(extent=extent, history=history):
            return f'Once "{extent.name}{".history" if history else ""}"'
        case window.TimeWindow(begin=begin, end=end, slide=slide):
            return f"TimeWindow (TimeScope ({_tick(begin)}) ({_tick(end)})) ({_tick(slide)})"
        case window.RowWindow(begin=begin, end=end, slide=slide):
            return f"RowWindow (RowScope ({_index(begin)}) ({_index(end)})) ({_index(slide)})"
        case window.LandmarkWindow(slide=slide, rows=rows):
            return f"LandmarkWindow ({_index(slide) if rows else _tick(slide)})"
        case window.LoopWindow(loop=loop, left=left, right=right):
            return f"LoopWindow {_loop(window.LoopEnds(loop, left, right))}"
        case WindowAggregation(groups=groups, aggregates=aggregates):
            return f"WindowAggregation {_grouping(groups)} {_aggregates(aggregates)}"
        case SliceAggregation(groups=groups, aggregates=aggregates, loop=window.LoopEnds() as ends):
            return f"SliceAggregation {_grouping(groups)} {_aggregates(aggregates)} {_loop(ends)}"
        case SliceAggregation(groups=groups, aggregates=aggregates, begin=begin, end=end, slide=slide):
            scope = "" if begin is None else f"(TimeScope ({_tick(begin)}) ({_tick(end)})) "
            scope += f"({_tick(slide)})"
            return f"SliceAggregation {_grouping(groups)} {_aggregates(aggregates)} {scope}"
        case WindowCrossProduct():
            return "WindowCrossProduct"
        case WindowJoin(keys=keys, residual=residual):
            rest = "" if residual is None else f' (Predicate "{format_expression(residual)}")'
            return f"WindowJoin [{', '.join(_key(*key) for key in keys)}]{rest}"
        case one_off.TableJoin(kind=kind, condition=condition):
            return f'TableJoin {kind.capitalize()} (Predicate "{format_expression(condition)}")'
        case one_off.Distinct():
            return "Distinct"
        case one_off.Sort(keys=keys):
            return f"Sort [{', '.join(_sort_key(*key) for key in keys)}]"
        case one_off.Limit(count=count):
            return f"Limit {count}"
    raise TypeError(f"no notation for {type(node).__name__}")


def _loop(ends: window.LoopEnds) -> str:
    loop, left, right = ends.loop, format_expression(ends.left), format_expression(ends.right)
    head = f'(For "t={format_expression(loop.first)}" "{format_expression(loop.condition)}" "t={format_expression(loop.change)}")'
    return f'({"RowScope" if loop.rows else "TimeScope"} "{left}" "{right}") {head}'


def _tick(n: int) -> str:
    return f"Tick ({n})" if n < 0 else f"Tick {n}"


def _index(n: int) -> str:
    return f"Index ({n})" if n < 0 else f"Index {n}"


def _sites(sites: tuple[int, ...] | None) -> str:
    if sites is None:
        return "all"
    if len(sites) > 8 and sites == tuple(range(sites[0], sites[-1] + 1)):
        return f"[{sites[0]}..{sites[-1]}]"
    return f"[{','.join(map(str, sites))}]"


def _output(column: Column, expression: Expression) -> str:
    text = f'Attr "{format_expression(expression)}"'
    plain = getattr(expression, "column", None)
    named = column.name if plain is None or plain.name != column.name else None
    return f'{text} as "{named}"' if named else text


def _key(left: Expression, right: Expression) -> str:
    return f'"{format_expression(left)}={format_expression(right)}"'


def _grouping(groups: Iterable[tuple[Column, Expression]]) -> str:
    return f"[{', '.join(format_expression(e) for _, e in groups)}]"


def _aggregates(aggregates: Iterable[tuple[Column, Expression]]) -> str:
    return f"[{', '.join(format_expression(e) for _, e in aggregates)}]"


def _sort_key(expression: Expression, descending: bool, nulls_first: bool) -> str:
    return (
        f"{format_expression(expression)} {'desc' if descending else 'asc'} nulls {'first' if nulls_first else 'last'}"
    )
