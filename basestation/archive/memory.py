"""An archive in memory: that of tests and simulations, and of a running station the readings that no file holds yet."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from acquisition.batch import Batch, add_missing_columns, concatenate, empty_batch
from acquisition.extent import Extent
from basestation.archive.numbering import INDEX, REVISION, TupleNumbers
from basestation.archive.reports import report_extent

MOST_BATCHES = 32
"""Batches of an extent that are kept apart; a step delivers few readings, and a batch costs some 2 kB."""


class MemoryArchive:
    """Readings by extent, in lists of batches. `rows` counts them."""

    def __init__(self) -> None:
        self._batches: dict[str, list[Batch]] = {}
        self._numbers = TupleNumbers()
        self.rows = 0

    def append(self, extent: Extent, batch: Batch) -> None:
        numbered = self._numbers.number(extent.name, batch)
        whole = add_missing_columns(extent.schema, numbered)
        numbers = {name: numbered.columns[name] for name in (INDEX, REVISION)}
        self._add(extent.name, replace(whole, columns={**whole.columns, **numbers}))

    def append_reports(self, extent: Extent, reports: Batch) -> None:
        if len(reports):
            self.append(report_extent(extent), reports)

    def read(self, extent: Extent, first: int, last: int) -> Batch:
        found = concatenate([empty_batch(extent.schema), *self._batches.get(extent.name, [])])
        found = found.take((found.tick >= first) & (found.tick <= last))
        return found.take(np.lexsort((found.site, found.tick)))

    def take_all(self) -> dict[str, Batch]:
        """Remove and return all readings, by extent."""
        found = {name: concatenate(batches) for name, batches in self._batches.items()}
        self._batches, self.rows = {}, 0
        return found

    def give_back(self, batches: Mapping[str, Batch]) -> None:
        """Add what `take_all` returned."""
        for name, batch in batches.items():
            self._add(name, batch)

    def _add(self, name: str, batch: Batch) -> None:
        kept = self._batches.setdefault(name, [])
        kept.append(batch)
        self.rows += len(batch)
        if len(kept) > MOST_BATCHES:
            kept[:] = [concatenate(kept)]
