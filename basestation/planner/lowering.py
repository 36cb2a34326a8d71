"""Lowers expressions and streams of the algebra to mote operators; the only bridge between the two languages.

A mote can run an expression exactly if it lowers. An expression without an exact form in 32-bit integers raises
NotPushableError with the reason. `basestation.planner.pushdown` decides with it which operators motes run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

from acquisition.schema import Type
from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expression_text import format_expression
from basestation.algebra.node import PlanNode, walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.planner.thresholds import NoThresholdError, find_passing_range, threshold_column
from gateway.errors import MoteloomError
from innet.operators import mote_expression as inside
from innet.operators.acquire import Acquire
from innet.operators.deliver import Deliver
from innet.operators.mote_expression import MoteConstant, SensorValue, SiteNumber, make_instruction
from innet.operators.value_ranges import REGISTER, SITES, Interval, ValueRangeError, infer_range
from innet.program.opcodes import STACK_DEPTH

RawRanges = Mapping[SensorValue, Interval]
"""The range of raw values of a sensor, where it is known and smaller than that of a register."""

_ARITHMETIC = {"+": "ADD", "-": "SUB", "*": "MUL", "/": "DIV", "%": "MOD"}
_COMPARE = {"=": "EQ", "<>": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}
_IDENTITY = ("ROUND", "FLOOR", "CEIL")  # they do not change integers
_MAX_SCALE_DIFFERENCE = 6
"""Decimal digits. Up to this difference of scales, different 32-bit multiples are different doubles."""
_MAX_PARTS = 100
"""Parts of an expression. A longer one would not fit into a program."""
_RESERVED_STACK = 2
"""Stack entries for the conditions that the compiler adds around an expression: of other queries, and of the ticks."""


class NotPushableError(MoteloomError):
    """An operator stays at the base station: `code` is a word for statistics, `reason` a sentence."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


@dataclass(frozen=True, slots=True)
class Lowering:
    """Expressions over the columns of some sensed extents, by the columns' ids."""

    columns: Mapping[int, inside.MoteExpression]
    raw: RawRanges

    @classmethod
    def over(cls, nodes: list[StreamAcquire], raw: RawRanges) -> "Lowering":
        """The columns of these acquisitions as mote expressions; the tick has none."""
        known: dict[int, inside.MoteExpression] = {}
        for node in nodes:
            site, time = node.extent.site_attribute, node.extent.time_attribute
            for column in node.attributes:
                if column.name is None:
                    continue
                if site is not None and column.name == site.name:
                    known[column.id] = SiteNumber()
                elif time is None or column.name != time.name:
                    known[column.id] = SensorValue(node.extent.name, column.name)
        return cls(known, raw)

    def predicate(self, e: Expression) -> inside.MoteExpression:
        """A predicate whose values all fit into 32 bits."""
        return self._whole(e, self._truth)

    def value(self, e: Expression) -> inside.MoteExpression:
        """An integer, or the raw multiple of a scaled attribute."""
        if isinstance(e, ex.Attr):
            return self._column(e.column)
        return self._whole(e, self._integer)

    def _whole(self, e: Expression, lower: Callable[[Expression], inside.MoteExpression]) -> inside.MoteExpression:
        if sum(1 for _ in ex.walk(e)) > _MAX_PARTS:
            raise NotPushableError("long", "it is too long for a program")
        lowered = self._checked(lower(e))
        if inside.stack_depth(lowered) > STACK_DEPTH - _RESERVED_STACK:
            raise NotPushableError("long", f"`{format_expression(e)}` takes more stack entries than a mote has")
        return lowered

    def _checked(self, lowered: inside.MoteExpression) -> inside.MoteExpression:
        try:
            infer_range(lowered, self.raw)
        except ValueRangeError as wide:
            raise NotPushableError("wide", f"{wide}, and a mote computes with 32 bits") from wide
        return lowered

    # --- values ------------------------------------------------------------------------------------------------------

    def _column(self, column: Column) -> inside.MoteExpression:
        if column.type is Type.STRING:
            raise NotPushableError("string", f"`{column}` is a string, and a mote has integers only")
        if column.type is Type.FLOAT and column.scale is None:
            raise NotPushableError("float", f"`{column}` is a float without a scale, and a mote has integers only")
        if column.id not in self.columns:
            raise NotPushableError("tick", f"`{column}` is a tick or an index, which a mote cannot compute with")
        return self.columns[column.id]

    def _integer(self, e: Expression) -> inside.MoteExpression:
        if e.type is Type.FLOAT or (isinstance(e, ex.Attr) and e.column.scale is not None):
            raise NotPushableError(
                "float", f"`{format_expression(e)}` is computed with floats, and a mote has integers only"
            )
        if e.type is Type.STRING:
            raise NotPushableError("string", f"`{format_expression(e)}` is a string, and a mote has integers only")
        match e:
            case ex.Literal(value=int() | None as value):
                return MoteConstant(value)
            case ex.Attr(column=column):
                return self._column(column)
            case ex.Negative(operand=operand):
                return make_instruction("NEG", self._integer(operand))
            case ex.Arithmetic(op=op, left=left, right=right):
                return make_instruction(_ARITHMETIC[op], self._integer(left), self._integer(right))
            case ex.Case(branches=branches, otherwise=otherwise):
                whole = self._integer(otherwise)
                for when, then in reversed(branches):
                    whole = make_instruction("PICK", self._truth(when), self._integer(then), whole)
                return whole
            case ex.Cast(operand=operand, to=to) if to.whole and (operand.type is None or operand.type.whole):
                return self._integer(operand)
            case ex.Function(name=name, arguments=arguments):
                return self._function(e, name, arguments)
        raise NotPushableError("function", f"`{format_expression(e)}` has no instruction")

    def _function(self, e: Expression, name: str, arguments: tuple[Expression, ...]) -> inside.MoteExpression:
        match name:
            case "ABS":
                return make_instruction("ABS", self._integer(arguments[0]))
            case "LEAST" | "GREATEST" | "COALESCE":
                lowered = [self._integer(argument) for argument in arguments]
                return reduce(lambda a, b: make_instruction("ELSE" if name == "COALESCE" else name, a, b), lowered)
            case "NULLIF":
                first, second = (self._integer(argument) for argument in arguments)
                return make_instruction("PICK", make_instruction("EQ", first, second), MoteConstant(None), first)
        if name in _IDENTITY:
            return self._integer(arguments[0])
        raise NotPushableError("function", f"`{format_expression(e)}` has no instruction")

    # --- predicates --------------------------------------------------------------------------------------------------

    def _truth(self, e: Expression) -> inside.MoteExpression:
        match e:
            case ex.Truth(outcome=outcome):
                return MoteConstant(None if outcome is None else int(outcome))
            case ex.And(terms=terms):
                return inside.all_of([self._truth(term) for term in terms])
            case ex.Or(terms=terms):
                return inside.any_of([self._truth(term) for term in terms])
            case ex.Not(term=term):
                return make_instruction("NOT", self._truth(term))
            case ex.IsNull(operand=ex.Attr(column=column)):
                return make_instruction("ISNULL", self._column(column))
            case ex.IsNull(operand=operand):
                return make_instruction("ISNULL", self._integer(operand))
            case ex.InItems(operand=operand, items=items):
                return inside.any_of([self._compare(ex.Compare("=", operand, item)) for item in items])
            case ex.Between(operand=operand, low=low, high=high):
                ends = ex.Compare(">=", operand, low), ex.Compare("<=", operand, high)
                return inside.all_of([self._compare(end) for end in ends])
            case ex.Compare():
                return self._compare(e)
        raise NotPushableError("function", f"`{format_expression(e)}` has no instruction")

    def _compare(self, e: ex.Compare) -> inside.MoteExpression:
        """A comparison in integers if it fits; else one of an attribute with a threshold, or of two scaled attributes."""
        try:
            direct = make_instruction(_COMPARE[e.op], self._integer(e.left), self._integer(e.right))
            return self._checked(direct)
        except NotPushableError as stays:
            if (column := threshold_column(e)) is not None:
                return self._threshold(e, column, stays)
            if isinstance(e.left, ex.Attr) and isinstance(e.right, ex.Attr):
                return self._multiples(e.op, e.left.column, e.right.column)
            raise

    def _threshold(self, e: ex.Compare, column: Column, stays: NotPushableError) -> inside.MoteExpression:
        measured = self._column(column)
        raw = SITES
        if isinstance(measured, SensorValue):
            raw = self.raw.get(measured, REGISTER)
        elif not isinstance(measured, SiteNumber):
            raw = REGISTER
        try:
            if e.op == "<>":
                return make_instruction(
                    "NOT", _within(measured, find_passing_range(ex.Compare("=", e.left, e.right), column, raw), raw)
                )
            return _within(measured, find_passing_range(e, column, raw), raw)
        except NoThresholdError as unsteady:
            raise NotPushableError(stays.code, f"{stays.reason}; {unsteady}") from unsteady

    def _multiples(self, op: str, left: Column, right: Column) -> inside.MoteExpression:
        """Two attributes as multiples of the finer scale, which compare as their doubles do."""
        scales = left.scale or 0, right.scale or 0
        if abs(scales[0] - scales[1]) > _MAX_SCALE_DIFFERENCE:
            raise NotPushableError(
                "wide", f"the scales of `{left}` and `{right}` are too far apart to compare their multiples"
            )
        sides = []
        for column, scale in zip((left, right), scales, strict=True):
            finer = 10 ** (max(scales) - scale)
            measured = self._column(column)
            sides.append(measured if finer == 1 else make_instruction("MUL", measured, MoteConstant(finer)))
        return self._checked(make_instruction(_COMPARE[op], *sides))


def _within(measured: inside.MoteExpression, passed: Interval | None, raw: Interval) -> inside.MoteExpression:
    """Whether a measured value is in an interval; unknown without a value."""
    if passed is None:
        return make_instruction("NE", measured, measured)
    if passed == raw:
        return make_instruction("EQ", measured, measured)
    terms: list[inside.MoteExpression] = []
    if passed.low == passed.high:
        return make_instruction("EQ", measured, MoteConstant(passed.low))
    if passed.low > raw.low:
        terms.append(make_instruction("GE", measured, MoteConstant(passed.low)))
    if passed.high < raw.high:
        terms.append(make_instruction("LE", measured, MoteConstant(passed.high)))
    return inside.all_of(terms)


def lower_acquire(node: StreamAcquire) -> Acquire:
    """The sampling that a node needs; site and tick need none."""
    known = {attribute.name for attribute in (node.extent.site_attribute, node.extent.time_attribute) if attribute}
    sampled = tuple(column.name for column in node.attributes if column.name and column.name not in known)
    return Acquire(node.extent.name, node.interval, sampled)


def deliver_everything(root: PlanNode) -> tuple[Deliver, ...]:
    """All readings that a plan needs, unfiltered: one operator for each sensed extent, in the order of the plan."""
    found = [lower_acquire(node) for node in walk(root) if isinstance(node, StreamAcquire)]
    return tuple(Deliver(acquire, acquire.extent, acquire.sampled) for acquire in found)
