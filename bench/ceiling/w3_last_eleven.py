"""W3 by hand: each vehicle meets its reading once; a window looks at no more than eleven of these meetings.

Windows over rows follow one another vehicle by vehicle, so that the meeting that lies d vehicles back is a slice for
all of them; only the windows that a full minute makes have to look theirs up.
"""

import numpy as np

from bench.answers import Windows
from bench.ceiling.codes import Codes
from bench.data import MINUTE

BACK = 10  # vehicles, and minutes
PORTION = 1 << 15  # vehicles at a time: what fits into the caches
_NEVER = np.int32(2**31 - 1)
_NONE = np.empty(0, np.int64)


def reading_of(parts):
    """The columns of the readings in a batch; None if there are none."""
    road = parts.get("road")
    if road is None:
        return None
    return (road.tick, *(road.columns[name] for name in ("site", "time", "temp", "vibration")))


def vehicle_of(parts):
    """The columns of the vehicles in a batch."""
    traffic = parts.get("traffic")
    if traffic is None:
        return _NONE, _NONE, _NONE
    return traffic.tick, traffic.columns["site"], traffic.columns["time"]


class Ceiling:
    FIRST = 1  # minutes from a reading to the first window over road that holds it

    def __init__(self, case, streams):
        self._codes = Codes()
        self._minute = -1  # of the last window over road
        self._vehicles = 0
        none = (_NONE, _NONE, _NONE, _NONE, np.empty(0))
        self._readings = [none]  # (tick, site, time, temp, vibration) of the last minutes
        self._site, self._time = np.full(BACK + 1, -1), np.full(BACK + 1, -1)  # of the last eleven vehicles

    def prepare(self, parts, last):
        return reading_of(parts), vehicle_of(parts), last

    def step(self, batch):
        reading, vehicle, last = batch
        said = []
        done = 0
        for end in range(PORTION, len(vehicle[0]), PORTION):
            until = int(vehicle[0][end - 1])
            behind = 0 if reading is None else int(np.searchsorted(reading[0], until))
            early = None if reading is None else [column[:behind] for column in reading]
            said += self._step(early, [column[done:end] for column in vehicle], until)
            reading = None if reading is None else [column[behind:] for column in reading]
            done = end
        return said + self._step(reading, [column[done:] for column in vehicle], last)

    def _step(self, reading, vehicle, last):
        if reading is not None and len(reading[0]):
            self._readings.append(reading)
        tick, site, time = vehicle
        first, self._minute = self._minute + 1, last // MINUTE
        full = np.arange(first, self._minute + 1)
        at = np.searchsorted(tick, full * MINUTE)
        some = at + self._vehicles > 0  # before the first vehicle there is nothing to combine
        full, at = full[some], at[some]
        count = len(tick)
        if not count and not len(full):
            return []
        self._vehicles += count
        self._site, self._time = np.concatenate([self._site, site]), np.concatenate([self._time, time])
        met = self._meetings(first - 1)
        self._site, self._time = self._site[count:], self._time[count:]
        minute = tick // MINUTE
        by_row = _extremes(
            met, (minute - self._base).astype(np.int32), lambda d: slice(BACK + 1 - d, BACK + 1 - d + count)
        )
        by_minute = _extremes(met, (full - self._base).astype(np.int32), lambda d: at + (BACK - d))
        ticks, low, high, found = (
            np.insert(rows, at, minutes)
            for rows, minutes in zip((tick, *by_row), (full * MINUTE, *by_minute), strict=True)
        )
        return [Windows(ticks, np.arange(len(ticks) + 1), [(low, found), (high, found)])]

    def _meetings(self, oldest):
        """For each vehicle, in layers if it meets several readings: (first minute, last minute, temp, vibration).

        The minutes, counted from `self._base`, are those of the windows over road that hold the reading.
        """
        tick, site, time, temp, vibration = (np.concatenate(parts) for parts in zip(*self._readings, strict=True))
        self._base = base = max(oldest - BACK, 0)
        behind = int(np.searchsorted(tick, base * MINUTE))
        tick, site, time, temp, vibration = (column[behind:] for column in (tick, site, time, temp, vibration))
        keep = int(np.searchsorted(tick, (self._minute - BACK) * MINUTE))
        self._readings = [[column[keep:] for column in (tick, site, time, temp, vibration)]]
        own = (tick // MINUTE - base).astype(np.int32)
        layers = []
        for which in self._places(site, time):
            there = which >= 0
            begin = np.full(len(which), _NEVER)
            begin[there] = own[which[there]] + self.FIRST
            layers.append((begin, begin + np.int32(BACK - self.FIRST), _at(temp, which), _at(vibration, which)))
        return layers

    def _places(self, site, time):
        """The reading that each vehicle meets, -1 for none: by a table of minutes and sites if that has room for all."""
        known = self._site >= 0
        code = self._codes.of(site)
        wanted = np.full(len(self._site), -1)
        if not len(site):
            return [wanted]
        minute = time // MINUTE
        start, stop = int(minute.min()), int(minute.max()) + 1
        theirs = self._time // MINUTE
        ours = np.flatnonzero(known & (theirs >= start) & (theirs < stop))
        lane = self._site[ours]
        inside = lane <= self._codes.values.max()
        ours, lane = ours[inside], lane[inside]
        lane_code = self._codes.of(lane)
        sites = len(self._codes)
        if (stop - start) * sites <= 16 * len(site) + 1024:
            table = np.full((stop - start) * sites, -1)
            cell = (minute - start) * sites + code
            table[cell] = np.arange(len(cell))
            if (table[cell] == np.arange(len(cell))).all():
                found = table[(theirs[ours] - start) * sites + lane_code]
                same = (found >= 0) & (time[found] == self._time[ours])
                wanted[ours[same]] = found[same]
                return [wanted]
        return list(self._sorted(time * sites + code, ours, self._time[ours] * sites + lane_code, wanted))

    def _sorted(self, keys, ours, wanted_keys, wanted):
        order = np.argsort(keys, kind="stable")
        first, behind = (np.searchsorted(keys[order], wanted_keys, side) for side in ("left", "right"))
        for layer in range(int((behind - first).max(initial=1))):
            some = behind - first > layer
            which = wanted.copy()
            which[ours[some]] = order[first[some] + layer]
            yield which


def _at(column, which):
    return column[which] if len(column) else np.zeros(len(which), column.dtype)


def _extremes(layers, minute, back):
    """Lowest temp and highest vibration of the meetings up to ten vehicles back that the window over road holds."""
    low = np.full(len(minute), np.iinfo(np.int64).max)
    high = np.full(len(minute), -np.inf)
    found = np.zeros(len(minute), bool)
    for begin, end, temp, vibration in layers:
        for d in range(BACK + 1):
            which = back(d)
            held = (begin[which] <= minute) & (end[which] >= minute)
            np.minimum(low, np.where(held, temp[which], low), out=low)
            np.maximum(high, np.where(held, vibration[which], high), out=high)
            found |= held
    return low, high, found
