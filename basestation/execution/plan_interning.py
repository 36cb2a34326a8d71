"""Plan interning: operators of different queries that do the same get the same number and the same columns.

Columns have other ids in every query. Here each operator gets a signature in which columns are known by their positions.
Operators with equal signatures have one number, and the ids of their columns follow from it: so state under that number is
kept once. The operators themselves are not kept: each plan makes its own, which are equal.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from hashlib import blake2b
from typing import Any

from acquisition.extent import Extent
from acquisition.schema import Attribute
from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expression_signature import signature
from basestation.algebra.expressions import Aggregate
from basestation.algebra.node import PlanNode, copy_with, rebuild
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect

_ID_BITS = 20  # ids of columns: the number of the operator, and in these bits the position of the column


class PlanInterner:
    """Numbers the operators of all running queries, and counts their users."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}  # by signature
        self._uses: Counter[bytes] = Counter()
        self._next = 0

    def take(self, root: PlanNode, wide: bool = False) -> "InternedPlan":
        """The interned form of a plan; release its signatures when it stops. A `wide` one reads all attributes of extents."""
        return InternedPlan(self, root, wide)

    def number(self, key: bytes) -> int:
        """The number of operators with a signature; counts a use."""
        if key not in self._numbers:
            self._next += 1
            self._numbers[key] = self._next
        self._uses[key] += 1
        return self._numbers[key]

    def release(self, signatures: Iterable[bytes]) -> None:
        """End one use of each signature."""
        for key in signatures:
            self._uses[key] -= 1
            if not self._uses[key]:
                del self._uses[key], self._numbers[key]


class InternedPlan:
    """One plan: `root` is its tree over shared columns; `columns` has these by the columns of the written plan."""

    def __init__(self, interner: PlanInterner, root: PlanNode, wide: bool) -> None:
        self._interner = interner
        self.columns: dict[Column, Column] = {}
        self.signatures: list[bytes] = []
        self._numbers: dict[int, int] = {}  # by the identity of an operator
        self._times: Counter[Hashable] = Counter()  # how often a signature occurred
        self._added = 0
        if wide:
            root = root.with_children(tuple(map(self._widen, root.children)))
        self.root = rebuild(self._widen(rebuild(root, self._widen_slices)), self._intern)

    def number(self, node: PlanNode) -> int:
        """The number of an operator of the tree."""
        return self._numbers[id(node)]

    def aggregate(self, column: Column, aggregate: Aggregate) -> tuple[Column, Aggregate]:
        """The shared (column, aggregate) of an aggregation over the tree."""
        values = {old: ex.Attr(new) for old, new in self.columns.items()}
        aggregate = replace(aggregate, argument=aggregate.argument and ex.substitute(aggregate.argument, values))
        key = _digest(("aggregate", self.number(self.root), signature(aggregate)))
        self.signatures.append(key)
        return replace(column, id=self._interner.number(key) << _ID_BITS), aggregate

    def _widen_slices(self, node: PlanNode) -> PlanNode:
        """Let slices read all attributes: they keep no readings, so queries with other attributes can share them."""
        return copy_with(node, child=self._widen(node.child)) if isinstance(node, SliceAggregation) else node

    def _widen(self, node: PlanNode) -> PlanNode:
        """Let an extent below plain selections and projections read all attributes: these keep no readings either."""
        if isinstance(node, StreamSelect | StreamProject):
            return copy_with(node, child=self._widen(node.child))
        if not isinstance(node, StreamAcquire | StreamReceive):
            return node
        taken = {column.name: column for column in node.attributes}
        attributes = tuple(taken.get(a.name) or self._add_column(a) for a in node.extent.schema)
        return copy_with(node, attributes=attributes)

    def _add_column(self, attribute: Attribute) -> Column:
        self._added += 1
        return Column(-self._added, attribute.type, attribute.name, None, attribute.scale, attribute.unit)

    def _intern(self, node: PlanNode) -> PlanNode:
        """The operator over shared columns, with its number."""
        defined: list[Column] = []
        parts = [self._sign(getattr(node, f.name), defined, node) for f in fields(node)]
        signed: Hashable = type(node).__name__, *parts
        # A plan may use two equal operators side by side: each has its own columns.
        self._times[signed] += 1
        key = _digest((self._times[signed], signed))
        self.signatures.append(key)
        number = self._interner.number(key)
        self.columns.update(
            (column, replace(column, id=(number << _ID_BITS) + at)) for at, column in enumerate(defined)
        )
        values = {column: ex.Attr(new) for column, new in self.columns.items()}
        changed = {f.name: _rename(getattr(node, f.name), self.columns, values) for f in fields(node)}
        found = copy_with(node, **changed)
        self._numbers[id(found)] = number
        return found

    def _sign(self, value: Any, defined: list[Column], node: PlanNode) -> Hashable:
        """A field of an operator as a part of its signature; columns that it defines are added to `defined`."""
        match value:
            case PlanNode():
                return "node", self._numbers[id(value)]
            case Column() if value in self.columns:
                return "known", self.columns[value].id
            case Column():
                defined.append(value)
                name = value.name if not node.children else None  # of an attribute of an extent
                return "column", value.type, value.scale, name
            case Expression():
                return signature(value, self.columns)
            case Extent():
                return "extent", value.name
            case tuple():
                return tuple(self._sign(each, defined, node) for each in value)
        if is_dataclass(value):
            return type(value).__name__, *(self._sign(getattr(value, f.name), defined, node) for f in fields(value))
        return repr(value)


def _digest(signed: Hashable) -> bytes:
    """A digest that tells signatures apart; whole ones would be most of the memory of a plain query."""
    return blake2b(repr(signed).encode(), digest_size=16).digest()


def _rename(value: Any, columns: Mapping[Column, Column], values: Mapping[Column, Expression]) -> Any:
    """A field of an operator over shared columns."""
    match value:
        case PlanNode() | Extent():
            return value
        case Column():
            return columns[value]
        case Expression():
            return ex.substitute(value, values)
        case tuple():
            return tuple(_rename(each, columns, values) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _rename(getattr(value, f.name), columns, values) for f in fields(value)})
    return value
