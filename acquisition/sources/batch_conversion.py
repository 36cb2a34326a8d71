"""Convert a recorded table to tuples of an extent: system columns, then attributes.

sensed   `_tick` and `_site` (or the attribute `site`; an extent with one site needs neither); `_arrival`, the delivery, defaults
         to the tick
pushed   `_arrival`, and `_tick` if a tuple has a time stamp of its own; each defaults to the other
both     `_weight` 1 or -1, and `_replaces`, the index of the tuple that is retracted or corrected; 0 names a reading by its
         tick and site
stored   attributes only
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from acquisition.batch import BY_KEY, Batch, dtype_of, unit_weights
from acquisition.errors import InputError
from acquisition.extent import Extent, ExtentKind
from acquisition.schema import Attribute, Type
from acquisition.sources.blocks import BlockSource
from acquisition.sources.column_conversion import convert_column
from acquisition.sources.recorded_table import RecordedTable

SystemColumn: TypeAlias = tuple[IntArray, BoolArray | None]
"""The values of a system column, and which of them are present (None: all)."""
Columns: TypeAlias = tuple[dict[str, AnyArray], dict[str, BoolArray]]
"""The values of attributes by name, and the masks of those with nulls."""

_TICK, _ARRIVAL = Attribute("_tick", Type.TIME), Attribute("_arrival", Type.TIME)
_SITE, _WEIGHT = Attribute("_site", Type.INTEGER), Attribute("_weight", Type.INTEGER)
_REPLACES = Attribute("_replaces", Type.INTEGER)
_STREAM = ("_tick", "_site", "_arrival", "_weight", "_replaces")
_SYSTEM = (_TICK, _ARRIVAL, _SITE, _WEIGHT, _REPLACES)
_ARCHIVED = ("_time", "_index", "_version", "_revision")
"""Further columns of archive files; a replay computes them itself."""


def batches_of(source: BlockSource, extent: Extent, tick_ms: int = 1_000, keys_only: bool = False) -> Iterator[Batch]:
    """Yield the tuples of a sensed or pushed extent in the order of the rows, block by block. Raises InputError.

    With `keys_only` batches have no columns of attributes.
    """
    columns = {attribute.name: attribute for attribute in (*extent.schema, *_SYSTEM)}
    wanted = {*(attribute.name for attribute in _SYSTEM), "site"} if keys_only else None
    for block in source.blocks(columns, wanted):
        yield block.convert(lambda recorded: batch_of(recorded, extent, tick_ms, keys_only))


def batch_of(recorded: RecordedTable, extent: Extent, tick_ms: int = 1_000, keys_only: bool = False) -> Batch:
    """Return the tuples of a sensed or pushed extent in the order of the rows. Raises InputError.

    With `keys_only` the batch has no columns of attributes.
    """
    known = [*extent.schema.names, *_STREAM]
    free = {a.name for a in (extent.site_attribute, extent.time_attribute) if a is not None}
    recorded.expect([name for name in extent.schema.names if name not in free], known, _ARCHIVED)
    length = len(recorded)
    system = {a.name: _system(recorded, a, tick_ms) for a in (_TICK, _ARRIVAL, _WEIGHT, _REPLACES)}
    weight, replaces = _corrections(recorded, extent, system["_weight"], system["_replaces"])
    corrects = np.zeros(length, bool) if replaces is None else replaces > 0
    if extent.kind is ExtentKind.SENSED:
        tick, arrival, site, states_site = _reading_keys(recorded, extent, system, corrects, tick_ms)
    else:
        tick, arrival = _stamps(recorded, system)
        site, states_site = np.zeros(length, np.int64), None
        if "_site" in recorded.columns:  # an archive has it; checked, and not used
            convert_column(recorded, "_site", _SITE, tick_ms)
    given = {
        attribute.name: array
        for attribute, array in ((extent.site_attribute, site), (extent.time_attribute, tick))
        if attribute is not None
    }
    columns, valid = ({}, {}) if keys_only else _attributes(recorded, extent, tick_ms, given)
    if not corrects.any():
        return Batch(tick, site, arrival, weight, columns, valid, replaces)
    states_tick = _present(system["_tick"], length)
    return Batch(tick, site, arrival, weight, columns, valid, replaces, (), states_tick, states_site)


def table_of(recorded: RecordedTable, extent: Extent, tick_ms: int = 1_000) -> Columns:
    """Return columns and masks of one version of a stored extent. Raises InputError."""
    recorded.expect(extent.schema.names, extent.schema.names)
    return _attributes(recorded, extent, tick_ms, {})


def _attributes(recorded: RecordedTable, extent: Extent, tick_ms: int, given: Mapping[str, AnyArray]) -> Columns:
    """Return columns and masks of the attributes; `given` are those that need no sensor."""
    columns: dict[str, AnyArray] = {}
    valid: dict[str, BoolArray] = {}
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


def _system(recorded: RecordedTable, attribute: Attribute, tick_ms: int) -> SystemColumn | None:
    """Return a system column; None if the table does not have it."""
    if attribute.name not in recorded.columns:
        return None
    return convert_column(recorded, attribute.name, attribute, tick_ms)


def _present(column: SystemColumn | None, length: int) -> BoolArray:
    """Return which values of a system column are present."""
    if column is None:
        return np.zeros(length, bool)
    return np.ones(length, bool) if column[1] is None else column[1]


def _corrections(
    recorded: RecordedTable, extent: Extent, weights: SystemColumn | None, replacing: SystemColumn | None
) -> tuple[IntArray, IntArray | None]:
    """Return the weight of each tuple, and the index that it replaces (0 for none, BY_KEY, None if all are new)."""
    weight = unit_weights(len(recorded))
    if weights is not None:
        weight = _or_else(weights, unit_weights(len(recorded)))
        wrong = np.abs(weight) != 1
        _check(recorded, wrong, "_weight", "SN509", "a weight is 1 (the tuple exists) or -1 (it is retracted)")
    if replacing is None:
        return weight, None
    values, mask = replacing
    present = np.ones(len(values), bool) if mask is None else mask
    _check(recorded, present & (values < 0), "_replaces", "SN509", "indexes count from 1; 0 names a reading by its key")
    if extent.kind is not ExtentKind.SENSED:
        message = "a pushed tuple has no key; name it by its index, which counts from 1"
        _check(recorded, present & (values == 0), "_replaces", "SN509", message)
    return weight, np.where(present, np.where(values == 0, BY_KEY, values), 0) if present.any() else None


def _reading_keys(
    recorded: RecordedTable,
    extent: Extent,
    system: Mapping[str, SystemColumn | None],
    corrects: BoolArray,
    tick_ms: int,
) -> tuple[IntArray, IntArray, IntArray, BoolArray]:
    """Return tick, delivery, site, and a mask of the rows with a site. A row that names a tuple by its index needs no key.

    `corrects` masks these rows.
    """
    site_column = next((c for c in ("_site", "site") if c in recorded.columns), None)
    if site_column == "site" and extent.site_attribute is None:
        site_column = None
    if recorded.columns and not (len(recorded) and corrects.all()):
        if system["_tick"] is None:
            why = f"a reading of `{extent.name}` has the tick it was sampled at"
            raise recorded.missing("_tick", why, "--time-column")
        if site_column is None and (extent.sites is None or len(extent.sites) != 1):
            why = f"a reading of `{extent.name}` has the site it was sampled at"
            raise recorded.missing("_site", why, "--site-column")
    absent = np.zeros(len(recorded), np.int64), np.zeros(len(recorded), bool)
    only = absent if corrects.any() or not extent.sites else (np.full(len(recorded), extent.sites[0]), None)
    tick, has_tick = system["_tick"] or absent
    arrival, has_arrival = system["_arrival"] or absent
    site, has_site = only if site_column is None else _sites(recorded, site_column, tick_ms)
    if has_tick is not None:
        known = corrects if has_arrival is None else corrects & has_arrival
        _check(recorded, ~has_tick & ~known, "_tick", "SN508", "a reading needs its tick")
    if has_site is not None:
        _check(recorded, ~has_site & ~corrects, site_column, "SN508", "a reading needs its site")
    states_site = _present((site, has_site), len(recorded))
    return _or_else((tick, has_tick), arrival), _or_else((arrival, has_arrival), tick), site, states_site


def _sites(recorded: RecordedTable, name: str, tick_ms: int) -> SystemColumn:
    """Return the column of sites. Raises InputError, which says what to do with names."""
    try:
        return convert_column(recorded, name, _SITE, tick_ms)
    except InputError as error:
        help = (
            error.help or "sites are whole numbers: give each name a number, or declare a pushed extent with the names"
        )
        raise InputError(error.code, error.message, error.file, error.row, error.column, help, error.rows) from None


def _or_else(column: SystemColumn, other: IntArray) -> IntArray:
    """Return the values of a column, those of the other where it has none."""
    values, present = column
    if present is None:
        return values
    return np.where(present, values, other) if present.any() else other


def _stamps(recorded: RecordedTable, system: Mapping[str, SystemColumn | None]) -> tuple[IntArray, IntArray]:
    """Return time stamp and delivery of pushed tuples."""
    stamps, deliveries = system["_tick"] or system["_arrival"], system["_arrival"] or system["_tick"]
    if stamps is None or deliveries is None:
        if len(recorded) or recorded.columns:
            raise recorded.missing("_arrival", "a pushed tuple has its delivery (or, with `_tick`, its time stamp)")
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if stamps[1] is not None and deliveries[1] is not None:
        message = "a pushed tuple needs its delivery or its time stamp"
        _check(recorded, ~stamps[1] & ~deliveries[1], "_arrival", "SN508", message)
    return _or_else(stamps, deliveries[0]), _or_else(deliveries, stamps[0])


def _check(recorded: RecordedTable, wrong: BoolArray, column: str | None, code: str, message: str) -> None:
    """Raise InputError at the first row that is wrong."""
    if wrong.any():
        rows = recorded.rows(np.flatnonzero(wrong) if recorded.every_error else [int(np.argmax(wrong))])
        raise InputError(code, message, recorded.name, rows[0], column, rows=rows)
