"""The relational part of a window query: WHERE, grouping and aggregation, HAVING, SELECT list, in that order (2.9)."""

from dataclasses import replace

from tests.oracles.expressions import Env, Member


class SelectWindows:
    """WindowSelect, then WindowProject or WindowAggregation, over each window on its own (figure 4)."""

    def __init__(self, product, columns, where, items, group, having, context, limit=None):
        self.product, self.columns, self.context, self.limit = product, columns, context, limit
        self.where, self.items, self.group, self.having = where, items, group, having

    def watermark(self, clock):
        """How far this query answers: 1.5, or with DELIVER WITHIN at the latest that long after sampling (11)."""
        mark = self.product.watermark(clock)
        return mark if self.context.within is None else max(mark, clock - self.context.within)

    def windows(self, clock):
        upto = self.watermark(clock)
        if self.limit is not None:
            upto = min(upto, self.limit)  # 11: FOR gives windows up to start + n
        return [
            replace(w, members=tuple(Member(row) for row in self.rows(w.members)))
            for w in self.product.windows(clock, upto)
        ]

    def rows(self, members):
        kept = [m for m in members if self.where is None or self.where(Env(row=m.row)) is True]  # 5.1
        if self.group is None:
            return [tuple(item(Env(row=m.row)) for item in self.items) for m in kept]  # 5.4: a bag, in order
        return [tuple(item(env) for item in self.items) for env in groups(kept, self.group, self.having)]

    def nothing(self, clock):
        return self.product.nothing(clock)


def groups(members, places, having):
    """5.7: one group per combination of values, in the order of their first tuple (6.4); those for which HAVING is true.

    Without GROUP BY (places is empty) the whole window is the group, also an empty one (5.6).
    """
    found = {} if places else {(): []}
    for m in members:
        found.setdefault(tuple(m.row[p] for p in places), []).append(m)
    envs = [Env(row=g[0].row if g else (), group=tuple(g)) for g in found.values()]
    return [env for env in envs if having is None or having(env) is True]
