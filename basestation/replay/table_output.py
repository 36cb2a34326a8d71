"""Answers as text tables: windows under a heading, tuples of streams in order of arrival.

window at 600, coverage road 43 of 44
  site  category
     3  hot

window at 600, revision 1, coverage road 44 of 44
- 3  hot
+ 4  hot

Several windows without rows, one after the other, are one line, and so is a coverage that stays as it was.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from basestation.replay.csv_output import Ledger
from basestation.replay.shortened_clock import SkippedAnswers
from basestation.replay.tick_order import order_by_tick
from basestation.replay.tick_times import TickTimes
from basestation.results.schema import ResultSchema
from basestation.results.wire import coverage_as_json
from basestation.updates.update import (
    Coverage,
    EpochMark,
    EpochMarks,
    LoopVariable,
    PlainUpdate,
    TupleUpdates,
    Update,
    Value,
    WindowUpdate,
    WindowUpdates,
    split_interleaved,
)
from gateway.cli.terminal import printable


class TableOutput:
    """The lines of text for the updates of a replay."""

    def __init__(self, queries: Sequence[ResultSchema], times: TickTimes | None = None, shows_all: bool = True) -> None:
        """With `times`, ticks are shown as times. Without `shows_all`, windows without rows and known coverage are summed up."""
        self._times, self._shows_all = times, shows_all
        self._empty: dict[int, list[WindowUpdate]] = {}  # the first and last of windows without rows, by query
        self._empty_count: Counter[int] = Counter()
        self._coverage_only: Counter[int] = Counter()  # revisions without a row, by query
        self._coverage: dict[int, Coverage] = {}  # of the last mark that was printed
        self._queries = {query.number: query for query in queries}
        self._widths: dict[int, list[int]] = {}  # of a stream's columns so far, by query
        self._incomplete: set[tuple[int, int]] = set()  # (query, tick) of printed marks
        self._last: tuple[str | None, int | None] | None = (
            None  # the query of the last line: a stream repeats its heading
        )

    def begin(self) -> str:
        """Nothing: headings precede windows and streams."""
        return ""

    def updates(self, updates: Iterable[Update]) -> str:
        """The lines of updates, those of several queries in the order of ticks."""
        ordered = order_by_tick(list(split_interleaved(updates)))
        return "".join(f"{line}\n" for update in ordered for line in self._lines(update))

    def skipped(self, stretches: Iterable[SkippedAnswers]) -> str:
        """The lines for answers that were left out. Windows without rows count with those before and after them."""
        lines: list[str] = []
        for each in stretches:
            if each.query in self._empty:
                windows = self._empty[each.query]
                self._empty[each.query] = [windows[0], replace(windows[-1], tick=each.last)]
                self._empty_count[each.query] += each.count
            elif each.tuples or self._queries[each.query].kind == "window":
                lines += ["", f"{self._name(each.query)}{self._repeated(each)}"]
                self._last = None, None
        return "".join(f"{line}\n" for line in lines)

    def _repeated(self, each: SkippedAnswers) -> str:
        first, last = self._when(each.first), self._when(each.last)
        what = "tuples of windows" if each.tuples else "windows"
        return f"{each.count:,} {what} with the same rows, from {first} to {last}; --all shows them"

    def _when(self, tick: int) -> str:
        return str(tick) if self._times is None else self._times.text(tick)

    def _lines(self, update: PlainUpdate) -> Iterator[str]:
        """The lines of an update."""
        match update:
            case WindowUpdates():
                for window in update:
                    if self._is_quiet(window):
                        continue
                    yield from self._empty_windows(update.query)
                    yield from self._window(window)
            case TupleUpdates():
                if len(update.rows):
                    yield from self._tuples(update)
            case EpochMarks():
                for mark in update:
                    yield from self._mark(mark)

    def end(self, until: int, ledger: Ledger) -> str:
        """The last windows without rows, and how many revisions were left out; the command prints the ledger."""
        lines = [line for query in sorted(self._empty) for line in self._empty_windows(query)]
        for query, count in sorted(self._coverage_only.items()):
            lines += ["", f"{self._name(query)}{count:,} revisions changed the coverage and no row; --all shows them"]
        return "".join(f"{line}\n" for line in lines)

    def _is_quiet(self, window: WindowUpdate) -> bool:
        """Note a window without rows that need not be printed by itself."""
        if self._shows_all or len(window.added) or len(window.removed):
            return False
        if window.revision:
            self._coverage_only[window.query] += 1
            return True
        self._empty[window.query] = [*self._empty.get(window.query, [])[:1], window]
        self._empty_count[window.query] += 1
        return True

    def _empty_windows(self, query: int) -> Iterator[str]:
        """The line for windows without rows since the last one that was printed; one alone is printed as it is."""
        windows = self._empty.pop(query, [])
        count = self._empty_count.pop(query, 0)
        if len(windows) == 1:
            yield from self._window(windows[0])
        elif windows:
            if self._last is not None:
                yield ""
            self._last = None, None
            first, last = self._when(windows[0].tick), self._when(windows[1].tick)
            yield f"{self._name(query)}{count:,} windows without rows, from {first} to {last}"

    def _name(self, number: int) -> str:
        return f"query {number}: " if len(self._queries) > 1 else ""

    def _window(self, update: WindowUpdate) -> Iterator[str]:
        query = self._queries[update.query]
        heading = f"{self._name(update.query)}window at {self._when(update.tick)}"
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
            lines = _aligned(columns, _shown(rows), [0] * len(columns)) if rows else iter(("no rows",))
            yield from (f"  {line}" for line in lines)
            return
        removed, added = (_shown(rows.to_lists(query.scales)) for rows in (update.removed, update.added))
        if not removed and not added:
            yield "  the same rows"
            return
        head, *changed = _aligned(columns, removed + added, [0] * len(columns))
        yield f"  {head}"
        for number, line in enumerate(changed):
            yield f"{'-' if number < len(removed) else '+'} {line}"

    def _tuples(self, update: TupleUpdates) -> Iterator[str]:
        query = self._queries[update.query]
        columns = [("_tick" if self._times is None else "_time", True), ("_index", True), *_headed(query)]
        rows = [
            (tick if self._times is None else self._when(tick), index, *row)
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

    def _mark(self, update: EpochMark) -> Iterator[str]:
        """A line for an incomplete epoch and for its later updates; none for an epoch that is complete at once."""
        key = update.query, update.tick
        complete = all(of is None or of[0] == of[1] for of in update.coverage.values())
        if complete and key not in self._incomplete:
            return
        is_known = not complete and key not in self._incomplete and self._coverage.get(update.query) == update.coverage
        self._incomplete.discard(key) if complete else self._incomplete.add(key)
        if is_known and not self._shows_all:
            return
        self._coverage[update.query] = update.coverage
        yield f"  {self._name(update.query)}epoch {self._when(update.tick)}{_coverage(update.coverage)}"


def _headed(query: ResultSchema) -> list[tuple[str, bool]]:
    """(label, whether the column is numeric) of each column."""
    return [(column.label, column.type.numeric) for column in query.columns]


def _listed(t: LoopVariable) -> Sequence[int | None]:
    return t if isinstance(t, tuple | list) else [t]


def _coverage(coverage: Coverage) -> str:
    parts = [f"{name} {of[0]} of {of[1]}" for name, of in coverage_as_json(coverage).items() if of is not None]
    return f", coverage {', '.join(parts)}" if parts else ""


def _shown(rows: Iterable[Sequence[Value]]) -> list[list[str]]:
    return [[format_cell(value) for value in row] for row in rows]


def format_cell(value: Value) -> str:
    """A value as text; without characters that control a terminal."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return printable(value, "")
    return repr(value) if isinstance(value, float) else str(value)


def _aligned(columns: Sequence[tuple[str, bool]], rows: Iterable[list[str]], widths: list[int]) -> Iterator[str]:
    """The heading and the rows in aligned columns, numbers to the right. Widens `widths` in place."""
    table = [[label for label, _ in columns], *rows]
    for i in range(len(columns)):
        widths[i] = max(widths[i], *(len(row[i]) for row in table))
    for row in table:
        cells = zip(row, widths, columns, strict=True)
        line = (cell.rjust(width) if numeric else cell.ljust(width) for cell, width, (_, numeric) in cells)
        yield "  ".join(line).rstrip()
