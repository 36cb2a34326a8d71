"""File checks: whether the files of an archive are those of an extent as it is declared, and which of them are damaged."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from acquisition.errors import InputError
from acquisition.extent import Extent
from acquisition.ticks import date_of
from basestation.archive.layout import LAYOUT, arrow_type
from basestation.history.archive_views import ExtentFiles, list_files
from basestation.history.stations import STATION


def check_files(files: ExtentFiles, extent: Extent, tick_ms: int) -> None:
    """InputError where a file is of another extent, counts other ticks, or has an attribute of a type that the declared one does not hold."""
    for path in files.examples:
        schema = pq.read_schema(path)
        metadata = {key.decode(): value.decode("utf-8", "replace") for key, value in (schema.metadata or {}).items()}
        name = metadata.get("moteloom.extent")
        if name is None:
            raise _wrong(path, "is no file of an archive; move it out of the folder")
        if name != extent.name:
            raise _wrong(path, f"expected readings of `{extent.name}`, found those of `{name}`")
        if metadata.get("moteloom.layout", "1") > LAYOUT:
            raise _wrong(
                path, f"expected layout {LAYOUT} or before, found {metadata['moteloom.layout']}, of a newer version"
            )
        if metadata.get("moteloom.tick_ms") != str(tick_ms):
            raise _wrong(
                path,
                f"expected ticks of {tick_ms} ms, found {metadata.get('moteloom.tick_ms')} ms; the deployment sets the length of a tick",
            )
        for attribute in extent.schema:
            at = schema.get_field_index(attribute.name)
            if at >= 0 and attribute.name != STATION and not _holds(arrow_type(attribute), schema.field(at).type):
                raise _wrong(
                    path, f"expected `{attribute.name}` as {arrow_type(attribute)}, found {schema.field(at).type}"
                )


def find_damaged(root: Path, extent: str) -> dict[Path, str]:
    """The files of an extent that cannot be read to their end, each with the reason. Reads all of them."""
    found = {}
    for path in list_files(root, extent):
        try:
            pq.read_table(path, partitioning=None)
        except (pa.ArrowException, OSError) as why:
            found[path] = str(why).split("\n", 1)[0]
    return found


def find_missing_days(files: ExtentFiles, first: int, last: int, tick_ms: int) -> list[str]:
    """The days from `first` to `last` that lie between those of the archive and have no file."""
    start, end = (
        max(date_of(first, tick_ms).isoformat(), files.days[0]),
        min(date_of(last, tick_ms).isoformat(), files.days[-1]),
    )
    days, day = [], date.fromisoformat(start)
    known = {*files.days}
    while day.isoformat() <= end:
        if day.isoformat() not in known:
            days.append(day.isoformat())
        day += timedelta(days=1)
    return days


def list_days(days: Sequence[str]) -> str:
    """Such as `2026-11-17, 2026-11-18, …`."""
    return ", ".join(days[:3]) + (", …" if len(days) > 3 else "")


def _holds(wide: pa.DataType, found: pa.DataType) -> bool:
    """Whether a declared type holds each value of the type of a file."""
    if pa.types.is_decimal(wide) and pa.types.is_decimal(found):
        return bool(wide.scale >= found.scale)
    return bool(wide == found or (pa.types.is_floating(wide) and pa.types.is_integer(found)))


def _wrong(path: Path, message: str) -> InputError:
    return InputError("SN501", message, str(path))
