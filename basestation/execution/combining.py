"""Combining: which windows of several sequences stand together (SEMANTICS 4)."""

from itertools import product


def combinations(new, recent):
    """(tick, n, windows) of what new windows, a list for each sequence, make: at each tick where one has a window, all
    combinations of everybody's most recent. `recent` has those of each sequence, and is brought up to date.
    """
    if len(new) == 1:
        yield from ((w.tick, w.n, (w,)) for w in new[0])
        return
    at = [{} for _ in new]
    for windows, by_tick in zip(new, at, strict=True):
        for w in windows:
            by_tick.setdefault(w.tick, []).append(w)
    for tick in sorted({tick for by_tick in at for tick in by_tick}):
        for place, by_tick in enumerate(at):
            recent[place] = by_tick.get(tick, recent[place])
        for n, stand in enumerate(product(*recent), 1):
            yield tick, n, stand
