"""Histories: all updates of one query, in a shape in which two ways of finding it can be compared.

Rows of a window stand in order in its updates (12.1), and their sum is a bag; of a stream, each index has its own history. Values keep their types (1 is not 1.0) and
-0.0 is 0.0. Clock ticks are there where both sides ended every one of them.
"""

from collections import Counter
from dataclasses import dataclass, field

from basestation.errors import CATALOGUE


@dataclass
class History:
    """Each is a list of updates in order, by the window, tuple or mark that they are about."""

    windows: dict = field(default_factory=dict)  # (tick, n, t) -> [(clock, revision, coverage, removed, added)]
    tuples: dict = field(default_factory=dict)  # index -> [(clock, tick, weight, row)]
    marks: dict = field(default_factory=dict)  # tick -> [(clock, coverage)]
    sums: object = None  # the current answer in the end
    error: object = None  # (clock, kind) of the error that ended the query

    def without_order(self):
        """Tuples of one tick, whichever of them has which index (semantics 6.4 forgives this)."""
        bags = {}
        for said in self.tuples.values():
            for clock, tick, weight, row in said:
                bags.setdefault(tick, Counter())[clock, weight, row] += 1
        return bags, sorted(self.tuples)


def typed(row):
    """A row whose values compare with their types."""
    return tuple((type(v).__name__, v + 0.0 if isinstance(v, float) else v) for v in row)


def bag(rows):
    return Counter(map(typed, rows))


def ordered(rows):
    return [typed(row) for row in rows]


def covered(coverage):
    return {name: None if of is None else tuple(of) for name, of in coverage.items()}


def of_oracle(answer, clocks=True):
    """The history of an Answer of the oracle."""
    found = History(error=(answer.error[0] if clocks else None, answer.error[1]) if answer.error else None)
    for u in answer.windows:
        entry = (_at(u, clocks), u.revision, covered(u.coverage), ordered(u.removed), ordered(u.added))
        found.windows.setdefault(u.key, []).append(entry)
    for u in answer.tuples:
        found.tuples.setdefault(u.index, []).append((_at(u, clocks), u.tick, u.weight, typed(u.row)))
    for u in answer.marks:
        found.marks.setdefault(u.tick, []).append((_at(u, clocks), covered(u.coverage)))
    current = answer.current()
    if answer.kind == "stream":
        found.sums = sorted((index, tick, typed(row)) for tick, index, row in current)
    else:
        found.sums = {key: bag(rows) for key, rows in current.items()}
    return found


def _at(update, clocks):
    return update.clock if clocks else None


def of_replay(result, clocks_of, query, clocks=True, in_order=True):
    """The history of a query in a Result; `clocks_of` says the clock tick of each window, tuple and mark.

    Without `in_order`, the rows of each update of a window are a bag.
    """
    rows = ordered if in_order else bag
    found, ended = History(), result.errors.get(query)
    if ended is not None:
        found.error = (
            ended.clock if clocks else None,
            CATALOGUE[ended.code].kind if ended.code in CATALOGUE else "input",
        )
    at = iter(clocks_of)
    for u in result.history(query):
        clock = next(at)
        clock = clock if clocks else None
        match type(u).__name__:
            case "WindowResult":
                entry = (clock, u.revision, covered(u.coverage), rows(u.removed), rows(u.added))
                found.windows.setdefault((u.tick, u.n, u.t), []).append(entry)
            case "EpochResult":
                found.marks.setdefault(u.tick, []).append((clock, covered(u.coverage)))
            case "TupleResult":
                found.tuples.setdefault(u.index, []).append((clock, u.tick, u.weight, typed(u.row)))
    current = result.current(query)
    if isinstance(current, list):
        found.sums = sorted((index, tick, typed(row)) for tick, index, row in current)
    else:
        found.sums = {(*key, None)[:3]: bag(rows) for key, rows in current.items()}
    return found


def difference(expected, got):
    """The first difference in words, or None; earlier ticks first."""
    for what, one, other in (
        ("window", expected.windows, got.windows),
        ("index", expected.tuples, got.tuples),
        ("epoch", expected.marks, got.marks),
    ):
        for key in sorted({*one, *other}, key=_order):
            if one.get(key) != other.get(key):
                return _told(what, key, one.get(key, []), other.get(key, []))
    if expected.sums != got.sums:
        return f"the sum of the updates\nexpected {expected.sums}\ngot      {got.sums}"
    if expected.error != got.error:
        return f"the end of the query\nexpected error {expected.error}\ngot      error {got.error}"
    return None


def _order(key):
    return (
        tuple(str(k) if not isinstance(k, int) else f"{k:020}" for k in key)
        if isinstance(key, tuple)
        else (f"{key:020}",)
    )


def _told(what, key, expected, got):
    position = next(
        (i for i, (a, b) in enumerate(zip(expected, got, strict=False)) if a != b), min(len(expected), len(got))
    )
    lines = [f"{what} {key}, update {position + 1}"]
    for name, said in (("expected", expected), ("got     ", got)):
        lines.append(f"{name} {_entry(said[position]) if position < len(said) else 'nothing'}")
    return "\n".join(lines)


def _entry(entry):
    return " ".join(_value(part) for part in entry)


def _value(part):
    if isinstance(part, Counter):
        rows = [str(tuple(v for _, v in row)) for row in part.elements()]
        return "{" + " ".join(sorted(rows)) + "}"
    if isinstance(part, list):
        return "[" + " ".join(str(tuple(v for _, v in row)) for row in part) + "]"
    if isinstance(part, tuple):
        return str(tuple(v for _, v in part))
    return str(part)
