"""Formats the answer of a query to the inputs of a golden file as lines for review and comparison.

    tick=20 revision=0 coverage=field 5/6 +(2044.0)
    tick=20 revision=1 coverage=field 6/6 -(2044.0) +(2046.6666666666667)
    tick=30..60 by 10 revision=0 coverage=field 6/6 +(null)
    tick=3 index=1 +(7, 'it''s')
    tick=0 epoch coverage=road 2/2, traffic null
    ended at 12 with SN521: …

Lines have the order of emission. A window has `n` if it is not 1, and `t` in a loop. Rows of a window are sorted, except with
ORDER BY. Equal lines at ticks (and indexes, or values of t) with a constant step become one line.
"""

from dataclasses import dataclass

from basestation.algebra.node import walk
from basestation.algebra.one_off import Sort
from basestation.replay.result import EpochResult, WindowResult


@dataclass
class _Line:
    tick: int
    name: str  # of the other number: t, index or nothing
    number: object
    rest: str
    last: tuple = None  # (tick, number) of the last of several
    step: tuple = None

    def joins(self, other):
        """Extend this line by `other` if it continues the run; whether it does."""
        if (self.name, self.rest) != (other.name, other.rest) or not (_whole(self.number) and _whole(other.number)):
            return False
        tick, number = self.last or (self.tick, self.number)
        step = (other.tick - tick, other.number - number)
        if self.step not in (None, step) or step == (0, 0):
            return False
        self.last, self.step = (other.tick, other.number), step
        return True

    def lines(self):
        if self.last is None:
            return [self._format(self.tick, self.number)]
        (tick, number), (by, by_number) = self.last, self.step
        if tick == self.tick + by and number == self.number + by_number:  # a run of two stays two lines
            return [self._format(self.tick, self.number), self._format(tick, number)]
        return [self._format(_run(self.tick, tick, by), _run(self.number, number, by_number))]

    def _format(self, tick, number):
        return f"tick={tick}" + (f" {self.name}={number}" if self.name else "") + self.rest


def _whole(number):
    return isinstance(number, int)


def _run(first, last, step):
    return str(first) if step == 0 else f"{first}..{last}" + ("" if step == 1 else f" by {step}")


def lines_of(result, query, plan):
    """The lines of one query of a Result."""
    ordered = any(isinstance(node, Sort) for node in walk(plan.root))
    made = []
    for entry in result.history(query):
        for line in _lines(entry, ordered):
            if not (made and made[-1].joins(line)):
                made.append(line)
    lines = [text for line in made for text in line.lines()]
    ended = result.errors.get(query)
    return lines + ([f"ended at {ended.clock} with {ended.code}: {ended.message}"] if ended else [])


def _lines(history, ordered):
    match history:
        case WindowResult():
            n = f" n={history.n}" if history.n != 1 else ""
            rest = f"{n} revision={history.revision}{_coverage(history.coverage)}"
            rest += _rows("-", history.removed, ordered) + _rows("+", history.added, ordered)
            yield _Line(history.tick, *(("", 0) if history.t is None else ("t", history.t)), rest)
        case EpochResult():
            yield _Line(history.tick, "", 0, f" epoch{_coverage(history.coverage)}")
        case _:
            yield _Line(
                history.tick, "index", history.index, _rows("+" if history.weight == 1 else "-", [history.row], True)
            )


def _coverage(coverage):
    of = [f"{name} {'null' if c is None else f'{c[0]}/{c[1]}'}" for name, c in sorted(coverage.items())]
    return f" coverage={', '.join(of)}" if of else ""


def _rows(sign, rows, ordered):
    rows = rows if ordered else sorted(rows, key=_sortable)
    return "".join(f" {sign}({', '.join(map(_value, row))})" for row in rows)


def _sortable(row):
    return [(v is not None, isinstance(v, str), v) for v in row]


def _value(value):
    if value is None:
        return "null"
    if isinstance(value, str):
        return "'" + value.replace("'", "''").replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r") + "'"
    return repr(value)


def ledger_lines(ledger):
    """The deliveries by fate, a line for each extent."""
    first = {"received": 0, "accepted": 1}
    return [
        f"{name}: "
        + ", ".join(
            f"{what} {counts[what]}" for what in sorted(counts, key=lambda w: (first.get(w, 2), w)) if counts[what]
        )
        for name, counts in ledger.items()
        if any(counts.values())
    ]
