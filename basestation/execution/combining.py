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


class Product:
    """The windows of several inputs that stand together, of which some may come after later ones of others (11).

    Up to a certain tick all inputs have given all their windows. What stands together behind it is found again in each
    step: a window that comes late makes others, and takes the place of older ones in those that are there.
    """

    def __init__(self, width):
        self._recent = [[] for _ in range(width)]  # the windows of each input's most recent certain tick
        self._open = [[] for _ in range(width)]  # those behind it

    def stands(self, new, certain):
        """(tick, n, windows) of all that stands together behind what was certain before."""
        if len(new) == 1:
            return list(combinations(new, self._recent))
        given = [[*open, *more] for open, more in zip(self._open, new, strict=True)]
        found = list(combinations(given, list(self._recent)))
        for place, windows in enumerate(given):
            past = [w for w in windows if w.tick <= certain]
            self._open[place] = [w for w in windows if w.tick > certain]
            last = max((w.tick for w in past), default=None)
            self._recent[place] = [w for w in past if w.tick == last] or self._recent[place]
        return found

    def coming(self, place):
        """The windows of one input that may stand in combinations to come."""
        return [*self._recent[place], *self._open[place]]
