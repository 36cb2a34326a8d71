"""Shapes: what operators over streams and operators over windows have in common, written once.

Each is put in front of StreamNode or WindowNode and says what follows from the fields that its operators have.
"""

from dataclasses import replace


class UnaryOperator:
    """Over one other node, its `child`."""

    __slots__ = ()

    @property
    def children(self):
        return (self.child,)

    def with_children(self, children):
        return replace(self, child=children[0])


class SelectMixin(UnaryOperator):
    """Keeps tuples as they are, those for which `predicate` is true."""

    __slots__ = ()

    @property
    def columns(self):
        return self.child.columns

    @property
    def expressions(self):
        return (self.predicate,)


class ProjectMixin(UnaryOperator):
    """Makes new tuples: `outputs` pairs each column of the result with the expression it is computed by."""

    __slots__ = ()

    @property
    def columns(self):
        return tuple(column for column, _ in self.outputs)

    @property
    def expressions(self):
        return tuple(expression for _, expression in self.outputs)


class AggregateMixin(UnaryOperator):
    """One tuple for each group: `groups` and `aggregates` pair columns of the result with what they are computed from.

    `grouped` tells GROUP BY from the one group that always exists.
    """

    __slots__ = ()

    @property
    def columns(self):
        return tuple(column for column, _ in (*self.groups, *self.aggregates))

    @property
    def expressions(self):
        return tuple(expression for _, expression in (*self.groups, *self.aggregates))


class ProductMixin:
    """Combinations of the tuples of its `inputs`."""

    __slots__ = ()

    @property
    def children(self):
        return self.inputs

    def with_children(self, children):
        return replace(self, inputs=tuple(children))

    @property
    def columns(self):
        found = ()
        for child in self.inputs:  # a loop costs no frame of Python's stack: chains of joins are deep
            found += child.columns
        return found


class UnionMixin:
    """The tuples of all its `parts`, whose columns match by position, as tuples of its `attributes`."""

    __slots__ = ()

    @property
    def children(self):
        return self.parts

    def with_children(self, children):
        return replace(self, parts=tuple(children))

    @property
    def columns(self):
        return self.attributes
