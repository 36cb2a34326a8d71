"""Reads the recorded inputs of a replay: batches of tuples, and versions of tables."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from acquisition.batch import Batch
from acquisition.errors import InputError
from acquisition.extent import Catalog, Extent, ExtentKind
from acquisition.sources.bad_rows import BadRows
from acquisition.sources.batch_conversion import table_of
from acquisition.sources.formatted import FormattedSource
from acquisition.sources.input_format import PLAIN, InputFormat
from acquisition.sources.python_values import read_file, to_blocks, to_recorded_table
from basestation.algebra.vector import Vector
from basestation.replay.recorded_stream import RecordedStream, read_stream
from basestation.replay.statements import SubmittedStatement, find_extents
from gateway.source import did_you_mean

Input: TypeAlias = Any
"""Data of one extent, as the user has it: dictionaries, arrays, an Arrow table, a data frame, the path of a file."""
Versions: TypeAlias = list[tuple[int, dict[str, Vector]]]
"""(first tick, columns) of each version of a table, in the order of ticks."""


@dataclass(frozen=True, slots=True)
class Recording:
    """All inputs and their catalog, in which `at sites all` means the sites that occur in them."""

    catalog: Catalog
    streams: Mapping[str, RecordedStream]
    versions: Mapping[str, Versions]  # of tables

    @property
    def batches(self) -> dict[str, Batch]:
        """All tuples of each stream, in recorded order. Raises InputError."""
        return {name: stream.whole() for name, stream in self.streams.items()}

    def check(self) -> None:
        """Raise InputError if more than a tenth of the readings of an extent do not fit its schedule or its sites."""
        for name, stream in self.streams.items():
            if stream.fit is not None:
                stream.fit.check(name)

    def notes(self) -> list[str]:
        """Lines about readings that were moved, that belong to unknown sites, or that were left out."""
        found = [note for stream in self.streams.values() if stream.fit is not None for note in stream.fit.notes()]
        return found + [
            line for name, each in self.streams.items() if each.bad is not None for line in each.bad.report(name)
        ]

    def begin(self) -> int:
        """The first tick of a delivery or tuple; without any the first of a version."""
        first = [stream.first for stream in self.streams.values() if stream.first is not None]
        return min(first or [tick for versions in self.versions.values() for tick, _ in versions], default=0)

    def end(self) -> int:
        """The last tick of a delivery, tuple or version. A tuple stamped too far ahead does not count (semantics 1.5)."""
        last = [tick for versions in self.versions.values() for tick, _ in versions]
        last += [stream.last for stream in self.streams.values() if stream.last is not None]
        return max(last, default=0)


def read_recording(
    catalog: Catalog,
    inputs: Mapping[str, Input],
    statements: Iterable[SubmittedStatement] = (),
    folder: str | Path = ".",
    form: InputFormat = PLAIN,
) -> Recording:
    """A Recording of `{extent: data}`. Raises InputError, which names the wrong input, row and column.

    `form` says how the recordings of streams are written.

    A table without an input that a statement reads comes from the file that its declaration names, relative to `folder`.
    """
    for name in inputs:
        if catalog.find(name) is None:
            names = [e.name for e in catalog]
            help = did_you_mean(name, names) or f"extents are {', '.join(f'`{n}`' for n in names)}"
            raise InputError("SN510", f"there is no extent `{name}`", help=help)
    read = find_extents(statements)
    streams: dict[str, RecordedStream] = {}
    versions: dict[str, Versions] = {}
    for extent in catalog:
        given = inputs.get(extent.name)
        if extent.kind is not ExtentKind.STORED:
            streams[extent.name] = _stream(given, extent, catalog.tick_ms, form)
            continue
        if given is None and extent.source is not None and extent.name in read:
            given = read_file(Path(folder) / extent.source)
        versions[extent.name] = _versions(given, extent, catalog.tick_ms)
    return Recording(_with_sites(catalog, streams), streams, versions)


def _stream(given: Input, extent: Extent, tick_ms: int, form: InputFormat) -> RecordedStream:
    if given is None:
        return RecordedStream(extent, lambda: iter(()))
    if is_versions(given):
        raise InputError("SN510", f"`{extent.name}` is {extent.kind}; only a stored extent has versions")
    if form is PLAIN:
        return read_stream(to_blocks(given, extent.name), extent, tick_ms)
    bad = BadRows(form.skip_bad) if form.skip_bad else None
    source = FormattedSource(to_blocks(given, extent.name, form.dialect, bad), form, extent, tick_ms, bad)
    stream = read_stream(source, extent, tick_ms, within=form.snap)
    return stream if bad is None else replace(stream, bad=bad)


def _versions(given: Input, extent: Extent, tick_ms: int) -> Versions:
    if given is None:
        return []
    if not is_versions(given):
        given = [(0, given)]
    found: dict[int, dict[str, Vector]] = {}
    for tick, data in given:
        if tick in found:
            raise InputError("SN510", f"two versions of `{extent.name}` at tick {tick}")
        columns, valid = table_of(to_recorded_table(data, f"{extent.name}@{tick}"), extent, tick_ms)
        found[tick] = {name: Vector(values, valid.get(name)) for name, values in columns.items()}
    return sorted(found.items())


def is_versions(given: Input) -> TypeGuard[list[tuple[int, Input]]]:
    """Whether an input is `[(tick, data), …]`."""
    return (
        isinstance(given, list)
        and bool(given)
        and all(isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], int) for v in given)
    )


def _with_sites(catalog: Catalog, streams: Mapping[str, RecordedStream]) -> Catalog:
    """The catalog with the recorded sites, in ascending order, for `at sites all`."""
    known = {
        extent.name: replace(extent, sites=streams[extent.name].sites)
        for extent in catalog
        if extent.kind is ExtentKind.SENSED and extent.sites is None
    }
    return replace(catalog, extents={**catalog.extents, **known}) if known else catalog
