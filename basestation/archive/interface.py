"""The interface of an archive of readings; `memory` and `parquet` implement it."""

from typing import Protocol

from acquisition.batch import Batch
from acquisition.extent import Extent


class Archive(Protocol):
    """Stores batches of readings durably and reads them back by tick."""

    def append(self, extent: Extent, batch: Batch) -> None:
        """Store the tuples. On return they are as durable as this archive makes them."""

    def append_corrections(self, extent: Extent, batch: Batch) -> None:
        """Store what statements have changed, as `Engine.take_applied` returns it."""

    def append_reports(self, extent: Extent, reports: Batch) -> None:
        """Store which readings motes filtered, as `append` stores readings; `read` does not return them."""

    def read(self, extent: Extent, first: int, last: int) -> Batch:
        """The tuples with first <= tick <= last, by tick, then site."""
