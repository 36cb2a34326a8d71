"""The data that every system is given: made from a seed, as numpy arrays in the order in which they are delivered.

A tick is a millisecond here. Site k of `road` reports 5 s and k ms behind each full minute: so no reading lies on the
edge of a window, and closed and half-open windows hold the same ones; and no two tuples have the same tick, so that the
watermark moves with every batch, however small.
"""

from dataclasses import dataclass

import numpy as np

MINUTE = 60_000
OFF = 5_000
SEED = 20261118
COLDEST, WARMEST = -40, 85
CATEGORIES = ("black ice", "freezing", "cold", "cool", "mild", "warm", "hot", "scorching")


@dataclass(frozen=True)
class Stream:
    """The tuples of one extent. `arrival` rises; `columns` are attributes; `replaces` is 0 for a new tuple."""

    tick: np.ndarray
    arrival: np.ndarray
    columns: dict[str, np.ndarray]
    replaces: np.ndarray | None = None

    def __len__(self):
        return len(self.tick)

    def take(self, which):
        columns = {name: column[which] for name, column in self.columns.items()}
        replaces = None if self.replaces is None else self.replaces[which]
        return Stream(self.tick[which], self.arrival[which], columns, replaces)


def batches(streams, size):
    """Yield the deliveries, in batches of `size` tuples over all streams: (parts, arrival of the last), one by one.

    A part is a slice of a stream, without a copy; streams that have nothing in a batch are not in it.
    """
    order = np.sort(np.concatenate([stream.arrival for stream in streams.values()]))
    behind = np.minimum(np.arange(size, len(order) + size, size), len(order))
    return _cut(streams, order[behind - 1])


def _cut(streams, lasts):
    starts = dict.fromkeys(streams, 0)
    for last in map(int, lasts):
        parts = {}
        for name, stream in streams.items():
            end = int(stream.arrival.searchsorted(last, "right"))
            if end > starts[name]:
                parts[name] = stream.take(slice(starts[name], end))
                starts[name] = end
        yield parts, last


def _minutes(sites, readings):
    """Minute and site of each reading: all sites, minute by minute."""
    at = np.arange(readings)
    return at // sites, at % sites + 1


def road(sites, readings, offset=OFF):
    """Readings of the deck: whole degrees that wander over the day, and vibration in hundredths, as doubles."""
    rng = np.random.default_rng([SEED, sites, readings, offset])
    minute, site = _minutes(sites, readings)
    tick = minute * MINUTE + offset + site - 1
    day = np.sin(minute * (2 * np.pi / 1440))
    temp = np.rint(12 + 14 * day + 3 * np.sin(site) + rng.normal(0, 1.5, readings)).astype(np.int64)
    vibration = np.round(rng.gamma(2.0, 9.0, readings), 2)
    return Stream(tick, tick, {"site": site, "time": tick, "temp": temp.clip(COLDEST, WARMEST), "vibration": vibration})


def sensed_road(sites, readings):
    """`road` as motes sample it on the full minute; what they say comes when the readings of `road` do."""
    pushed = road(sites, readings)
    tick = pushed.tick // MINUTE * MINUTE
    return Stream(tick, pushed.arrival, pushed.columns | {"time": tick})


def traffic(sites, vehicles):
    """Vehicles, as many in a minute as there are sites; `time` is when the lane's mote is sampled next."""
    rng = np.random.default_rng([SEED, 1, sites, vehicles])
    minute, place = _minutes(sites, vehicles)
    room = (MINUTE - 2 * OFF - sites) // sites
    tick = minute * MINUTE + OFF + sites + (place - 1) * room + rng.integers(0, room, vehicles)
    site = rng.integers(1, sites + 1, vehicles)
    time = (minute + 1) * MINUTE + OFF + site - 1
    return Stream(tick, tick, {"site": site, "time": time, "weight": rng.integers(50, 40_000, vehicles)})


def sensed_traffic(sites, vehicles):
    """`traffic` beside `sensed_road`: `time` is the full minute at which the lane's mote is sampled next."""
    pushed = traffic(sites, vehicles)
    return Stream(pushed.tick, pushed.arrival, pushed.columns | {"time": (pushed.tick // MINUTE + 1) * MINUTE})


def fine_road(sites, readings):
    """`road` with a float `temp`, fine enough for narrow ranges."""
    coarse = road(sites, readings)
    rng = np.random.default_rng([SEED, 2, sites, readings])
    temp = np.round(coarse.columns["temp"] + rng.random(readings), 4)
    return Stream(coarse.tick, coarse.arrival, {"site": coarse.columns["site"], "temp": temp})


def amended_road(sites, readings, share=0.01):
    """`road`, of which a share comes one to five minutes late, and a share is replaced one to five minutes later.

    What is late or a replacement arrives in the second half of a minute, when no mote reports: one tuple in one tick.
    """
    rng = np.random.default_rng([SEED, 3, sites, readings])
    whole = road(sites, readings)
    chance = rng.random(readings)
    late = np.flatnonzero(chance < share)
    on_time = np.flatnonzero(chance >= share)
    revised = np.sort(rng.choice(on_time, round(share * readings), replace=False))
    again = whole.take(revised)
    again.columns["vibration"] = np.round(rng.gamma(2.0, 9.0, len(revised)), 2)
    rows = [whole.take(on_time), whole.take(late), again]
    behind = np.concatenate([whole.tick[late], again.tick]) // MINUTE + rng.integers(1, 6, len(late) + len(revised))
    arrival = np.concatenate([rows[0].tick, _one_a_tick(behind, MINUTE // 2)])
    order = np.argsort(arrival, kind="stable")
    new = order < len(on_time) + len(late)
    index = np.zeros(readings + len(revised), np.int64)  # by place in `rows`: the index that a new tuple takes
    index[order[new]] = np.arange(1, new.sum() + 1)
    replaces = np.zeros(len(index), np.int64)
    replaces[readings:] = index[np.searchsorted(on_time, revised)]
    columns = {name: np.concatenate([part.columns[name] for part in rows]) for name in whole.columns}
    tick = np.concatenate([part.tick for part in rows])
    return Stream(tick, arrival, columns, replaces).take(order)


def _one_a_tick(minute, offset):
    """Ticks behind the offset of each minute, all different."""
    order = np.argsort(minute, kind="stable")
    ordered = minute[order]
    rank = np.arange(len(minute)) - np.searchsorted(ordered, ordered)
    ticks = np.empty(len(minute), np.int64)
    ticks[order] = ordered * MINUTE + offset + rank
    return ticks


def temp_class():
    """The table that names each whole degree."""
    temp = np.arange(COLDEST, WARMEST + 1)
    names = np.empty(len(temp), object)
    names[:] = [CATEGORIES[place] for place in np.searchsorted([-8, 1, 8, 14, 20, 28, 40], temp, "right")]
    return {"temp": temp, "category": names}


def ranges(temp, sites, queries):
    """(site, lo, hi) of standing queries: together they match a fifth of the readings, at most half of a site's each."""
    rng = np.random.default_rng([SEED, 4, sites, queries])
    part = min(0.5, 0.2 * sites / queries)
    begin = rng.random(queries) * (1 - part)
    low, high = np.quantile(temp, begin), np.quantile(temp, begin + part)
    return list(
        zip(rng.integers(1, sites + 1, queries).tolist(), low.round(4).tolist(), high.round(4).tolist(), strict=True)
    )
