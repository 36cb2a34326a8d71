"""SenML in JSON (RFC 8428): measurements of devices as records, with base values.

The last part of a record's name, behind `:`, `/`, `_` or `.`, is the attribute. Records with the same name before it and the same
time are one tuple. An extent with a string attribute `device` gets the name before it there.
"""

import json
import re
from collections.abc import Callable, Iterator
from math import floor
from sys import float_info

import numpy as np

from acquisition.arrays import IntArray
from acquisition.errors import InputError
from acquisition.extent import Extent
from acquisition.schema import Type
from acquisition.sources.recorded_table import RecordedTable
from acquisition.sources.senml_columns import SEPARATORS, TimeRules, read_columns
from acquisition.sources.value_conversion import quote_value
from gateway.errors import MoteloomError

RELATIVE = 2**28
"""Times below are relative to now (RFC 8428, 4.5.3)."""
DEVICE = "device"
LARGEST_SECONDS = 253_402_300_800
"""The end of the year 9999."""
_NAME = re.compile(rf"(?:(?P<device>.*)[{SEPARATORS}])?(?P<attribute>[^{SEPARATORS}]+)", re.DOTALL)
_BASES = "bn", "bt", "bu", "bv", "bs", "bver"
_VALUES = "v", "vs", "vb", "vd"
Reject = Callable[[int, str | None, str, str], None]
Record = dict[str, object]


def read_senml(
    body: bytes, extent: Extent, reject: Reject, tick_ms: int, now_ms: int
) -> Iterator[tuple[RecordedTable, IntArray]]:
    """The tuples of a pack of records, each with the number of its first record. A record that is wrong is rejected."""
    device = DEVICE if _has_device(extent) else None
    found = read_columns(body, extent, device, TimeRules(RELATIVE, LARGEST_SECONDS, tick_ms, now_ms))
    if found is not None:
        yield found
        return
    yield from _read_records(body, extent, reject, tick_ms, now_ms)


def _read_records(
    body: bytes, extent: Extent, reject: Reject, tick_ms: int, now_ms: int
) -> Iterator[tuple[RecordedTable, IntArray]]:
    """The tuples record by record."""
    try:
        pack = json.loads(body)
        if not isinstance(pack, list):
            raise ValueError("expected an array of records")
    except (ValueError, RecursionError) as error:
        raise InputError("SN502", f"is not a SenML pack: {error}", "body") from None
    base: Record = {}
    tuples: dict[tuple[str, int | None], tuple[int, dict[str, object]]] = {}
    for number, record in enumerate(pack, 1):
        try:
            if not isinstance(record, dict):
                raise _WrongRecordError(None, 'expected a record such as {"n": "temp", "v": 20.1}')
            base |= {key: record[key] for key in _BASES if key in record}
            if not any(key in record for key in ("n", "s", *_VALUES)):
                continue  # it has base values only
            device, attribute, tick, value = _resolve(record, base, extent, tick_ms, now_ms)
        except _WrongRecordError as wrong:
            reject(number, wrong.column, "SN502", str(wrong))
            continue
        _, row = tuples.setdefault((device, tick), (number, {"_tick": tick}))
        row[attribute] = value
        if _has_device(extent):
            row[DEVICE] = device
    names = [*extent.schema.names, "_tick"]
    if tuples:
        columns = {name: [row.get(name) for _, row in tuples.values()] for name in names}
        numbers = np.array([number for number, _ in tuples.values()])
        yield RecordedTable("body", columns, len(numbers), partial=True), numbers


class _WrongRecordError(MoteloomError):
    """A record is none, or says something that its extent cannot hold."""

    def __init__(self, column: str | None, message: str) -> None:
        super().__init__(message)
        self.column = column


def _has_device(extent: Extent) -> bool:
    found = extent.schema.find(DEVICE)
    return found is not None and found.type is Type.STRING


def _resolve(
    record: Record, base: Record, extent: Extent, tick_ms: int, now_ms: int
) -> tuple[str, str, int | None, object]:
    """(device, attribute, tick, value) of a record; the tick is None where it has no time."""
    name = f"{_text(base, 'bn')}{_text(record, 'n')}"
    match = _NAME.fullmatch(name)
    attribute = extent.schema.find(match["attribute"]) if match else None
    if match is None or attribute is None:
        known = ", ".join(extent.schema.names)
        raise _WrongRecordError(None, f"{quote_value(name[-40:])} does not end with an attribute: {known}")
    unit = record.get("u", base.get("bu"))
    if unit is not None and attribute.unit is not None and unit != attribute.unit:
        raise _WrongRecordError(attribute.name, f"expected the unit {attribute.unit}, found {quote_value(unit)}")
    values = [record[key] for key in ("v", "vs", "vb") if key in record]
    if "v" in record:
        base_value = _number(base, "bv")
        values = [_number(record, "v") + base_value if base_value else record["v"]]
    if len(values) != 1:
        raise _WrongRecordError(attribute.name, "expected one of v, vs and vb")
    seconds = _number(base, "bt") + _number(record, "t")
    tick = None
    if abs(seconds) > LARGEST_SECONDS:
        raise _WrongRecordError(None, "a time is between 1970 and 9999")
    if seconds:
        tick = floor((seconds * 1_000 + (now_ms if seconds < RELATIVE else 0)) / tick_ms)
    return match["device"] or "", attribute.name, tick, values[0]


def _text(record: Record, key: str) -> str:
    found = record.get(key, "")
    if not isinstance(found, str):
        raise _WrongRecordError(None, f"expected a text as `{key}`")
    return found


def _number(record: Record, key: str) -> float:
    found = record.get(key, 0)
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) <= float_info.max:
        raise _WrongRecordError(None, f"expected a number as `{key}`")
    return found
