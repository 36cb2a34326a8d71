"""Emitted tuples: what a converter keeps of its windows."""

import numpy as np

from basestation.algebra.vector import Vector
from basestation.execution.columns import tuples as tuples_module
from basestation.execution.columns.tuples import Tuples
from basestation.execution.streams.emitted_tuples import EmittedTuples


def some(ident, window):
    ident, window = np.asarray(ident), np.asarray(window)
    zero = 0 * ident
    return Tuples(ident, ident, ident, zero, zero, ident, window, zero == 1, {1: Vector(ident * 10)})


def test_later_windows_concatenate_no_kept_tuples(monkeypatch):
    """Of a stream in order, each window is looked up and added once: the cost must not grow with those kept.

    kept      |0|1|2|3| ... |39|
    looked up                   |40|
    """
    emitted = EmittedTuples()
    for window in range(40):
        emitted.add(some([2 * window, 2 * window + 1], [window, window]))
    with monkeypatch.context() as patched:
        patched.setattr(tuples_module, "concatenate_tuples", lambda parts: 1 / 0)
        assert emitted.of(np.array([40, 41])) is None
        emitted.drop(np.empty(0, np.int64))
    found, at = emitted.of(np.array([39, 3, 40]))
    assert (found.ident.tolist(), at.tolist()) == ([78, 79, 6, 7], [0, 0, 1, 1])
    emitted.drop(np.array([79, 6]))
    found, at = emitted.of(np.array([39, 3]))
    assert (found.ident.tolist(), at.tolist()) == ([78, 7], [0, 1])
