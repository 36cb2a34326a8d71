"""Correctable: what corrections ask of the intake that they change."""

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from acquisition.arrays import BoolArray, IntArray
from acquisition.batch import Batch
from acquisition.extent import Extent
from basestation.algebra.vector import Vector
from basestation.execution.columns.tuples import Tuples
from basestation.execution.ingest.step_delta import StepDelta
from basestation.execution.ingest.tuple_builder import TupleBuilder
from basestation.execution.ingest.tuple_log import TupleLog
from basestation.progress.watermark import EpochProgress


class Correctable(Protocol):
    """An intake whose tuples can be inserted, deleted and revised. `clock` is the last clock tick that ended."""

    clock: int
    counts: Counter[str]
    epochs: EpochProgress | None
    extent: Extent
    log: TupleLog
    step_delta: StepDelta
    tuple_builder: TupleBuilder

    def insert(self, batch: Batch, complete: int | None) -> None:
        """Take tuples that are delivered in the clock ticks of their `arrival`; those up to tick `complete` are late."""

    def insert_stated(self, batch: Batch, complete: int | None) -> None:
        """Take a tuple that an INSERT states."""

    def record_applied(self, tuples: Tuples, weight: IntArray, clock: IntArray | int) -> None:
        """Record how corrections leave tuples, for the archive."""

    def delete(self, numbers: IntArray, clock: int) -> None:
        """Take tuples back."""

    def revise(self, numbers: IntArray, columns: Mapping[str, Vector], clock: int) -> None:
        """Give tuples other values. `columns` has the new columns by name."""

    def corrected(self, tuples: Tuples, clock: IntArray | int) -> BoolArray:
        """Return a mask of the tuples whose correction in a clock tick reaches continuous queries."""
