"""An archive in memory: that of tests and simulations, and of a running station the readings that no file holds yet."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from acquisition.batch import Batch, add_missing_columns, concatenate, empty_batch
from acquisition.extent import Extent
from basestation.archive.layout import day_numbers
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
        self._append(extent, self._numbers.number(extent, batch))

    def append_corrections(self, extent: Extent, batch: Batch) -> None:
        self._append(extent, self._numbers.number_corrections(extent, batch))

    def _append(self, extent: Extent, numbered: Batch) -> None:
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

    def take_oldest(self, days: int, tick_ms: int) -> dict[str, Batch]:
        """Remove and return the readings of the oldest days of extents, so many together; the same ones of equal contents."""
        whole = {name: concatenate(batches) for name, batches in self._batches.items()}
        day_of = {name: day_numbers(batch.tick, tick_ms) for name, batch in whole.items()}
        found = sorted((int(day), name) for name, of in day_of.items() for day in np.unique(of))
        if len(found) <= days:
            return self.take_all()
        taken: dict[str, Batch] = {}
        self._batches, self.rows = {}, 0
        for name, batch in whole.items():
            is_taken = np.isin(day_of[name], [day for day, of in found[:days] if of == name])
            if is_taken.any():
                taken[name] = batch.take(is_taken)
            if not is_taken.all():
                self._add(name, batch.take(~is_taken))
        return taken

    def give_back(self, batches: Mapping[str, Batch]) -> None:
        """Add what `take_all` or `take_oldest` returned."""
        for name, batch in batches.items():
            self._add(name, batch)

    def _add(self, name: str, batch: Batch) -> None:
        kept = self._batches.setdefault(name, [])
        kept.append(batch)
        self.rows += len(batch)
        if len(kept) > MOST_BATCHES:
            kept[:] = [concatenate(kept)]
