"""Epochs: what is due from a sensed extent, what is here, and up to which tick nothing more is waited for.

An epoch is one due tick: which tuple holds each site's key (SEMANTICS 1.5), and which sites have been heard of at all.
The watermark depends on the clock and the schedule, never on timestamps: a silent site cannot hold a window longer than
`wait`, and a clock that runs ahead cannot close one.
"""

import numpy as np

from acquisition.instants import grid_at_or_after

FREE = -1
NEVER = 2**62


class Epochs:
    """A row for each due tick of which something came, a column for each site in the declared order.

    `_holder` has the number of the tuple that holds the key, `_seen` that of one that is seen, `_filtered` the arrival of the
    report that there is none to be seen, `_here` whether the site was heard of. They differ where a tuple was taken back that its extent does not correct windows about: its key is free, and
    yet it is seen.
    """

    def __init__(self, extent, begun=0):
        """Nothing is due before `schedule` if `begun` is None."""
        self.interval, self.wait = extent.interval, extent.wait
        self.begun = NEVER  # the first tick that was ever scheduled
        self.sites = np.array(extent.sites, np.int64)
        self._order = np.argsort(self.sites, kind="stable")
        self._sorted = self.sites[self._order]
        self._ticks = self._row = np.empty(0, np.int64)  # those that have a row, ascending, and which
        self._holder = self._seen = np.empty((0, len(self.sites)), np.int64)
        self._filtered = np.empty((0, len(self.sites)), np.int64)  # NEVER where there is no such report
        self._here = np.empty((0, len(self.sites)), bool)
        self._count = np.empty(0, np.int64)
        if begun is not None:
            self.schedule(begun)

    def schedule(self, tick):
        """The extent is sampled from a tick on, if it was not before."""
        if self.begun == NEVER:
            self.begun = grid_at_or_after(tick, self.interval)

    def positions(self, sites):
        """The place of each site in the declared order; they must be declared."""
        return self._order[np.searchsorted(self._sorted, sites)]

    def due(self, ticks, sites):
        """Which (tick, site) are on the schedule."""
        if not len(self.sites):
            return np.zeros(len(ticks), bool)
        at = np.minimum(np.searchsorted(self._sorted, sites), len(self._sorted) - 1)
        return (self._sorted[at] == sites) & (ticks % self.interval == 0) & (ticks >= self.begun)

    # --- rows --------------------------------------------------------------------------------------------------------

    def _rows_of(self, ticks):
        """The row of each tick, and which of them have one."""
        if not len(self._ticks):
            return np.zeros(len(ticks), np.int64), np.zeros(len(ticks), bool)
        at = np.minimum(np.searchsorted(self._ticks, ticks), len(self._ticks) - 1)
        return self._row[at], self._ticks[at] == ticks

    def _room_for(self, ticks):
        """These ticks have rows from now on."""
        new = np.unique(ticks)
        rows = len(self._ticks) + np.arange(len(new))
        if len(self._ticks) + len(new) > len(self._count):
            more = len(self._ticks) + 2 * len(new) + 8
            self._holder, self._seen = (_longer(of, more, FREE) for of in (self._holder, self._seen))
            self._filtered = _longer(self._filtered, more, NEVER)
            self._here, self._count = _longer(self._here, more, False), _longer(self._count, more, 0)
        at = np.searchsorted(self._ticks, new)
        self._ticks, self._row = np.insert(self._ticks, at, new), np.insert(self._row, at, rows)

    def _rows_for(self, ticks):
        """The row of each tick; those without one get it."""
        rows, known = self._rows_of(ticks)
        if not known.all():
            self._room_for(ticks[~known])
            rows, _ = self._rows_of(ticks)
        return rows

    def holders(self, ticks, sites):
        """The number of the tuple that holds each key; FREE where none does."""
        rows, known = self._rows_of(ticks)
        if not known.any():
            return np.full(len(ticks), FREE)
        return np.where(known, self._holder[rows, self.positions(sites)], FREE)

    def free_again(self, ticks, sites):
        """Of which keys the site was heard of, and yet none holds them."""
        rows, known = self._rows_of(ticks)
        if not known.any():
            return known
        places = self.positions(sites)
        return known & self._here[rows, places] & (self._holder[rows, places] == FREE)

    def unheard(self, ticks, sites):
        """A mask of the entries whose sites were not heard of before, the first of each."""
        rows, known = self._rows_of(ticks)
        mask = self.first_of_each(ticks, sites)
        return mask & ~(known & self._here[rows, self.positions(sites)]) if known.any() else mask

    def first_of_each(self, ticks, sites):
        """A mask of the first of the entries with each key."""
        keys = ticks * max(1, len(self.sites)) + self.positions(sites)
        mask = np.ones(len(ticks), bool)
        if (keys[1:] <= keys[:-1]).any():
            mask[:] = False
            mask[np.unique(keys, return_index=True)[1]] = True
        return mask

    def take(self, ticks, sites, numbers, sees):
        """The keys are held by these tuples from now on; `sees` tells of numbers whether their tuples are seen."""
        rows, places = self._rows_for(ticks), self.positions(sites)
        self._holder[rows, places] = numbers
        before = self._seen[rows, places]
        self._seen[rows, places] = np.where(sees(before), before, numbers)
        self._hear(rows, places)

    def report(self, ticks, sites, arrivals):
        """The readings were filtered on motes; of some that is said again."""
        rows, places = self._rows_for(ticks), self.positions(sites)
        np.minimum.at(self._filtered, (rows, places), arrivals)
        self._hear(rows, places)

    def _hear(self, rows, places):
        self._here[rows, places] = True
        touched = np.unique(rows)
        self._count[touched] = self._here[touched].sum(axis=1)

    def release(self, ticks, sites):
        """The keys are free again; that the sites were heard of stays true."""
        self._holder[self._rows_of(ticks)[0], self.positions(sites)] = FREE

    def watermark(self, clock):
        """The largest tick up to which all is here or not waited for any more, at the end of a clock tick."""
        due = grid_at_or_after(max(clock - self.wait + 1, self.begun), self.interval)
        at = int(np.searchsorted(self._ticks, due)) if due <= clock else 0
        while due <= clock:
            if at >= len(self._ticks) or self._ticks[at] != due or self._count[self._row[at]] < len(self.sites):
                return clock if not len(self.sites) else due - 1
            due, at = due + self.interval, at + 1
        return clock

    def seen_at(self, ticks):
        """The numbers of the tuples of due ticks, a row for each tick and a column for each site; FREE where none came."""
        rows, known = self._rows_of(ticks)
        if not known.any():
            return np.full((len(ticks), len(self.sites)), FREE)
        return np.where(known[:, None], self._seen[rows], FREE)

    def filtered_at(self, ticks):
        """When it was reported that the readings of due ticks were filtered, as `seen_at`; NEVER where it was not."""
        rows, known = self._rows_of(ticks)
        if not known.any():
            return np.full((len(ticks), len(self.sites)), NEVER)
        return np.where(known[:, None], self._filtered[rows], NEVER)

    def forget(self, before):
        """Drop the epochs before a tick that the watermark has passed."""
        gone = int(np.searchsorted(self._ticks, before))
        if gone:
            kept = self._row[gone:]
            self._holder, self._seen, self._filtered, self._here, self._count = (
                of[kept] for of in (self._holder, self._seen, self._filtered, self._here, self._count)
            )
            self._ticks, self._row = self._ticks[gone:], np.arange(len(kept))


def _longer(array, length, blank):
    """An array with room for so many rows more than it had, if it had them all in use."""
    more = np.full((length - len(array), *array.shape[1:]), blank, array.dtype)
    return np.concatenate([array, more])
