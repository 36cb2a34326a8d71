"""Relational: what happens inside windows: selection, projection, joins, aggregation, for many windows at once."""

import numpy as np

from basestation.algebra.comparison import compare
from basestation.algebra.expressions import columns_of
from basestation.algebra.vector import Vector
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.columns.window_batch import expand_ranges
from basestation.execution.columns.window_contents import WindowContents, factorize
from basestation.execution.streams.stream import project_columns

_AT_ONCE = 2**20  # how many combinations are looked at together


def select(frame, predicate):
    mask = frame.evaluation.of(predicate).is_true
    return frame if mask.all() else frame.take(mask)


def project(frame, outputs):
    return frame.with_columns(project_columns(outputs, frame.columns, len(frame)))


# --- joins -----------------------------------------------------------------------------------------------------------


def join(frames, keys, residual):
    """All combinations of tuples of one window that agree on the keys, the first input slowest (6.4).

    Where no key chooses them, not all combinations are there at once.
    """
    if residual is None:
        return _joined(frames, keys)
    parts = [frames[0]] if keys else _portions(frames)
    found = [select(_joined([part, *frames[1:]], keys), residual) for part in parts]
    if len(found) == 1:
        return found[0]
    columns = {id: concatenate_vectors([frame.columns[id] for frame in found]) for id in found[0].columns}
    return WindowContents(frames[0].windows, np.concatenate([frame.window for frame in found]), columns)


def _portions(frames):
    """The first frame, cut where too many combinations would come of it."""
    first = frames[0]
    total = np.prod([np.diff(frame.bounds()).astype(np.float64) for frame in frames], axis=0).sum()
    step = max(1, int(len(first) * min(1.0, _AT_ONCE / max(1.0, total))))
    return [first.take(slice(at, at + step)) for at in range(0, max(1, len(first)), step)]


def _joined(frames, keys):
    out, pending = frames[0], list(keys)
    for right in frames[1:]:
        have, come = set(out.columns), set(right.columns)
        usable = [k for k in pending if _ids(k[0]) <= have and _ids(k[1]) <= come]
        pending = [k for k in pending if k not in usable]
        out = _pair(out, right, usable)
    for left, right in pending:  # keys between inputs that were put together by others
        mask = compare("=", out.evaluation.of(left), out.evaluation.of(right)).is_true
        out = out.take(mask)
    return out


def _ids(expression):
    return {c.id for c in columns_of(expression)}


def _pair(left, right, keys):
    sides = [(left.evaluation.of(a), right.evaluation.of(b)) for a, b in keys]
    here = np.arange(len(left))
    there = np.arange(len(right))
    for a, b in sides:  # an equality with null holds for nothing
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
        if a.values.dtype != b.values.dtype:  # integers beside floats were put together by their nearest doubles
            mask = compare("=", a.take(from_left), b.take(from_right)).is_true
            if not mask.all():
                paired, from_left, from_right = paired.take(mask), from_left[mask], from_right[mask]
    return paired


def _comparable(a, b):
    """Both sides of a key as one Vector: of doubles where the types differ."""
    if a.values.dtype == b.values.dtype:
        return Vector(np.concatenate([a.values, b.values]))
    return Vector(np.concatenate([a.values.astype(np.float64), b.values.astype(np.float64)]))
