"""Update: one step in the history of one window's answer, columnar; the current answer is the sum of the updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

Coverage = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Update:
    """What changed in the window (tick, n) of a query (SEMANTICS 12.1).

    Revision 0 is the first answer. `weight` is +1 for a row that is given, -1 for one that is taken back. Coverage is
    (used, due) after this update; None where nothing sensed lies below. `valid` has the columns with nulls only.
    """

    query: int
    tick: int
    n: int
    revision: int
    coverage: Coverage | None
    columns: Mapping[str, np.ndarray]
    weight: np.ndarray
    valid: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.weight)

    def rows(self) -> list[tuple]:
        """The rows as tuples, None for null: for people and JSON, not for the data path."""
        listed = [_listed(column, self.valid.get(name)) for name, column in self.columns.items()]
        return list(zip(*listed, strict=True)) if listed else [()] * len(self)


def consolidate(updates: Sequence[Update]) -> Update:
    """The sum of the updates of one window, in their order: its current answer, rows that cancel out left away."""
    last = updates[-1]
    names = list(last.columns)
    columns = {name: np.concatenate([update.columns[name] for update in updates]) for name in names}
    valid = {name: np.concatenate([_mask(update, name) for update in updates]) for name in names}
    weight = np.concatenate([update.weight for update in updates])
    group, first = _groups([(columns[name], valid[name]) for name in names], len(weight))
    total = np.zeros(len(first), np.int64)
    np.add.at(total, group, weight)
    if (total < 0).any():
        raise AssertionError(f"query {last.query} took back rows of the window at {last.tick} that it had not given")
    kept = np.repeat(first, total)
    kept.sort()
    return Update(
        last.query,
        last.tick,
        last.n,
        last.revision,
        last.coverage,
        {name: column[kept] for name, column in columns.items()},
        np.ones(len(kept), np.int64),
        {name: mask[kept] for name, mask in valid.items() if not mask[kept].all()},
    )


def _groups(columns: list[tuple[np.ndarray, np.ndarray]], size: int) -> tuple[np.ndarray, np.ndarray]:
    """For each row the number of its group of equal rows, and for each group its first row. Null equals null here."""
    group = np.zeros(size, np.int64)
    for column, mask in columns:
        _, code = np.unique(column, return_inverse=True)
        code = np.where(mask, code + 1, 0)
        _, group = np.unique(group * (code.max(initial=0) + 1) + code, return_inverse=True)
    _, first = np.unique(group, return_index=True)
    return group, first


def _mask(update: Update, name: str) -> np.ndarray:
    mask = update.valid.get(name)
    return np.ones(len(update), bool) if mask is None else mask


def _listed(column: np.ndarray, mask: np.ndarray | None) -> list:
    values = column.tolist()
    return values if mask is None else [v if there else None for v, there in zip(values, mask.tolist(), strict=True)]
