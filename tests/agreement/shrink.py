"""Shrink: a failing case made small by leaving out statements and rows, as long as it still fails."""

from tests.agreement.compare import agree


def shrink(schema, inputs, queries, outcome, judge=agree, most=400):
    """((schema, inputs, queries), Outcome) of the smallest case found that still disagrees; `most` bounds the tries."""
    found = _Shrinking(schema, inputs, queries, outcome, judge, most)
    found.statements()
    for name in inputs:
        found.rows(name)
    return (schema, found.inputs, found.queries), found.outcome


class _Shrinking:
    def __init__(self, schema, inputs, queries, outcome, judge, most):
        self.schema, self.inputs, self.queries, self.outcome = schema, inputs, list(queries), outcome
        self._judge, self._tries = judge, most

    def statements(self):
        _fewer(self.queries, lambda kept: self._fails(self.inputs, kept))

    def rows(self, name):
        _fewer(self.inputs[name], lambda kept: self._fails({**self.inputs, name: kept}, self.queries))
        for position, item in enumerate(self.inputs[name]):
            if isinstance(item, tuple):  # a version of a table
                _fewer(item[1], lambda kept, at=position: self._fails(self._with_version(name, at, kept), self.queries))

    def _with_version(self, name, position, rows):
        versions = list(self.inputs[name])
        versions[position] = (versions[position][0], rows)
        return {**self.inputs, name: versions}

    def _fails(self, inputs, queries):
        """Whether a smaller case still disagrees; if so it is the case from now on."""
        if not self._tries or not queries:
            return False
        self._tries -= 1
        outcome = self._judge(self.schema, inputs, queries)
        if outcome.verdict != "disagree":
            return False
        self.inputs, self.queries, self.outcome = inputs, queries, outcome
        return True


def _fewer(items, fails):
    """Leave out what can be left out: first large parts, then one by one."""
    size = len(items)
    while size:
        start = 0
        while start < len(items):
            kept = items[:start] + items[start + size :]
            if fails(kept):
                items = kept
            else:
                start += size
        size //= 2
