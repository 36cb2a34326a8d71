"""The current answer of a query as a materialized view: the sum of its updates (semantics 12.1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.vector import Vector
from basestation.updates.update import (
    Coverage,
    LoopVariable,
    Rows,
    TupleUpdates,
    Update,
    WindowUpdate,
    split_interleaved,
    split_singly,
)


@dataclass(frozen=True, slots=True)
class CurrentWindow:
    """A window after its latest revision."""

    tick: int
    n: int
    t: LoopVariable
    revision: int
    coverage: Coverage
    rows: Rows


@dataclass(frozen=True, slots=True)
class CurrentTuples:
    """The tuples of a stream that no update has retracted, by index."""

    tick: IntArray
    index: IntArray
    rows: Rows


def current_windows(updates: Iterable[Update]) -> list[CurrentWindow]:
    """Each window once, in the order of (tick, n)."""
    windows: dict[tuple[int, int], CurrentWindow] = {}
    for u in split_singly(updates):
        if not isinstance(u, WindowUpdate):
            continue  # the failure of the query
        before = windows.get((u.tick, u.n))
        rows = u.added if before is None else _concatenate([_remove(before.rows, u.removed, u), u.added])
        windows[u.tick, u.n] = CurrentWindow(u.tick, u.n, u.t, u.revision, u.coverage, rows)
    return [windows[key] for key in sorted(windows)]


def current_tuples(updates: Iterable[Update]) -> CurrentTuples:
    """The tuples of a stream query. Raises ValueError: it has emitted no tuple yet."""
    emitted = [u for u in split_interleaved(updates) if isinstance(u, TupleUpdates)]
    if not emitted:
        raise ValueError("the stream has emitted no tuples yet")
    tick = np.concatenate([u.tick for u in emitted])
    index = np.concatenate([u.index for u in emitted])
    weight = np.concatenate([u.weight for u in emitted])
    numbers, place = np.unique(index, return_inverse=True)
    total = np.zeros(len(numbers), np.int64)
    np.add.at(total, place, weight)
    if not np.isin(total, (0, 1)).all():
        raise AssertionError(f"query {emitted[0].query} added or retracted a tuple twice")
    last = np.full(len(numbers), -1)
    added = np.flatnonzero(weight > 0)
    last[place[added]] = added  # of several replacements the latest is current
    kept = last[total == 1]
    return CurrentTuples(tick[kept], index[kept], _concatenate([u.rows for u in emitted]).take(kept))


def _concatenate(parts: Sequence[Rows]) -> Rows:
    columns = zip(*(rows.columns for rows in parts), strict=True)
    return Rows(tuple(_concatenate_vectors(vectors) for vectors in columns), sum(len(rows) for rows in parts))


def _concatenate_vectors(vectors: Sequence[Vector]) -> Vector:
    return Vector(np.concatenate([v.values for v in vectors]), np.concatenate([v.validity for v in vectors]))


def _remove(rows: Rows, removed: Rows, update: WindowUpdate) -> Rows:
    """The remaining rows. Of equal rows the last one is removed (12.1); null equals null here."""
    if not len(removed):
        return rows
    code = _row_codes(_concatenate([removed, rows]))
    gone, held = code[: len(removed)], code[len(removed) :][::-1]  # from the end
    todo = np.bincount(gone, minlength=int(code.max()) + 1)
    order = np.argsort(held, kind="stable")
    ordered = held[order]
    nth = np.arange(len(held)) - np.searchsorted(ordered, ordered)  # how many equal rows follow it
    goes = np.zeros(len(held), bool)
    goes[order] = nth < todo[ordered]
    if goes.sum() != len(removed):
        raise AssertionError(
            f"query {update.query} removed rows of the window at tick {update.tick} that it had not added"
        )
    return rows.take(np.flatnonzero(~goes[::-1]))


def _row_codes(rows: Rows) -> IntArray:
    """A number for each row, equal for equal rows."""
    code = np.zeros(len(rows), np.int64)
    for column in rows.columns:
        _, of_value = np.unique(column.values, return_inverse=True)
        of_value = np.where(column.validity, of_value + 1, 0)
        _, code = np.unique(code * (int(of_value.max(initial=0)) + 1) + of_value, return_inverse=True)
    return code
