"""Reads the recorded inputs of a replay: batches of tuples, and versions of tables."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from acquisition.batch import Batch, empty_batch
from acquisition.errors import InputError
from acquisition.extent import Catalog, Extent, ExtentKind
from acquisition.sources.batch_conversion import batch_of, table_of
from acquisition.sources.python_values import read_file, to_recorded_table
from basestation.algebra.vector import Vector
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
    batches: Mapping[str, Batch]  # of streams, in recorded order
    versions: Mapping[str, Versions]  # of tables

    def end(self) -> int:
        """The last tick of a delivery, tuple or version. A tuple stamped too far ahead does not count (semantics 1.5)."""
        last = [tick for versions in self.versions.values() for tick, _ in versions]
        for name, batch in self.batches.items():
            if not len(batch):
                continue
            last.append(int(batch.arrival.max()))
            extent = self.catalog.find(name)
            ahead = None if extent is None else extent.ahead
            stamped = batch.tick if ahead is None else batch.tick[batch.tick - batch.arrival <= ahead]
            last += [int(stamped.max())] if len(stamped) else []
        return max(last, default=0)


def read_recording(
    catalog: Catalog,
    inputs: Mapping[str, Input],
    statements: Iterable[SubmittedStatement] = (),
    folder: str | Path = ".",
) -> Recording:
    """A Recording of `{extent: data}`. Raises InputError, which names the wrong input, row and column.

    A table without an input that a statement reads comes from the file that its declaration names, relative to `folder`.
    """
    for name in inputs:
        if catalog.find(name) is None:
            names = [e.name for e in catalog]
            help = did_you_mean(name, names) or f"extents are {', '.join(f'`{n}`' for n in names)}"
            raise InputError("SN510", f"there is no extent `{name}`", help=help)
    read = find_extents(statements)
    batches: dict[str, Batch] = {}
    versions: dict[str, Versions] = {}
    for extent in catalog:
        given = inputs.get(extent.name)
        if extent.kind is not ExtentKind.STORED:
            batches[extent.name] = _batch(given, extent, catalog.tick_ms)
            continue
        if given is None and extent.source is not None and extent.name in read:
            given = read_file(Path(folder) / extent.source)
        versions[extent.name] = _versions(given, extent, catalog.tick_ms)
    return Recording(_with_sites(catalog, batches), batches, versions)


def _batch(given: Input, extent: Extent, tick_ms: int) -> Batch:
    if given is None:
        return empty_batch(extent.schema)
    if is_versions(given):
        raise InputError("SN510", f"`{extent.name}` is {extent.kind}; only a stored extent has versions")
    batch = batch_of(to_recorded_table(given, extent.name), extent, tick_ms)
    early = batch.arrival < 0
    if early.any():
        row = int(np.argmax(early))
        message = f"delivered at tick {batch.arrival[row]}, but the clock of a replay starts at 0"
        raise InputError("SN508", message, getattr(given, "name", None) or _input_name(given, extent.name), row + 1)
    return batch


def _input_name(given: Input, name: str) -> str:
    return str(given) if isinstance(given, str | Path) else name


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


def _with_sites(catalog: Catalog, batches: Mapping[str, Batch]) -> Catalog:
    """The catalog with the recorded sites, in ascending order, for `at sites all`."""
    known = {
        extent.name: replace(extent, sites=tuple(np.unique(batches[extent.name].site).tolist()))
        for extent in catalog
        if extent.kind is ExtentKind.SENSED and extent.sites is None
    }
    return replace(catalog, extents={**catalog.extents, **known}) if known else catalog
