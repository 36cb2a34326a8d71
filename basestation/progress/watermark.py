"""Epochs: what is due from a sensed extent, what is here, and up to which tick nothing more is waited for.

An epoch is one due tick: which tuple holds each site's key (SEMANTICS 1.5), and which sites have been heard of at all.
The watermark depends on the clock and the schedule, never on timestamps: a silent site cannot hold a window longer than
`wait`, and a clock that runs ahead cannot close one.
"""

import numpy as np

from acquisition.ticks import grid_at_or_after
from basestation.progress.epoch_keys import NOWHERE, SiteIndex, make_epoch_keys

FREE = -1
NEVER = 2**62


class EpochProgress:
    """A row for each due tick of which something came, a column for each site in the declared order.

    `_holder` has the number of the tuple that holds the key, `_seen` that of one that is seen, `_filtered` the arrival of the
    report that there is none to be seen; a site was heard of where it has one of the latter two. The first two differ where a
    tuple was taken back that its extent does not correct windows about: its key is free, and yet it is seen. Until the first
    key is released, and until the first report, there is only the first.
    """

    def __init__(self, extent, begun=0):
        """Nothing is due before `schedule` if `begun` is None."""
        self.interval, self.wait = extent.interval, extent.wait
        self.begun = NEVER  # the first tick that was ever scheduled
        self.sites = np.array(extent.sites, np.int64)
        self._places = SiteIndex(self.sites)
        self._ticks = self._row = np.empty(0, np.int64)  # those that have a row, ascending, and which
        self._used = 0  # how many rows were given to ticks …
        self._free = np.empty(0, np.int64)  # … and those of them whose ticks are forgotten, of which nothing is known
        self._holder = np.empty((0, len(self.sites)), np.int64)
        self._seen = self._filtered = None
        self._heard = np.empty(0, np.int64)  # of how many sites
        self._looked = None  # (ticks, sites, their Keys): what was looked up last is mostly looked up again
        if begun is not None:
            self.schedule(begun)

    def __getstate__(self):
        return {**vars(self), "_looked": None}

    def schedule(self, tick):
        """The extent is sampled from a tick on, if it was not before."""
        if self.begun == NEVER:
            self.begun = grid_at_or_after(tick, self.interval)

    def _keys(self, ticks, sites):
        if self._looked is None or self._looked[0] is not ticks or self._looked[1] is not sites:
            self._looked = ticks, sites, make_epoch_keys(ticks, sites, self._places)
        return self._looked[2]

    def positions(self, ticks, sites):
        """The place of each site in the declared order."""
        return self._keys(ticks, sites).places

    def due(self, ticks, sites):
        """Which (tick, site) are on the schedule."""
        keys = self._keys(ticks, sites)
        due = (keys.ticks % self.interval == 0) & (keys.ticks >= self.begun)
        declared = keys.places != NOWHERE
        return declared if due.all() else declared & keys.each(due)

    # --- rows --------------------------------------------------------------------------------------------------------

    def _rows_of(self, ticks):
        """The row of each tick, and which of them have one."""
        if not len(self._ticks) or int(ticks.min(initial=NEVER)) > self._ticks[-1]:  # they are new, as most are
            return np.zeros(len(ticks), np.int64), np.zeros(len(ticks), bool)
        last = slice(max(0, len(self._ticks) - len(ticks)), None)
        if np.array_equal(self._ticks[last], ticks):  # they have just got their rows
            return self._row[last], np.ones(len(ticks), bool)
        at = np.minimum(np.searchsorted(self._ticks, ticks), len(self._ticks) - 1)
        return self._row[at], self._ticks[at] == ticks

    def _room_for(self, ticks):
        """These ticks have rows from now on."""
        new = ticks if (ticks[1:] > ticks[:-1]).all() else np.unique(ticks)
        again, self._free = self._free[: len(new)], self._free[len(new) :]
        rows = np.append(again, self._used + np.arange(len(new) - len(again)))
        self._used += len(new) - len(again)
        if self._used > len(self._heard):
            room = self._used + max(len(new), self._used // 2) + 8
            self._change(lambda array, blank: _longer(array, room, blank))
        if not len(self._ticks) or new[0] > self._ticks[-1]:
            self._ticks, self._row = np.append(self._ticks, new), np.append(self._row, rows)
            return
        at = np.searchsorted(self._ticks, new)
        self._ticks, self._row = np.insert(self._ticks, at, new), np.insert(self._row, at, rows)

    def _change(self, change):
        """Make other arrays of all that have a row for each tick; `change` is told what is in rows of which nothing is known."""
        self._holder, self._heard = change(self._holder, FREE), change(self._heard, 0)
        self._seen = None if self._seen is None else change(self._seen, FREE)
        self._filtered = None if self._filtered is None else change(self._filtered, NEVER)

    def _rows_for(self, ticks):
        """The row of each tick; those without one get it."""
        rows, known = self._rows_of(ticks)
        if not known.all():
            self._room_for(ticks[~known])
            rows, _ = self._rows_of(ticks)
        return rows

    def _at(self, keys, rows):
        """Where keys are among those of all rows, whose rows are told for each run."""
        return keys.each(rows * len(self.sites)) + keys.places

    # --- who is here -------------------------------------------------------------------------------------------------

    def holders(self, ticks, sites):
        """The number of the tuple that holds each key; FREE where none does."""
        keys = self._keys(ticks, sites)
        rows, known = self._rows_of(keys.ticks)
        if not known.any():
            return np.full(len(ticks), FREE)
        found = self._holder.take(self._at(keys, rows))
        return found if known.all() else np.where(keys.each(known), found, FREE)

    def is_released(self, ticks, sites):
        """Of which keys the site was heard of, and yet none holds them."""
        heard = self._heard_of(ticks, sites)
        return heard & (self.holders(ticks, sites) == FREE) if heard.any() else heard

    def not_yet_reported(self, ticks, sites):
        """A mask of the entries whose sites were not heard of before, the first of each."""
        return self.first_of_each(ticks, sites) & ~self._heard_of(ticks, sites)

    def _heard_of(self, ticks, sites):
        """Of which keys the site was heard of."""
        keys = self._keys(ticks, sites)
        rows, known = self._rows_of(keys.ticks)
        if not known.any():
            return np.zeros(len(ticks), bool)
        return keys.each(known) & self._heard_at(self._at(keys, rows))

    def _heard_at(self, at):
        heard = self._shown.take(at) != FREE
        return heard if self._filtered is None else heard | (self._filtered.take(at) != NEVER)

    @property
    def _shown(self):
        return self._holder if self._seen is None else self._seen

    def first_of_each(self, ticks, sites):
        """A mask of the first of the entries with each key."""
        keys = self._keys(ticks, sites)
        number = keys.each(keys.ticks * len(self.sites)) + keys.places
        mask = np.ones(len(ticks), bool)
        if (number[1:] <= number[:-1]).any():
            mask[:] = False
            mask[np.unique(number, return_index=True)[1]] = True
        return mask

    # --- what happens ------------------------------------------------------------------------------------------------

    def take(self, ticks, sites, numbers, sees):
        """The keys, each once, are held by these tuples from now on; `sees` tells of numbers whether their tuples are seen."""
        keys = self._keys(ticks, sites)
        rows = self._rows_for(keys.ticks)
        at = self._at(keys, rows)
        self._hear(keys, rows, ~self._heard_at(at))
        self._holder.reshape(-1)[at] = numbers
        if self._seen is not None:
            before = self._seen.take(at)
            self._seen.reshape(-1)[at] = np.where(sees(before), before, numbers)

    def report(self, ticks, sites, arrivals):
        """The readings were filtered on motes; of some that is said again."""
        keys = self._keys(ticks, sites)
        rows = self._rows_for(keys.ticks)
        at = self._at(keys, rows)
        self._hear(keys, rows, self.first_of_each(ticks, sites) & ~self._heard_at(at))
        if self._filtered is None:
            self._filtered = np.full(self._holder.shape, NEVER)
        np.minimum.at(self._filtered.reshape(-1), at, arrivals)

    def _hear(self, keys, rows, new):
        """Some sites, under a mask over the entries, were heard of that were not before."""
        if len(new):
            np.add.at(self._heard, rows, keys.of_runs(new))

    def release(self, ticks, sites):
        """The keys are free again; that the sites were heard of stays true."""
        keys = self._keys(ticks, sites)
        if self._seen is None:
            self._seen = self._holder.copy()
        self._holder.reshape(-1)[self._at(keys, self._rows_of(keys.ticks)[0])] = FREE

    def watermark(self, clock):
        """The largest tick up to which all is here or not waited for any more, at the end of a clock tick."""
        due = grid_at_or_after(max(clock - self.wait + 1, self.begun), self.interval)
        at = int(np.searchsorted(self._ticks, due)) if due <= clock else 0
        while due <= clock:
            if at >= len(self._ticks) or self._ticks[at] != due or self._heard[self._row[at]] < len(self.sites):
                return clock if not len(self.sites) else due - 1
            due, at = due + self.interval, at + 1
        return clock

    def seen_at(self, ticks):
        """The numbers of the tuples of due ticks, a row for each tick and a column for each site; FREE where none came."""
        rows, known = self._rows_of(ticks)
        if not known.any():
            return np.full((len(ticks), len(self.sites)), FREE)
        found = self._shown.take(rows, axis=0)
        return found if known.all() else np.where(known[:, None], found, FREE)

    def filtered_at(self, ticks):
        """When it was reported that the readings of due ticks were filtered, as `seen_at`; NEVER where it was not."""
        rows, known = self._rows_of(ticks)
        if self._filtered is None or not known.any():
            return np.full((len(ticks), len(self.sites)), NEVER)
        return np.where(known[:, None], self._filtered[rows], NEVER)

    def forget(self, before):
        """Drop the epochs before a tick that the watermark has passed."""
        gone = int(np.searchsorted(self._ticks, before))
        free = self._row[:gone]
        self._ticks, self._row = self._ticks[gone:], self._row[gone:]
        if self._used > 2 * len(self._row):
            self._change(lambda array, blank: array[self._row])
            self._used, self._row, self._free = len(self._row), np.arange(len(self._row)), free[:0]
        elif gone:
            self._change(lambda array, blank: _blank_in(array, free, blank))
            self._free = np.append(self._free, free)


def _blank_in(array, rows, blank):
    """An array that knows nothing in some rows."""
    array[rows] = blank
    return array


def _longer(array, length, blank):
    """An array with so many rows."""
    more = np.full((length - len(array), *array.shape[1:]), blank, array.dtype)
    return np.concatenate([array, more])
