"""What was recorded becomes tuples of an extent: system columns read, attributes typed, what is missing or unknown told.

sensed   `_tick` and `_site` (or the attribute `site`); `_arrival`, the delivery, is the tick where it is not given
pushed   `_arrival`, and `_tick` where a tuple has a timestamp of its own; each stands for the other where it is missing
both     `_weight` 1 or -1, and `_replaces`, the index of the tuple that is taken back or replaced
stored   attributes alone
"""

import numpy as np

from acquisition.batch import Batch, dtype_of, unit_weights
from acquisition.errors import InputError
from acquisition.extent import ExtentKind
from acquisition.schema import Attribute, Type
from acquisition.sources.column_conversion import convert_column

_TICK, _ARRIVAL = Attribute("_tick", Type.TIME), Attribute("_arrival", Type.TIME)
_SITE, _WEIGHT = Attribute("_site", Type.INTEGER), Attribute("_weight", Type.INTEGER)
_REPLACES = Attribute("_replaces", Type.INTEGER)
_STREAM = ("_tick", "_site", "_arrival", "_weight", "_replaces")
_ARCHIVED = ("_time", "_index", "_version", "_revision")
"""What an archive's files have besides: a replay works these out itself."""


def batch_of(recorded, extent, tick_ms=1_000):
    """The tuples of a sensed or pushed extent, in the order in which they stand."""
    known = [*extent.schema.names, *_STREAM]
    recorded.expect(known, _ARCHIVED)
    length = len(recorded)
    system = {a.name: _system(recorded, a, tick_ms) for a in (_TICK, _ARRIVAL, _WEIGHT, _REPLACES)}
    weight, replaces = _corrections(recorded, system["_weight"], system["_replaces"])
    named = np.zeros(length, bool) if replaces is None else replaces > 0
    if extent.kind is ExtentKind.SENSED:
        tick, arrival, site = _reading_keys(recorded, extent, system, named, tick_ms)
    else:
        tick, arrival = _stamps(recorded, system)
        site = np.zeros(length, np.int64)
        if "_site" in recorded.columns:  # an archive has it
            convert_column(recorded, "_site", _SITE, tick_ms)
    given = {
        a.name: np_array
        for a, np_array in ((extent.site_attribute, site), (extent.time_attribute, tick))
        if a is not None
    }
    columns, valid = _attributes(recorded, extent, tick_ms, given)
    return Batch(tick, site, arrival, weight, columns, valid, replaces)


def table_of(recorded, extent, tick_ms=1_000):
    """(columns, masks) of one version of a stored extent."""
    recorded.expect(extent.schema.names)
    return _attributes(recorded, extent, tick_ms, {})


def _attributes(recorded, extent, tick_ms, given):
    """(columns, masks) of the attributes; `given` are those that are known without a sensor."""
    columns, valid = {}, {}
    for attribute in extent.schema:
        name = attribute.name
        if name in given:
            columns[name] = given[name]
        elif name in recorded.columns:
            columns[name], mask = convert_column(recorded, name, attribute, tick_ms)
            if mask is not None:
                valid[name] = mask
        elif recorded.partial or (not len(recorded) and not recorded.columns):
            blank = "" if attribute.type is Type.STRING else 0
            columns[name] = np.full(len(recorded), blank, dtype_of(attribute))
            valid[name] = np.zeros(len(recorded), bool)
        else:
            raise recorded.missing(name, f"it is an attribute of `{extent.name}`")
    return columns, valid


def _system(recorded, attribute, tick_ms):
    """(values, mask) of a system column; None where it is not there."""
    if attribute.name not in recorded.columns:
        return None
    values, mask = convert_column(recorded, attribute.name, attribute, tick_ms)
    return values, np.ones(len(values), bool) if mask is None else mask


def _corrections(recorded, weights, replacing):
    weight = unit_weights(len(recorded))
    if weights is not None:
        weight = np.where(weights[1], weights[0], 1)
        _first(recorded, np.abs(weight) != 1, "_weight", "SN509", "a weight is 1 (there) or -1 (no longer there)")
    if replacing is None:
        return weight, None
    values, there = replacing
    _first(recorded, there & (values < 1), "_replaces", "SN509", "indexes count from 1")
    return weight, np.where(there, values, 0) if there.any() else None


def _reading_keys(recorded, extent, system, named, tick_ms):
    """Tick, delivery and site of readings. One that names the tuple it corrects by its index needs no key."""
    site_column = next((c for c in ("_site", "site") if c in recorded.columns), None)
    if site_column == "site" and extent.site_attribute is None:
        site_column = None
    if recorded.columns and not (len(recorded) and named.all()):
        if system["_tick"] is None:
            raise recorded.missing("_tick", f"a reading of `{extent.name}` has the tick it was sampled at")
        if site_column is None:
            raise recorded.missing("_site", f"a reading of `{extent.name}` has the site it was sampled at")
    none = np.zeros(len(recorded), np.int64)
    nothing = none, np.zeros(len(recorded), bool)
    tick, stamped = system["_tick"] or nothing
    arrival, delivered = system["_arrival"] or nothing
    site, placed = none, none.astype(bool)
    if site_column is not None:
        site, mask = convert_column(recorded, site_column, _SITE, tick_ms)
        placed = np.ones(len(site), bool) if mask is None else mask
    _first(recorded, ~stamped & ~(named & delivered), "_tick", "SN508", "a reading needs its tick")
    _first(recorded, ~placed & ~named, site_column, "SN508", "a reading needs its site")
    return np.where(stamped, tick, arrival), np.where(delivered, arrival, tick), site


def _stamps(recorded, system):
    """Timestamp and delivery of pushed tuples."""
    stamps, deliveries = system["_tick"], system["_arrival"]
    if stamps is None and deliveries is None:
        if len(recorded) or recorded.columns:
            raise recorded.missing(
                "_arrival", "a pushed tuple says when it was delivered (or, with `_tick`, its timestamp)"
            )
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    (tick, stamped), (arrival, delivered) = stamps or deliveries, deliveries or stamps
    _first(recorded, ~stamped & ~delivered, "_arrival", "SN508", "a pushed tuple needs its delivery or its timestamp")
    return np.where(stamped, tick, arrival), np.where(delivered, arrival, tick)


def _first(recorded, wrong, column, code, message):
    if wrong.any():
        raise InputError(code, message, recorded.name, int(np.argmax(wrong)) + 1, column)
