"""Answers as people read them: windows under a heading, tuples of streams as they come.

window at 600, coverage road 43 of 44
  site  category
     3  hot

window at 600, revision 1, coverage road 44 of 44
- 3  hot
+ 4  hot
"""

from basestation.results.wire import coverage_as_json
from basestation.updates.update import EpochMarks, TupleUpdates, WindowUpdates


class TableLines:
    def __init__(self, queries):
        self._queries = {query.number: query for query in queries}
        self._widths = {}  # of streams: what was wide enough so far
        self._incomplete = set()  # (query, tick) of marks that were told
        self._last = None  # what the last line was about: headings of streams are repeated where they were interrupted

    def begin(self):
        return ()

    def update(self, update):
        match update:
            case WindowUpdates():
                for each in update:
                    yield from self._window(each)
            case TupleUpdates():
                if len(update.rows):
                    yield from self._tuples(update)
            case EpochMarks():
                for each in update:
                    yield from self._mark(each)

    def end(self, until, ledger):
        return ()

    def _name(self, number):
        return f"query {number}: " if len(self._queries) > 1 else ""

    def _window(self, update):
        query = self._queries[update.query]
        heading = f"{self._name(update.query)}window at {update.tick}"
        heading += f" ({update.n})" if update.n > 1 else ""
        heading += f", t = {', '.join(map(str, _listed(update.t)))}" if update.t is not None else ""
        heading += f", revision {update.revision}" if update.revision else ""
        heading += _coverage(update.coverage)
        if self._last is not None:
            yield ""
        self._last = None, None
        yield heading
        columns = _headed(query)
        if update.revision == 0:
            rows = update.added.to_lists(query.scales)
            yield from (
                (f"  {line}" for line in _aligned(columns, _shown(rows), [0] * len(columns)))
                if rows
                else ("  no rows",)
            )
            return
        removed, added = (_shown(rows.to_lists(query.scales)) for rows in (update.removed, update.added))
        if not removed and not added:
            yield "  the same rows"
            return
        head, *lines = _aligned(columns, removed + added, [0] * len(columns))
        yield f"  {head}"
        for number, line in enumerate(lines):
            yield f"{'-' if number < len(removed) else '+'} {line}"

    def _tuples(self, update):
        query = self._queries[update.query]
        columns = [("_tick", True), ("_index", True), *_headed(query)]
        rows = [
            (tick, index, *row)
            for tick, index, row in zip(
                update.tick.tolist(), update.index.tolist(), update.rows.to_lists(query.scales), strict=True
            )
        ]
        widths = self._widths.get(update.query, [0] * len(columns))
        head, *lines = _aligned(columns, _shown(rows), widths)
        if self._last != ("stream", update.query):
            if self._last is not None:
                yield ""
            if self._name(update.query):
                yield f"{self._name(update.query)}stream"
            yield f"  {head}"
        self._last, self._widths[update.query] = ("stream", update.query), widths
        for weight, line in zip(update.weight.tolist(), lines, strict=True):
            yield f"{' ' if weight > 0 else '-'} {line}"

    def _mark(self, update):
        """Epochs that are complete are no news; those that are not, and what becomes of them, are."""
        key = update.query, update.tick
        complete = all(of is None or of[0] == of[1] for of in update.coverage.values())
        if complete and key not in self._incomplete:
            return
        self._incomplete.discard(key) if complete else self._incomplete.add(key)
        yield f"  {self._name(update.query)}epoch {update.tick}{_coverage(update.coverage)}"


def _headed(query):
    """(label, whether its values are numbers) of each column."""
    return [(column.label, column.type.numeric) for column in query.columns]


def _listed(t):
    return t if isinstance(t, tuple | list) else [t]


def _coverage(coverage):
    told = [f"{name} {of[0]} of {of[1]}" for name, of in coverage_as_json(coverage).items() if of is not None]
    return f", coverage {', '.join(told)}" if told else ""


def _shown(rows):
    return [[_cell(value) for value in row] for row in rows]


def _cell(value):
    if value is None:
        return "null"
    if isinstance(value, str):
        # Text of strangers must not move the cursor of whoever reads it.
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)
    return repr(value) if isinstance(value, float) else str(value)


def _aligned(columns, rows, widths):
    """The heading and the rows, columns under each other and numbers to the right; `widths` is grown in place."""
    table = [[label for label, _ in columns], *rows]
    for i in range(len(columns)):
        widths[i] = max(widths[i], *(len(row[i]) for row in table))
    for row in table:
        cells = zip(row, widths, columns, strict=True)
        line = (cell.rjust(width) if numeric else cell.ljust(width) for cell, width, (_, numeric) in cells)
        yield "  ".join(line).rstrip()
