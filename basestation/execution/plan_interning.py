"""Alike: plans of many queries, with the same operators and columns where they do the same.

Columns have other numbers in every query. Here each operator gets a signature in which they are told by their places;
operators with one signature have one number, and their columns have numbers that follow from it, so that state which hangs
on it is kept once. The operators themselves are not kept: each plan makes its own, which are equal.
"""

from collections import Counter
from dataclasses import fields, is_dataclass, replace
from hashlib import blake2b

from acquisition.extent import Extent
from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expression_signature import signature
from basestation.algebra.node import PlanNode, rebuild
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect


class PlanInterner:
    """All operators of the queries that run."""

    def __init__(self):
        self._numbers = {}  # by signature
        self._uses = Counter()
        self._next = 0

    def take(self, root, wide=False):
        """A plan as one of those that run, until it is let go of; a `wide` one has all attributes of the extent below it."""
        return InternedPlan(self, root, wide)

    def number(self, signature):
        """That of the operators of a signature, which is used once more."""
        if signature not in self._numbers:
            self._next += 1
            self._numbers[signature] = self._next
        self._uses[signature] += 1
        return self._numbers[signature]

    def release(self, signatures):
        """A plan runs no longer."""
        for key in signatures:
            self._uses[key] -= 1
            if not self._uses[key]:
                del self._uses[key], self._numbers[key]


class InternedPlan:
    """One plan. `root` is its tree over the columns that all share, `columns` tells them by those that were written."""

    def __init__(self, alike, root, wide):
        self._alike = alike
        self.columns, self.signatures = {}, []
        self._numbers, self._times = {}, Counter()  # by the identity of an operator; how often a signature came
        self._added = 0
        if wide:
            root = root.with_children(tuple(map(self._wide, root.children)))
        self.root = rebuild(self._wide(rebuild(root, self._widened)), self._shared)

    def number(self, node):
        """The number of an operator of the tree."""
        return self._numbers[id(node)]

    def aggregate(self, column, aggregate):
        """(Column, Aggregate) of an aggregation over the tree, as all that ask for the same know it."""
        values = {old: ex.Attr(new) for old, new in self.columns.items()}
        aggregate = aggregate.with_parts(tuple(ex.substitute(part, values) for part in aggregate.parts))
        key = _short(("aggregate", self.number(self.root), signature(aggregate)))
        self.signatures.append(key)
        return replace(column, id=self._alike.number(key) << 20), aggregate

    def _widened(self, node):
        """Slices keep no readings: that queries need other attributes does not keep them from folding the same stream."""
        return replace(node, child=self._wide(node.child)) if isinstance(node, SliceAggregation) else node

    def _wide(self, node):
        """Nor do plain selections and projections."""
        if isinstance(node, StreamSelect | StreamProject):
            return replace(node, child=self._wide(node.child))
        if not isinstance(node, StreamAcquire | StreamReceive):
            return node
        taken = {column.name: column for column in node.attributes}
        return replace(node, attributes=tuple(taken.get(a.name) or self._column(a) for a in node.extent.schema))

    def _column(self, attribute):
        self._added += 1
        return Column(-self._added, attribute.type, attribute.name, None, attribute.scale, attribute.unit)

    def _shared(self, node):
        defined = []
        signature = type(node).__name__, *(self._signature(getattr(node, f.name), defined, node) for f in fields(node))
        # One plan may use two that are alike side by side: each has its own columns.
        self._times[signature] += 1
        signature = _short((self._times[signature], signature))
        self.signatures.append(signature)
        number = self._alike.number(signature)
        self.columns.update((column, replace(column, id=(number << 20) + at)) for at, column in enumerate(defined))
        values = {column: ex.Attr(new) for column, new in self.columns.items()}
        changed = {f.name: _renamed(getattr(node, f.name), self.columns, values) for f in fields(node)}
        found = replace(node, **changed)
        self._numbers[id(found)] = number
        return found

    def _signature(self, value, defined, node):
        match value:
            case PlanNode():
                return "node", self._numbers[id(value)]
            case Column() if value in self.columns:
                return "known", self.columns[value].id
            case Column():
                defined.append(value)
                name = value.name if not node.children else None  # of an extent's attribute
                return "column", value.type, value.scale, name
            case Expression():
                return signature(value, self.columns)
            case Extent():
                return "extent", value.name
            case tuple():
                return tuple(self._signature(each, defined, node) for each in value)
        if is_dataclass(value):
            return type(value).__name__, *(
                self._signature(getattr(value, f.name), defined, node) for f in fields(value)
            )
        return repr(value)


def _short(signature):
    """What is kept of a signature: it tells operators apart as well as all of it, which would be most of what a plain query is."""
    return blake2b(repr(signature).encode(), digest_size=16).digest()


def _renamed(value, mapping, values):
    match value:
        case PlanNode() | Extent():
            return value
        case Column():
            return mapping[value]
        case Expression():
            return ex.substitute(value, values)
        case tuple():
            return tuple(_renamed(each, mapping, values) for each in value)
    if is_dataclass(value):
        return replace(value, **{f.name: _renamed(getattr(value, f.name), mapping, values) for f in fields(value)})
    return value
