"""Row operators: selection, projection and joins of the rows inside windows, for many windows at once."""

from collections.abc import Sequence

import numpy as np

from basestation.algebra.comparison import compare
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import columns_of
from basestation.algebra.vector import Vector
from basestation.execution import thresholds
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_batch import expand_ranges
from basestation.execution.columns.window_contents import WindowContents, factorize
from basestation.execution.streams.filter_stream import project_columns

Keys = Sequence[tuple[Expression, Expression]]
"""Equalities of a join: pairs of expressions, each over one input."""


def select(frame: WindowContents, predicate: Expression) -> WindowContents:
    """The rows for which a predicate is true."""
    mask = frame.evaluation.of(predicate).is_true
    return frame if mask.all() else frame.take(mask)


def project(frame: WindowContents, outputs: tuple[tuple[Column, Expression], ...]) -> WindowContents:
    """The rows with computed columns."""
    return frame.with_columns(project_columns(outputs, frame.columns, len(frame)))


# --- joins -----------------------------------------------------------------------------------------------------------


def join(frames: list[WindowContents], keys: Keys, residual: Expression | None) -> WindowContents:
    """All combinations of rows of one window that agree on the keys, the first input slowest (6.4).

    Without keys, combinations are made and tested in portions.
    """
    if residual is None:
        return _join_all(frames, keys)
    parts = [frames[0]] if keys else _split(frames)
    found = [select(_join_all([part, *frames[1:]], keys), residual) for part in parts]
    if len(found) == 1:
        return found[0]
    columns = {id: concatenate_vectors([frame.columns[id] for frame in found]) for id in found[0].columns}
    return WindowContents(frames[0].windows, np.concatenate([frame.window for frame in found]), columns)


def _split(frames: list[WindowContents]) -> list[WindowContents]:
    """The first frame in portions, none of which makes too many combinations."""
    first = frames[0]
    total = np.prod([np.diff(frame.bounds()).astype(np.float64) for frame in frames], axis=0).sum()
    step = max(1, int(len(first) * min(1.0, thresholds.JOIN_COMBINATIONS / max(1.0, total))))
    return [first.take(slice(at, at + step)) for at in range(0, max(1, len(first)), step)]


def _join_all(frames: list[WindowContents], keys: Keys) -> WindowContents:
    out, pending = frames[0], list(keys)
    for right in frames[1:]:
        bound, added = set(out.columns), set(right.columns)
        usable = [k for k in pending if _ids(k[0]) <= bound and _ids(k[1]) <= added]
        pending = [k for k in pending if k not in usable]
        out = _join_pair(out, right, usable)
    for a, b in pending:  # keys between inputs that other keys have joined
        mask = compare("=", out.evaluation.of(a), out.evaluation.of(b)).is_true
        out = out.take(mask)
    return out


def _ids(expression: Expression) -> set[int]:
    return {c.id for c in columns_of(expression)}


def _join_pair(left: WindowContents, right: WindowContents, keys: Keys) -> WindowContents:
    """The hash join of two inputs."""
    sides = [(left.evaluation.of(a), right.evaluation.of(b)) for a, b in keys]
    here = np.arange(len(left))
    there = np.arange(len(right))
    for a, b in sides:  # null equals nothing
        here = here[a.validity[here]]
        there = there[b.validity[there]]
    window = np.concatenate([left.window[here], right.window[there]])
    code, count = factorize([_comparable(a.take(here), b.take(there)) for a, b in sides], len(window))
    code = window * count + code
    mine, theirs = code[: len(here)], code[len(here) :]
    order = np.argsort(theirs, kind="stable")
    ordered = theirs[order]
    first, last = np.searchsorted(ordered, mine, "left"), np.searchsorted(ordered, mine, "right")
    counts = last - first
    from_left = here[np.repeat(np.arange(len(here)), counts)]
    from_right = there[order[expand_ranges(first, counts)]]
    columns = {id: v.take(from_left) for id, v in left.columns.items()}
    columns |= {id: v.take(from_right) for id, v in right.columns.items()}
    paired = WindowContents(left.windows, left.window[from_left], columns)
    for a, b in sides:
        if a.values.dtype != b.values.dtype:  # integers and floats were matched by their nearest doubles
            mask = compare("=", a.take(from_left), b.take(from_right)).is_true
            if not mask.all():
                paired, from_left, from_right = paired.take(mask), from_left[mask], from_right[mask]
    return paired


def _comparable(a: Vector, b: Vector) -> Vector:
    """Both sides of a key as one column: of doubles where the types differ."""
    if a.values.dtype == b.values.dtype:
        return Vector(np.concatenate([a.values, b.values]))
    return Vector(np.concatenate([a.values.astype(np.float64), b.values.astype(np.float64)]))
