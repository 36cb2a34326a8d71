"""An archive in memory, for tests and simulations; its data ends with the process."""

import numpy as np

from acquisition.batch import Batch, concatenate, empty_batch
from acquisition.extent import Extent
from basestation.archive.layout import add_missing_columns


class MemoryArchive:
    """Readings by extent, in lists of batches."""

    def __init__(self) -> None:
        self._batches: dict[str, list[Batch]] = {}

    def append(self, extent: Extent, batch: Batch) -> None:
        self._batches.setdefault(extent.name, []).append(add_missing_columns(extent.schema, batch))

    def read(self, extent: Extent, first: int, last: int) -> Batch:
        found = concatenate([empty_batch(extent.schema), *self._batches.get(extent.name, [])])
        found = found.take((found.tick >= first) & (found.tick <= last))
        return found.take(np.lexsort((found.site, found.tick)))
