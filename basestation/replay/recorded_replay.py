"""The replay of recordings for Python programs: as `moteloom replay`, from files, data frames or rows to tables and data frames."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from acquisition.sources.csv_dialect import CsvDialect, check_encoding
from acquisition.sources.input_format import PLAIN, InputFormat, TimeFormat
from acquisition.sources.time_bounds import read_time, tick_of
from acquisition.sources.times import check_zone
from acquisition.units import milliseconds_of
from basestation.replay.driver import SKIP_FROM, Replay
from basestation.replay.inputs import Input, Recording, read_recording
from basestation.replay.result import Result
from basestation.replay.statements import read_catalog, read_statements

When: TypeAlias = int | str | datetime
"""A tick, a time, or a text: RFC 3339, `+2h` from the first tick on record, `-30min` from the last."""
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def replay(
    schema: str | Path,
    inputs: Mapping[str, Input],
    queries: str | Iterable[str],
    *,
    begin: When | None = None,
    until: When | None = None,
    ask: When | None = None,
    tick: str = "1s",
    time_column: str | None = None,
    site_column: str | None = None,
    site_prefix: str | None = None,
    zone: str | None = None,
    time_unit: str | None = None,
    time_format: str | None = None,
    snap: bool | str = False,
    delimiter: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    null: Iterable[str] = (),
    columns: Iterable[str] = (),
    skip_lines: int = 0,
    skip_bad: int = 0,
    allow_rejected: bool = False,
    all_windows: bool = False,
) -> Result:
    """Return the answers of queries over recorded data. All other arguments are those of `moteloom replay`.

    `schema` is the text of a schema, or the path of one. `inputs` has for each extent a path, a data frame, an Arrow table, a
    dictionary of columns or a list of rows. A replay begins at its data and asks one-off queries at its end. The windows of long
    stretches without data are counted in `skipped` of the result, unless `all_windows`.

    Raises DiagnosticError for a wrong schema or query, InputError for wrong data, ValueError for a wrong argument.
    """
    folder = schema.parent if isinstance(schema, Path) else Path(".")
    text = schema.read_text(encoding="utf-8-sig") if isinstance(schema, Path) else schema
    tick_ms = _milliseconds(tick, "tick")
    form = InputFormat(
        time_column,
        site_column,
        site_prefix,
        TimeFormat(zone, _unit(time_unit), time_format),
        CsvDialect(delimiter, decimal, encoding, tuple(null), tuple(columns), skip_lines),
        _distance(snap, tick_ms),
        skip_bad,
    )
    if zone is not None:
        check_zone(zone)
    if len(delimiter) != 1:
        raise ValueError(f"expected one sign for `delimiter`, found `{delimiter}`")
    check_encoding(encoding)
    catalog = read_catalog(text, tick_ms=tick_ms)
    texts = [queries] if isinstance(queries, str) else list(queries)
    statements = read_statements(texts, catalog)
    recording = read_recording(catalog, inputs, statements, folder, PLAIN if form == PLAIN else form)
    if not allow_rejected:
        recording.check()
    if recording.catalog is not catalog:
        statements = read_statements(texts, recording.catalog)
    first, last = _bounds(recording, begin, until, zone)
    asked = last if ask is None else _tick(recording, ask, zone)
    if not first <= asked <= last:
        raise ValueError(f"expected a time to ask from tick {first} to {last}, found tick {asked}")
    run = Replay(recording, statements, last, begin=first, ask=asked, skip_from=None if all_windows else SKIP_FROM)
    result = Result(run.queries, tick_ms)
    for updates in run.updates():
        result.skipped += run.skipped
        run.skipped.clear()
        result.add(updates)
    result.finish(run.until, run.ledger(), recording.notes())
    return result


def _bounds(recording: Recording, begin: When | None, until: When | None, zone: str | None) -> tuple[int, int]:
    first = recording.begin() if begin is None else _tick(recording, begin, zone)
    last = recording.end() if until is None else _tick(recording, until, zone)
    if begin is not None and first > last:
        raise ValueError(f"expected a begin up to the last clock tick {last}, found tick {first}")
    return first, last


def _tick(recording: Recording, when: When, zone: str | None) -> int:
    time = read_time(when) if isinstance(when, str) else when
    return tick_of(time, (recording.begin(), recording.end()), recording.catalog.tick_ms, zone)


def _milliseconds(span: str, name: str) -> int:
    ms = milliseconds_of(span)
    if not ms:
        raise ValueError(f"expected a span such as `5s` for `{name}`, found `{span}`")
    return ms


def _unit(text: str | None) -> int | None:
    return None if text is None else _UNITS.get(text) or 1_000 * _milliseconds(text, "time_unit")


def _distance(snap: bool | str, tick_ms: int) -> int | None:
    if isinstance(snap, str):
        return _milliseconds(snap, "snap") // tick_ms
    return None if snap else 0
