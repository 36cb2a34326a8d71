"""Epochs: what is due from a sensed extent, what is here, and up to which tick nothing more is waited for.

An epoch is one due tick: which tuple holds each site's key (SEMANTICS 1.5), and which sites have been heard of at all.
The watermark depends on the clock and the schedule, never on timestamps: a silent site cannot hold a window longer than
`wait`, and a clock that runs ahead cannot close one.
"""

import numpy as np

from acquisition.instants import grid_at_or_after

FREE = -1
NEVER = 2**62


class Epoch:
    """One due tick: by site, the number of the tuple that holds the key, of one that is seen, and who was heard of.

    They differ where a tuple was taken back that its extent does not correct windows about: its key is free, and yet
    it is seen.
    """

    __slots__ = ("count", "here", "holder", "seen")

    def __init__(self, sites):
        self.holder = np.full(sites, FREE, np.int64)
        self.seen = np.full(sites, FREE, np.int64)
        self.here = np.zeros(sites, bool)
        self.count = 0


class Epochs:
    def __init__(self, extent, begun=0):
        """Nothing is due before `schedule` if `begun` is None."""
        self.interval, self.wait = extent.interval, extent.wait
        self.begun = NEVER  # the first tick that was ever scheduled
        if begun is not None:
            self.schedule(begun)
        self.sites = np.array(extent.sites, np.int64)
        self._order = np.argsort(self.sites, kind="stable")
        self._sorted = self.sites[self._order]
        self._epochs = {}

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

    def _each(self, ticks):
        """Pairs of a tick and the positions of its entries."""
        if len(ticks) and (ticks == ticks[0]).all():
            return [(int(ticks[0]), slice(None))]
        found, inverse = np.unique(ticks, return_inverse=True)
        return [(tick, np.flatnonzero(inverse == i)) for i, tick in enumerate(found.tolist())]

    def _at(self, tick):
        epoch = self._epochs.get(tick)
        if epoch is None:
            epoch = self._epochs[tick] = Epoch(len(self.sites))
        return epoch

    def holders(self, ticks, sites):
        """The number of the tuple that holds each key; FREE where none does."""
        out = np.full(len(ticks), FREE, np.int64)
        places = self.positions(sites)
        for tick, where in self._each(ticks):
            epoch = self._epochs.get(tick)
            if epoch is not None:
                out[where] = epoch.holder[places[where]]
        return out

    def first_of_each(self, ticks, sites):
        """A mask of the first of the entries with each key."""
        keys = ticks * max(1, len(self.sites)) + self.positions(sites)
        mask = np.zeros(len(ticks), bool)
        mask[np.unique(keys, return_index=True)[1]] = True
        return mask

    def take(self, ticks, sites, numbers, live):
        """The keys are held by these tuples from now on; `live` tells of a number whether its tuple is seen."""
        places = self.positions(sites)
        for tick, where in self._each(ticks):
            epoch = self._at(tick)
            epoch.holder[places[where]] = numbers[where]
            before = epoch.seen[places[where]]
            still = (before != FREE) & live[np.maximum(before, live.base)]
            epoch.seen[places[where]] = np.where(still, before, numbers[where])
            epoch.here[places[where]] = True
            epoch.count = int(epoch.here.sum())

    def release(self, ticks, sites):
        """The keys are free again; that the sites were heard of stays true."""
        places = self.positions(sites)
        for tick, where in self._each(ticks):
            self._epochs[tick].holder[places[where]] = FREE

    def watermark(self, clock):
        """The largest tick up to which all is here or not waited for any more, at the end of a clock tick."""
        due = grid_at_or_after(max(clock - self.wait + 1, self.begun), self.interval)
        while due <= clock:
            epoch = self._epochs.get(due)
            if (0 if epoch is None else epoch.count) < len(self.sites):
                return due - 1
            due += self.interval
        return clock

    def seen_at(self, tick):
        """The numbers of the tuples of one due tick by site, FREE among them; None where nothing came."""
        epoch = self._epochs.get(tick)
        return None if epoch is None else epoch.seen

    def forget(self, before):
        """Drop the epochs before a tick that the watermark has passed."""
        for tick in [t for t in self._epochs if t < before]:
            del self._epochs[tick]
