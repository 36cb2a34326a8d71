"""Stream: what all stream operators have in common.

Once in each step a stream computes its Change; all of its readers see the same one. The interfaces that a stream fulfils
(flow, history, coverage) are declared in `interfaces.py`.
"""

from abc import abstractmethod
from typing import Any

from acquisition.arrays import BoolArray, IntArray
from basestation.execution.columns.change import Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.next_due import DUE_NOW, NextDue
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.graph import STREAM, Operator

REVISION_RANK = 2**62
"""The rank of tuples that a revision added: behind all others of the same arrival (semantics 14)."""


class Stream(Operator):
    """An operator whose result is a stream of tuples; a StreamSource (`interfaces.py`)."""

    kind = STREAM
    names_index = False
    """Whether a query reads the column `index`: then a tuple is corrected when it enters the stream (14)."""
    change: Change
    """The difference that the last step made; absent before the first step."""
    needed: int = NEVER
    """The least tick that a reader still needs."""

    def __getstate__(self) -> dict[str, Any]:
        """Without the change of the last step, which every reader has taken in."""
        return {name: value for name, value in vars(self).items() if name != "change"}

    # --- flow --------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def watermark(self) -> int:
        """The last tick up to which all tuples are here, as far as `wait` says."""

    @property
    @abstractmethod
    def certain(self) -> int:
        """The last tick up to which no other window can come, even if windows are answered early (11)."""

    @property
    def lag(self) -> int:
        """The number of ticks that the watermark stays behind the clock, at least."""
        return 0

    @property
    def next_due(self) -> NextDue:
        """When the stream may give a tuple next."""
        return DUE_NOW

    @property
    def by_site(self) -> bool:
        """Whether FIRST and LAST order tuples of one tick by site, as for a sensed extent (10.5)."""
        return False

    @property
    def tracks_versions(self) -> bool:
        """Whether a Change of several clock ticks has the TupleVersions of what was corrected in them."""
        return False

    @property
    def sole_extent(self) -> str | None:
        """The extent whose tuples this stream passes on at most once each; None if there is no such extent."""
        return None

    @property
    @abstractmethod
    def entered(self) -> IntArray:
        """The numbers of the tuples that entered in the last step, in order."""

    @property
    def first_waiting(self) -> int | None:
        """The earliest arrival of a tuple that waits for its index; None if none waits, or the intake knows."""
        return None

    @property
    @abstractmethod
    def first(self) -> int:
        """The least tuple number that a later Change may contain."""

    @abstractmethod
    def step(self, clock: int) -> None:
        """Compute the Change of a step that ends at a clock tick."""

    @abstractmethod
    def index_of(self, idents: IntArray) -> IntArray:
        """The index of each tuple number; 0 if the tuple has not entered."""

    def placed(self, tuples: Tuples) -> Tuples:
        """Tuples with arrivals in the order of their indexes, the order in which time windows contain them (6.4)."""
        return tuples

    def need(self, before: int) -> None:
        """Promise that a reader needs no tick before `before`."""
        self.needed = min(self.needed, before)

    @abstractmethod
    def open_from(self, before: int) -> int:
        """The first tick whose tuples may still change if no tick before `before` of the extents changes."""

    @abstractmethod
    def tidy(self) -> None:
        """Drop what no reader needs."""

    def count_rows(self, *inputs: Change) -> None:
        """Count the rows of the Changes below and of the own Change."""
        self.counts.rows_in += sum(change.inserted_count + len(change.removed) for change in inputs)
        self.counts.rows_out += self.change.inserted_count + len(self.change.removed)

    # --- history -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def all(self) -> Change:
        """All tuples that are here, as a Change: for a query that begins later than the engine."""

    @abstractmethod
    def between(self, low: int, high: int) -> Tuples:
        """The tuples from tick low to tick high, with their current values."""

    def row_history(self) -> tuple[IntArray, IntArray] | None:
        """(tuple numbers, arrivals) of all rows so far in order, removed ones too; None if only present rows count."""
        return None

    # --- coverage ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def covers(self, low: IntArray, high: IntArray, at: IntArray) -> list[CoverageRanges]:
        """The coverage of the ranges of ticks low[i] to high[i], for windows with tick at[i] (12.3)."""

    @abstractmethod
    def empty_covers(self) -> list[CoverageRanges]:
        """The extents below, each with no ranges."""

    @abstractmethod
    def epochs(self) -> IntArray:
        """The keys (tick, n) of the epochs that completed in this step or whose coverage may differ; shape (k, 2)."""

    @abstractmethod
    def epochs_from(self, tick: int) -> IntArray:
        """The keys (tick, n) of all complete epochs from a tick on; shape (k, 2)."""

    @abstractmethod
    def epoch_covers(self, keys: IntArray) -> list[tuple[BoolArray, list[CoverageRanges]]]:
        """For each stream below: a mask of the keys that are its epochs, and the coverage of these."""

    @abstractmethod
    def anchor(self, low: int) -> bool:
        """Whether coverage from tick `low` on stays available without all epochs since then."""

    # --- limits, for EXPLAIN -----------------------------------------------------------------------------------------

    def max_tuples(self, ticks: int) -> int | None:
        """The most tuples with ticks in a range of so many, at the declared rates; None where none is declared."""
        return None

    @property
    def horizon(self) -> int:
        """The number of ticks behind the watermark in which tuples may still be revised."""
        return 0
