"""The current answer of a query: the sum of its updates (SEMANTICS 12.1), window by window or tuple by tuple."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from basestation.algebra.vector import Vector
from basestation.updates.update import (
    Coverage,
    Rows,
    TupleUpdates,
    Update,
    WindowUpdate,
    split_interleaved,
    split_singly,
)


@dataclass(frozen=True, slots=True)
class CurrentWindow:
    """What a window holds after its latest revision."""

    tick: int
    n: int
    t: int | tuple | None
    revision: int
    coverage: Coverage
    rows: Rows


@dataclass(frozen=True, slots=True)
class CurrentTuples:
    """The tuples of a stream that were given and not taken back, by index."""

    tick: np.ndarray
    index: np.ndarray
    rows: Rows


def current_windows(updates: Iterable[Update]) -> list[CurrentWindow]:
    """Each window once, in the order of (tick, n)."""
    windows: dict[tuple[int, int], CurrentWindow] = {}
    for u in split_singly(updates):
        if not isinstance(u, WindowUpdate):
            continue  # that the query has ended
        before = windows.get((u.tick, u.n))
        rows = u.added if before is None else _joined([_without(before.rows, u.removed, u), u.added])
        windows[u.tick, u.n] = CurrentWindow(u.tick, u.n, u.t, u.revision, u.coverage, rows)
    return [windows[key] for key in sorted(windows)]


def current_tuples(updates: Iterable[Update]) -> CurrentTuples:
    """The tuples of a stream query, which says marks of epochs as well; ValueError if it has not said any tuple."""
    said = [u for u in split_interleaved(updates) if isinstance(u, TupleUpdates)]
    if not said:
        raise ValueError("the stream has said no tuples yet")
    tick, index, weight = (np.concatenate([getattr(u, name) for u in said]) for name in ("tick", "index", "weight"))
    numbers, place = np.unique(index, return_inverse=True)
    total = np.zeros(len(numbers), np.int64)
    np.add.at(total, place, weight)
    if not np.isin(total, (0, 1)).all():
        raise AssertionError(f"query {said[0].query} gave or took back a tuple twice")
    last = np.full(len(numbers), -1)
    given = np.flatnonzero(weight > 0)
    last[place[given]] = given  # of several replacements the latest holds
    kept = last[total == 1]
    return CurrentTuples(tick[kept], index[kept], _joined([u.rows for u in said]).take(kept))


def _joined(parts: list[Rows]) -> Rows:
    columns = zip(*(rows.columns for rows in parts), strict=True)
    return Rows(tuple(_concatenated(vectors) for vectors in columns), sum(len(rows) for rows in parts))


def _concatenated(vectors: tuple[Vector, ...]) -> Vector:
    return Vector(np.concatenate([v.values for v in vectors]), np.concatenate([v.validity for v in vectors]))


def _without(rows: Rows, removed: Rows, update: WindowUpdate) -> Rows:
    """The rows that are left. Of equal rows the last one goes (12.1); null equals null here."""
    if not len(removed):
        return rows
    code = _codes(_joined([removed, rows]))
    gone, held = code[: len(removed)], code[len(removed) :][::-1]  # from the end
    todo = np.bincount(gone, minlength=int(code.max()) + 1)
    order = np.argsort(held, kind="stable")
    ordered = held[order]
    nth = np.arange(len(held)) - np.searchsorted(ordered, ordered)  # how many equal rows stand behind it
    goes = np.zeros(len(held), bool)
    goes[order] = nth < todo[ordered]
    if goes.sum() != len(removed):
        raise AssertionError(
            f"query {update.query} took back rows of the window at {update.tick} that it had not given"
        )
    return rows.take(np.flatnonzero(~goes[::-1]))


def _codes(rows: Rows) -> np.ndarray:
    """For each row a number, the same for equal rows."""
    code = np.zeros(len(rows), np.int64)
    for column in rows.columns:
        _, of_value = np.unique(column.values, return_inverse=True)
        of_value = np.where(column.validity, of_value + 1, 0)
        _, code = np.unique(code * (int(of_value.max(initial=0)) + 1) + of_value, return_inverse=True)
    return code
