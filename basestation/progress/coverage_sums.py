"""Tally: how many sites are used at each tick of a sensed extent, counted once for all that cover alike (SEMANTICS 12.3).

Sums from the left make what a window covers one subtraction. Those of ticks that nobody asks for any more are let go of,
but for the places where landmark windows begin.
"""

import numpy as np

_AT_ONCE = 2**20  # readings that are looked at together


class CoverageSums:
    """A place is a multiple of `interval` from the first scheduled one on. `excluded` sites are used at every place."""

    def __init__(self, census, epochs, interval, excluded, begun, scope):
        """Nothing is asked for before tick `begun`, and what a query does not heed is not used."""
        self.sites = len(epochs.sites)
        self._census, self._epochs, self._interval, self._excluded = census, epochs, interval, excluded
        self._scope = scope
        # The place of the first sum: what is let go of before it, nobody asks for.
        self._base = int(self.places(*np.array([[begun], [begun]]))[0][0])
        self._sums = np.zeros(1, np.int64)  # sums[i]: of all places before base + i
        self._anchors = {}  # place -> the sum before it, where that is let go of

    def places(self, low, high):
        """(first, behind): the places of ticks low to high, one behind the last."""
        begun = self._epochs.begun
        base = begun + -begun % self._interval
        first = np.maximum(-((base - low) // self._interval), 0)
        return first, (high - base) // self._interval + 1

    def between(self, first, behind):
        """How many sites are used at places from `first` to before `behind`."""
        if not len(first):
            return first
        self._reach(int(behind.max()))
        return self._sum(behind) - self._sum(first)

    def anchor(self, low):
        """Windows will begin at a tick for as long as they come."""
        first, _ = self.places(np.array([low]), np.array([low]))
        self._reach(int(first[0]))
        self._anchors[int(first[0])] = int(self._sum(first)[0])

    @property
    def blank(self):
        """Whether it knows no more than one that begins now would."""
        return len(self._sums) == 1 and not self._anchors

    def changed(self, tick):
        """At no earlier tick has anything changed."""
        place = int(self.places(np.array([tick]), np.array([tick]))[0][0])
        self._sums = self._sums[: max(1, place - self._base + 1)]

    def forget(self, before):
        """No tick before is asked for any more, but for anchors, and nothing changes there."""
        gone = int(self.places(np.array([before]), np.array([before]))[0][0]) - self._base
        gone = min(gone, len(self._sums) - 1)
        if gone > 0:
            self._sums, self._base = self._sums[gone:].copy(), self._base + gone

    def _sum(self, places):
        at = places - self._base
        if (at >= 0).all():
            return self._sums[at]
        out = self._sums[np.maximum(at, 0)]
        early = np.flatnonzero(at < 0)
        unknown = int(self._excluded.sum())  # of what is let go of, nobody was known
        out[early] = [self._anchors.get(place, self._sums[0] - (self._base - place) * unknown)
                      for place in places[early].tolist()]  # fmt: skip
        return out

    def _reach(self, behind):
        """Sums up to a place."""
        first = self._base + len(self._sums) - 1
        begun = self._epochs.begun
        portion = max(1, _AT_ONCE // max(1, self.sites))
        counts = [np.empty(0, np.int64)]
        for begin in range(first, behind, portion):
            places = np.arange(begin, min(begin + portion, behind))
            ticks = begun + -begun % self._interval + places * self._interval
            counts.append(self._census.used(ticks, self._excluded, self._scope))
        if len(counts) > 1:
            self._sums = np.concatenate([self._sums, self._sums[-1] + np.cumsum(np.concatenate(counts))])


class SharedCoverageSums:
    """The Tally of each way to cover one extent. `census` says which sites are used at some ticks."""

    def __init__(self, census, epochs):
        self._census, self._epochs = census, epochs
        self._tallies = {}

    def __len__(self):
        return len(self._tallies)

    def of(self, interval, excluded, begun, scope):
        """That of all that cover alike; nothing is asked for before tick `begun`."""
        key = interval, excluded.tobytes(), scope
        if key not in self._tallies:
            self._tallies[key] = CoverageSums(self._census, self._epochs, interval, excluded, begun, scope)
        return self._tallies[key]

    def changed(self, tick):
        """At no earlier tick has anything changed."""
        for tally in self._tallies.values():
            tally.changed(tick)

    def forget(self, before):
        """No tick before is asked for any more. What nobody asked for since then goes."""
        for tally in self._tallies.values():
            tally.forget(before)
        self._tallies = {key: tally for key, tally in self._tallies.items() if not tally.blank}
