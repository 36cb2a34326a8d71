"""A single window or mark as the engine emits it: columns with one entry."""

import numpy as np

from basestation.updates.update import EpochMarks, WindowUpdate, WindowUpdates


def as_columns(update):
    coverage = {name: of and tuple(np.array([each], np.int64) for each in of) for name, of in update.coverage.items()}
    tick = np.array([update.tick], np.int64)
    if not isinstance(update, WindowUpdate):
        return EpochMarks(update.query, tick, coverage)
    t = np.empty(1, object)
    t[0] = update.t
    n, revision = np.array([update.n]), np.array([update.revision])
    added_offsets, removed_offsets = (np.array([0, len(of)]) for of in (update.added, update.removed))
    return WindowUpdates(
        update.query, tick, n, t, revision, coverage, update.added, added_offsets, update.removed, removed_offsets
    )
