"""What an archive is: it takes batches and gives them back. `memory` and `parquet` are two."""

from typing import Protocol

from acquisition.batch import Batch
from acquisition.extent import Extent


class Archive(Protocol):
    def append(self, extent: Extent, batch: Batch) -> None:
        """Keep the tuples; on return they are safe, as far as this archive can make them."""

    def read(self, extent: Extent, first: int, last: int) -> Batch:
        """The tuples with first <= tick <= last, by tick, then site."""
