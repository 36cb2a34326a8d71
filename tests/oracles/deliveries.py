"""Deliveries: what reached the base station when, what became of it, and how far time is complete (1.3 to 1.5, 12.2).

A `TupleLog` is the whole record of one sensed or pushed extent. It is made once, clock tick by clock tick; afterwards
everything may be asked "as of the end of clock tick D".
"""

from collections import Counter
from dataclasses import dataclass, field

from tests.oracles.errors import RejectedError
from tests.oracles.schema import held


@dataclass(eq=False)
class Reading:
    """A tuple of a sensed or pushed extent that was archived."""

    tick: int
    site: int | None
    delivered: int
    arrival: int
    place: tuple  # the order of entry within one arrival
    append: bool  # 3.6: `append` is a property of each tuple
    live: bool  # beyond the horizon it enters no stream and no window
    index: int | None = None
    entered: int | None = None  # the clock tick in which it took its index
    archived: list = field(default_factory=list)  # (clock tick, values or None): what history sees
    visible: list = field(default_factory=list)  # the same, of what continuous queries are corrected to

    @staticmethod
    def _as_of(versions, clock):
        known = [values for at, values in versions if at <= clock]
        return known[-1] if known else None

    def history(self, clock):
        return self._as_of(self.archived, clock)

    def values(self, clock):
        return self._as_of(self.visible, clock) if self.live else None

    def index_at(self, clock):
        return self.index if self.entered is not None and self.entered <= clock else None


class Log:
    """All deliveries of one extent up to `until`. `statements` are (clock tick, function of the log and the tick)."""

    def __init__(self, extent, rows, until, statements=()):
        self.extent = extent
        self.until = until
        self.readings = []  # every archived tuple, in the order of delivery
        self.ledger = Counter()
        self._here = {}  # (site, tick) -> clock tick of the first delivery, whatever became of it later
        self._keys = {}  # (site, tick) -> the Reading that holds the key, or the values of one that was dropped
        self._last_index = 0
        self._seen_at = {}
        due = {}
        for row in rows:
            due.setdefault(delivery_of(row), []).append(row)
        for clock, act in statements:
            due.setdefault(clock, []).append(act)
        begin = min([0, *due])
        for clock in range(begin, until + 1):
            for item in due.get(clock, ()):
                if callable(item):
                    item(self, clock)  # after the deliveries of its clock tick
                else:
                    self.take(item, clock)
            self._enter(clock)

    # --- time (1.5) --------------------------------------------------------------------------------------------------

    def watermark(self, clock):
        """How far the extent's time is complete at the end of a clock tick."""
        if clock >= self.until:
            return clock  # 1.5: at the end of a replay all watermarks go to the end
        return self._regular_watermark(clock)

    def _regular_watermark(self, clock):
        extent = self.extent
        if extent.kind == "pushed":
            return clock - extent.wait  # 1.5; the formula holds for negative ticks too (14)
        first = max(0, clock - extent.wait + 1)  # a due tick that lies at least `wait` back is not waited for
        first += -first % extent.interval
        for tick in range(first, clock + 1, extent.interval):
            if any(self._here.get((site, tick), clock + 1) > clock for site in extent.sites):
                return tick - 1
        return clock

    def _enter(self, clock):
        """1.5: a tuple enters its stream when the watermark reaches its arrival, in the order of arrival."""
        mark = self.watermark(clock)
        waiting = [r for r in self.readings if r.live and r.entered is None and r.arrival <= mark]
        for reading in sorted(waiting, key=lambda r: (r.arrival, r.place)):
            if reading.values(clock) is None:
                continue  # 14: a tuple taken back before its entry gets no index
            self._last_index += 1
            reading.index, reading.entered = self._last_index, clock

    # --- taking a row (1.4, 1.5, 12.2) -------------------------------------------------------------------------------

    def take(self, row, clock):
        self.ledger["received"] += 1
        if row.get("_weight", 1) not in (1, -1):
            raise RejectedError("input", "a weight is 1 or -1")
        if row.get("_weight", 1) == -1 or row.get("_replaces") is not None:
            self._correct(row, clock)
        else:
            self._insert(row, clock)

    def _insert(self, row, clock):
        extent = self.extent
        tick = tick_of(row, clock)
        site = site_of(extent, row)
        if extent.kind == "sensed" and (tick < 0 or tick % extent.interval or site not in extent.sites):
            self.ledger["rejected: off the schedule"] += 1  # does not hold the key (14)
            return
        if extent.ahead is not None and tick - clock > extent.ahead:
            self.ledger["ahead"] += 1  # 1.5: set aside; does not hold the key (14)
            return
        values = self.values_of(row, tick, site)
        if extent.kind == "sensed":
            holder = self._keys.get((site, tick))
            if holder is not None:
                same = (holder.history(clock) if isinstance(holder, Reading) else holder) == values
                self.ledger["duplicate" if same else "conflict"] += 1  # 1.5: the first holds until revised
                return
            self._here.setdefault((site, tick), clock)
        on_time = tick > self._regular_watermark(clock - 1)  # 1.5; at the end of a replay too: 14
        beyond = extent.late == "revise" and not on_time and clock - tick > extent.horizon  # 14: only a late tuple
        if not on_time and extent.late == "drop":
            self.ledger["dropped"] += 1
            self._keys[site, tick] = values  # 14: a dropped one holds the key
            return
        arrival = clock if not on_time else tick if extent.kind == "sensed" else min(tick, clock)
        order = extent.sites.index(site) if extent.kind == "sensed" else len(self.readings)
        # Sensed: on time in the declared order of sites, then late ones by tick and site; pushed: order of delivery.
        place = (not on_time, tick, order) if extent.kind == "sensed" else (order,)
        reading = Reading(tick, site, clock, arrival, place, extent.late == "append", not beyond)
        reading.archived.append((clock, values))
        reading.visible.append((clock, values))
        self.readings.append(reading)
        if extent.kind == "sensed":
            self._keys[site, tick] = reading
        self.ledger["beyond horizon" if beyond else "accepted"] += 1
        for attribute, value in zip(extent.attributes, values, strict=True):
            if attribute.range and value is not None and not attribute.range[0] <= value <= attribute.range[1]:
                self.ledger["out of range"] += 1  # 13: delivered, marked and counted, not hidden
        if not on_time:
            self.ledger["late"] += 1

    def values_of(self, row, tick, site):
        extent = self.extent
        given = dict(row)
        if extent.site_attribute:
            given["site"] = site  # 1.4: what is known without the sensor is always there
        if extent.time_attribute:
            given["time"] = tick
        return tuple(held(a, given.get(a.name)) for a in extent.attributes)

    def _correct(self, row, clock):
        """12.2: a deletion, or a replacement of an earlier tuple, which it names by its key or its index."""
        extent = self.extent
        named = row.get("_replaces")
        if named == 0 and extent.kind == "pushed":
            raise RejectedError("input", "a pushed tuple has no key")
        if named:
            found = next((r for r in self.readings if r.index == named), None)
        else:
            found = self._keys.get((site_of(extent, row), row.get("_tick"))) if extent.kind == "sensed" else None
        if not isinstance(found, Reading) or found.history(clock) is None:
            self.ledger["rejected: no such tuple"] += 1
            return
        tick, site = row.get("_tick"), site_of(extent, row) if extent.kind == "sensed" else None
        if tick not in (None, found.tick) or site not in (None, found.site):
            self.ledger["rejected: another tick or site"] += 1  # 12.2: a correction moves no tuple
            return
        if row.get("_weight", 1) == -1:
            self.change(found, None, clock)
            return
        self.change(found, self.values_of(row, found.tick, found.site), clock)

    def change(self, reading, values, clock):
        """Give a tuple other values, or none, from this clock tick on."""
        if values is not None and values == reading.history(clock):
            self.ledger["unchanged"] += 1
            return
        reading.archived.append((clock, values))  # 12.2: history is corrected entirely
        extent = self.extent
        seen = reading.live and extent.late == "revise" and clock - reading.tick <= extent.horizon
        self.ledger["revised" if seen else "revised in history"] += 1
        if seen:
            reading.visible.append((clock, values))  # 12.2: back to the extent's horizon, by tick
        if values is None and extent.kind == "sensed":
            self._keys.pop((reading.site, reading.tick), None)  # the first holds until revised (1.5)

    # --- as of a clock tick ------------------------------------------------------------------------------------------

    def alive(self, clock):
        """The tuples that continuous queries may see: first those that have entered, by index, then the rest."""
        return self._seen(clock)[0]

    def here(self, clock):
        """{(site, tick): arrival} of the readings that continuous queries may see."""
        return self._seen(clock)[1]

    def _seen(self, clock):
        if clock not in self._seen_at:  # asked for very often
            found = [r for r in self.readings if r.delivered <= clock and r.values(clock) is not None]
            found.sort(key=lambda r: (r.index_at(clock) is None, r.index_at(clock) or 0, r.arrival, r.place))
            here = {(r.site, r.tick): r.arrival for r in reversed(found)}
            self._seen_at = {clock: (found, here)}
        return self._seen_at[clock]

    def rows(self, clock):
        """Every row ever given, empty ones too: the readings in the order of their indexes."""
        return sorted((r for r in self.readings if r.index_at(clock) is not None), key=lambda r: r.index)


def delivery_of(row):
    """1.5: the clock tick at which it reaches the base station; `_arrival` in inputs of a replay (13)."""
    found = row.get("_arrival")
    found = row.get("_tick") if found is None else found
    if found is None:
        raise RejectedError("input", "a row needs `_arrival` or `_tick`")
    return found


def tick_of(row, clock):
    """1.5: unless it arrives timestamped, it is tagged with the clock tick of its arrival."""
    return clock if row.get("_tick") is None else row["_tick"]


def site_of(extent, row):
    found = row.get("_site")
    return row.get(extent.site_attribute) if found is None and extent.site_attribute else found


class Table:
    """A stored extent: versions with ticks (1.6)."""

    def __init__(self, extent, versions):
        self.extent = extent
        self.versions = [
            (tick, [tuple(held(a, row.get(a.name)) for a in extent.attributes) for row in rows])
            for tick, rows in versions
        ]

    def scan(self, tick):
        """1.6: the newest version with tick at or before t; no version yet: the empty table."""
        seen = [(at, rows) for at, rows in self.versions if at <= tick]
        return max(seen, key=lambda v: v[0])[1] if seen else []


def last_moment(extents, inputs, statement_ticks):
    """1.5: the end of a replay is the last delivery, tick or version (a tick set aside as ahead does not count)."""
    moments = [0, *statement_ticks]
    for name, rows in inputs.items():
        extent = extents[name]
        if extent.kind == "stored":
            moments += [tick for tick, _ in rows]
            continue
        for row in rows:
            clock = delivery_of(row)
            moments.append(clock)
            tick = tick_of(row, clock)
            if extent.ahead is None or tick - clock <= extent.ahead:
                moments.append(tick)
    return max(moments)
