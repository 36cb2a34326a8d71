"""Convert a column of times, in any form that recordings have, to ticks.

A time between two ticks counts as the earlier one. A local time that occurs twice, when clocks go back, counts as the first; one that clocks skip is wrong.
"""

from collections.abc import Sequence
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquisition.arrays import IntArray
from acquisition.errors import InputError
from acquisition.sources.arrow_arrays import nulls_to_numpy, numbers_to_arrow, numbers_to_numpy
from acquisition.sources.column_conversion import to_arrow
from acquisition.sources.input_format import TimeFormat
from acquisition.sources.recorded_table import RecordedTable
from acquisition.sources.value_conversion import quote_value
from acquisition.ticks import UNIX_EPOCH

_NUMBER = r"^[+-]?[0-9]+(\.[0-9]*)?$"
_UNITS = ((10**8, None), (10**11, 1_000_000), (10**14, 1_000), (10**17, 1))
"""(numbers below this, microseconds of their unit); smaller numbers are ticks, larger ones nanoseconds."""
_MICROS = timedelta(microseconds=1)
_HELP = "a time is RFC 3339 such as 2026-11-18T08:00:00Z, or a number since 1970"
_PATTERNS = (
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %I:%M:%S %p",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
)
"""How loggers write times; an error suggests the first that fits, or the first of all."""


def check_zone(zone: str) -> tzinfo:
    """Return the zone of a name or an offset. Raises ValueError."""
    if zone[:1] in "+-":
        offset = datetime.fromisoformat(f"2000-01-01T00:00:00{zone}").utcoffset()
        return timezone(offset or timedelta())
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"there is no zone `{zone}`") from error


class TimeConversion:
    """Converts the times of one input, block by block. The first block decides the unit of numbers."""

    def __init__(self, form: TimeFormat, tick_ms: int) -> None:
        self._form, self._tick_us = form, tick_ms * 1_000
        self._unit: float | None = None

    def ticks(self, recorded: RecordedTable, name: str) -> Any:
        """Return the ticks of a column of times as an Arrow array, with its nulls. Raises InputError at a text that is no time."""
        array = to_arrow(recorded.columns[name])
        if isinstance(array, list):
            array = pa.array([None if value is None else str(value) for value in array], pa.string())
        if array.null_count == len(array):
            return pa.nulls(len(array), pa.int64())
        values, valid = self._micros(array, recorded, name)
        return numbers_to_arrow(np.floor_divide(values, self._tick_us), valid)

    def _micros(self, array: Any, recorded: RecordedTable, name: str) -> tuple[IntArray, Any]:
        """Return microseconds since 1970, and which are present."""
        if self._form.pattern is not None and pa.types.is_integer(array.type):
            array = array.cast(pa.string())  # such as 20261118 for %Y%m%d
        type_ = array.type
        if pa.types.is_string(type_):
            array = pc.utf8_trim_whitespace(array)
            if self._form.pattern is None and pc.all(pc.match_substring_regex(array, _NUMBER)).as_py():
                array, type_ = array.cast(pa.float64()), pa.float64()
        if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
            return self._from_numbers(array.cast(pa.float64()), recorded, name), nulls_to_numpy(array)
        try:
            times = self._instants(array)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return self._one_by_one(array, recorded, name), nulls_to_numpy(array)
        micros = times.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
        return numbers_to_numpy(micros), nulls_to_numpy(array)

    def _from_numbers(self, array: Any, recorded: RecordedTable, name: str) -> IntArray:
        numbers, valid = numbers_to_numpy(array), nulls_to_numpy(array)
        if valid is not None:
            numbers[~valid] = 0
        if self._unit is None:
            finite = np.abs(numbers[np.isfinite(numbers)])
            self._unit = self._form.unit_us or _guess_unit(float(finite.max(initial=0)), self._tick_us)
        micros = np.rint(numbers * self._unit)
        wrong = np.flatnonzero(~(np.abs(micros) < 2.0**63))
        if len(wrong):
            raise _no_time(recorded, name, wrong, float(numbers[wrong[0]]))
        return micros.astype(np.int64)

    def _instants(self, array: Any) -> Any:
        """Return Arrow timestamps with a zone."""
        if pa.types.is_string(array.type):
            if self._form.pattern is not None:
                array = _parse_strictly(array, self._form.pattern)
            else:
                try:
                    return array.cast(pa.timestamp("us", "UTC"))
                except pa.ArrowInvalid:
                    array = array.cast(pa.timestamp("us"))
        elif pa.types.is_date(array.type):
            array = array.cast(pa.timestamp("us"))
        if array.type.tz is not None:
            return array
        return pc.assume_timezone(array, self._form.zone or "UTC", ambiguous="earliest", nonexistent="raise")

    def _one_by_one(self, array: Any, recorded: RecordedTable, name: str) -> IntArray:
        """Return times of several forms, or raise InputError at the first text that is none."""
        zone = check_zone(self._form.zone or "UTC")
        found, wrong = [], []
        texts = array.cast(pa.string()).to_pylist()
        for at, text in enumerate(texts):
            try:
                time = UNIX_EPOCH if text is None else _parse(text, self._form.pattern)
                found.append((_in_zone(time, zone) - UNIX_EPOCH) // _MICROS)
            except (ValueError, OverflowError):
                wrong.append(at)
                if not recorded.every_error:
                    break
        if wrong:
            first = texts[wrong[0]]
            raise _no_time(recorded, name, wrong, first, self._form.zone or "", self._advise(first))
        return np.array(found, np.int64)

    def _advise(self, text: str) -> str:
        """Return how to read a text that is no time, or does not occur in its zone."""
        pattern = self._form.pattern
        time = _fit(text, pattern)
        if time is not None and time.tzinfo is None and MINYEAR < time.year < MAXYEAR:
            return "clocks skip this time there: if those of the logger did not, give their offset, such as `--zone +01:00`"
        if pattern is not None:
            return f"`--time-format` is `{pattern}`: %Y is the year, %m month, %d day, %H hour, %M minute, %S second"
        fitting = next((each for each in _PATTERNS if _fit(text, each) is not None), _PATTERNS[0])
        return _HELP + f"; `--time-format '{fitting}'` for others"


def _parse(text: str, pattern: str | None) -> datetime:
    return datetime.fromisoformat(text) if pattern is None else datetime.strptime(text, pattern)


def _fit(text: str, pattern: str | None) -> datetime | None:
    """Return the time of a text; None if it is not written as the pattern says."""
    try:
        return _parse(text, pattern)
    except ValueError:
        return None


def _parse_strictly(array: Any, pattern: str) -> Any:
    """Return Arrow timestamps. Raises pyarrow.ArrowInvalid unless they are written as the texts are.

    Arrow takes 31 February for 3 March, so texts that it would write in another way are left to Python.
    """
    if "%" not in pattern:
        raise pa.ArrowInvalid("a pattern without a field")  # an empty one lets Arrow crash
    times = pc.strptime(array, pattern, "s", error_is_null=False)
    if pc.any(pc.not_equal(pc.strftime(times, pattern), array)).as_py():
        raise pa.ArrowInvalid(f"a text that is not written as {pattern}")
    return times


def _in_zone(time: datetime, zone: tzinfo) -> datetime:
    """Return a time with its zone. Raises ValueError for a local time that clocks skip when they go forward."""
    if time.tzinfo is not None:
        return time
    local = time.replace(tzinfo=zone)
    if local.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != time:
        raise ValueError(f"{time} does not occur in {zone}")
    return local


def _guess_unit(most: float, tick_us: int) -> float:
    for limit, unit in _UNITS:
        if most < limit:
            return unit or tick_us
    return 0.001


def _no_time(
    recorded: RecordedTable,
    name: str,
    wrong: Sequence[int] | IntArray,
    value: object,
    zone: str = "",
    help: str = _HELP,
) -> InputError:
    """Return the error for rows without a time; `value` is the first."""
    message = f"expected a time{zone and f' of {zone}'}, found {quote_value(value)}"
    rows = recorded.rows(wrong)
    return InputError("SN506", message, recorded.name, rows[0], name, help, rows)
