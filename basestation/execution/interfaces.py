"""Interfaces between the rooms of the engine: what streams, window sources, stores, tables, outputs and intakes are to each other.

Each Protocol is one concern. A class states in its docstring which of them it fulfils; mypy checks it where it is passed on.

    intake --> stream --> store, window source --> block --> output --> engine
                 ^                                   |
                 +----------- converter -------------+

Ticks, clock ticks and watermarks are integers in ticks. Arrays of windows, tuples and ticks have one dimension.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from acquisition.arrays import BoolArray, IntArray
from acquisition.extent import Extent
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Aggregate
from basestation.algebra.slice_aggregation import TickRange
from basestation.execution.columns.change import Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.next_due import NextDue
from basestation.execution.columns.punctuation import Punctuation
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.window_batch import WindowBatch
from basestation.execution.columns.window_combinations import AnsweredWindows, WindowCombinations
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import OperatorDescription
from basestation.execution.query_failure import QueryHalt
from basestation.updates.update import SharedUpdate, Update

# --- progress ----------------------------------------------------------------------------------------------------------


class Progress(Protocol):
    """Progress: up to which tick something is complete, and when it may go on."""

    @property
    def watermark(self) -> int:
        """The last tick up to which everything is here and given, as far as `wait` says."""

    @property
    def certain(self) -> int:
        """The last tick up to which no other window can come, even if windows are answered early."""

    @property
    def next_due(self) -> NextDue:
        """When the next tuple or window may be given."""

    @property
    def level(self) -> int:
        """How many converters stand below; the operators of a level take their steps together."""


class Prunable(Protocol):
    """State that is dropped once no reader can ask for it."""

    def need(self, before: int) -> None:
        """Promise that a reader asks for no tick before `before`, and sees no change before it."""


# --- streams -----------------------------------------------------------------------------------------------------------


class TupleFlow(Progress, Prunable, Protocol):
    """Flow: the tuples of a stream as changes, one Change in each step, the same for all readers."""

    @property
    def change(self) -> Change:
        """The difference that the last step made."""

    @property
    def lag(self) -> int:
        """How many ticks the watermark stays behind the clock, at least."""

    @property
    def entered(self) -> IntArray:
        """The numbers of the tuples that entered in the last step, in order."""

    @property
    def by_site(self) -> bool:
        """Whether FIRST and LAST order tuples of one tick by site."""

    @property
    def tracks_versions(self) -> bool:
        """Whether a Change of several clock ticks has the TupleVersions of what was corrected in them."""

    @property
    def sole_extent(self) -> str | None:
        """The extent whose tuples this stream passes on at most once each; None if there is no such extent."""

    def index_of(self, idents: IntArray) -> IntArray:
        """Return the index of each tuple number; 0 if the tuple has not entered."""

    def placed(self, tuples: Tuples) -> Tuples:
        """Return tuples with arrivals in the order of their indexes, the order in which time windows contain them (6.4)."""

    def open_from(self, before: int) -> int:
        """Return the first tick whose tuples may still change if no tick before `before` of the extents changes."""

    @property
    def first(self) -> int:
        """The least tuple number that a later Change may contain."""


class TupleHistory(Protocol):
    """History: the tuples of a stream that are already here, for queries and windows that begin later."""

    def all(self) -> Change:
        """Return all tuples that are here, as a Change."""

    def between(self, low: int, high: int) -> Tuples:
        """Return the tuples from tick low to tick high, with their current values."""

    def row_history(self) -> tuple[IntArray, IntArray] | None:
        """Return (tuple numbers, arrivals) of all rows so far in order, removed ones too; None if only present rows count."""


class CoverageFlow(Protocol):
    """Coverage: which readings a stream should have had, and its epochs (12.3)."""

    def covers(self, low: IntArray, high: IntArray, at: IntArray) -> list[CoverageRanges]:
        """Return the coverage of the ranges of ticks low[i] to high[i], for windows with tick at[i]."""

    def empty_covers(self) -> list[CoverageRanges]:
        """Return the extents below, each with no ranges."""

    def epochs(self) -> IntArray:
        """Return the keys (tick, n) of the epochs that completed in this step or whose coverage may differ; shape (k, 2)."""

    def epochs_from(self, tick: int) -> IntArray:
        """Return the keys (tick, n) of all complete epochs from a tick on; shape (k, 2)."""

    def epoch_covers(self, keys: IntArray) -> list[tuple[BoolArray, list[CoverageRanges]]]:
        """Return for each stream below: a mask of the keys that are its epochs, and the coverage of these."""

    def anchor(self, low: int) -> bool:
        """Return whether coverage from tick `low` on stays available without all epochs since then."""


class StreamSource(TupleFlow, TupleHistory, CoverageFlow, Protocol):
    """A stream as stores, windows and outputs read it."""


# --- windows -----------------------------------------------------------------------------------------------------------


class View(Protocol):
    """The columns and aggregates that one query reads of the windows that it shares with others."""

    @property
    def column_ids(self) -> set[int]:
        """The ids of the columns of windows that the view reads."""

    @property
    def aggregates(self) -> tuple[tuple[Column, Aggregate], ...]:
        """The aggregates that the view reads of slices, each with its column."""

    @property
    def predicate(self) -> Expression | None:
        """The rows that the view reads; None: all."""

    @property
    def filter(self) -> Expression | None:
        """The tuples that the view reads, of which its aggregates are; None: all."""

    @property
    def range(self) -> TickRange | None:
        """The range of its windows, where queries with other ranges may share them; None elsewhere."""

    @property
    def ordered(self) -> bool:
        """Whether the order of rows counts."""


class Releasable(Protocol):
    """Counts who uses something, and drops it with the last user."""

    def release(self, what: Any) -> None:
        """End one use of `what`, which an earlier call of the same object returned."""


Claims = list[tuple[Releasable, Any]]
"""All that a view uses, each to be given back to its owner with `owner.release(what)`."""


class RevisedWindows(Progress, Protocol):
    """A list of windows that grows and is revised: an input of a block, or a block as the converter above it reads it."""

    @property
    def max_rows(self) -> int | None:
        """The most rows of one window at the declared rates; None where none is declared."""

    @property
    def horizon(self) -> int:
        """The number of ticks behind the watermark in which windows may still be revised."""

    def empty_covers(self) -> list[CoverageRanges]:
        """Return the extents below, each with no ranges."""


class WindowSource(RevisedWindows, Protocol):
    """One input of a block: a sequence of windows, and their contents. All questions are about many windows at once."""

    @property
    def may_be_dirty(self) -> bool:
        """Whether the change below may reach a window that was given; a cheap check before `dirty`."""

    def due(self, upto: int) -> WindowBatch:
        """Return the windows up to a tick that were not given before."""

    def dirty(self, given: WindowBatch) -> BoolArray:
        """Return a mask of the given windows that the change below may affect."""

    def apply(self) -> None:
        """Take in the change below."""

    def content(self, given: WindowBatch) -> WindowContents | None:
        """Return the tuples of the given windows, numbered by position; None if there never was a tuple."""

    def empty(self, count: int) -> WindowContents:
        """Return `count` windows without tuples."""

    def covers(self, given: WindowBatch) -> list[CoverageRanges]:
        """Return the coverage of the given windows, numbered by position."""

    def final(self, before: int, given: WindowBatch) -> BoolArray:
        """Return a mask of the windows that no longer change if no tick before `before` of the extents changes."""

    def forget(self, before: int, kept: WindowBatch) -> None:
        """Drop what neither the kept windows nor those to come can reach."""

    def describe(self) -> OperatorDescription:
        """Return what EXPLAIN prints."""

    @property
    def tick_slide(self) -> int | None:
        """The ticks from one window to the next; None where rows or a loop decide."""


class TupleState(Prunable, Protocol):
    """A store: tuples, slices or join state over one stream, kept once for all readers with equal needs."""

    def begin(self, before: int) -> None:
        """Add a reader that asks for no tick before `before`; read dropped tuples in again if it needs them."""

    def fill(self) -> None:
        """Start again from all tuples of the stream that are here."""

    def apply(self, clock: int) -> None:
        """Take in the change of the stream."""

    def tidy(self) -> None:
        """Drop what no reader needs."""

    def __len__(self) -> int:
        """The number of rows held."""


class ScannedTable(Protocol):
    """A relation that scans read as of a tick: a stored extent, or the history of another one."""

    @property
    def extent(self) -> Extent:
        """The extent that the rows belong to."""

    @property
    def watermark(self) -> int:
        """The last tick at which a scan sees everything."""

    @property
    def lag(self) -> int:
        """How many ticks the watermark stays behind the clock, at least."""

    def __len__(self) -> int:
        """How many rows a scan reads at most."""

    @property
    def changed_from(self) -> int:
        """The first tick at which a scan may see something that it did not see before this step."""

    def apply(self) -> None:
        """Take in the change of this step."""

    def frame(self, columns: Sequence[Column], ticks: IntArray) -> WindowContents:
        """Return the rows that scans at these ticks see, each scan as one window."""


class BlockOutcome(Protocol):
    """The effect of a step on the windows of a block."""

    @property
    def dirty(self) -> WindowCombinations:
        """Answered windows that may look different now."""

    @property
    def new(self) -> WindowCombinations:
        """Windows that were not answered before."""


class WindowBlock(RevisedWindows, Prunable, Protocol):
    """A block as the converter above it reads it: a list of windows that grows and is revised."""

    @property
    def outcome(self) -> BlockOutcome:
        """The effect of the last step."""

    @property
    def marks(self) -> tuple[Punctuation, ...]:
        """The punctuation that came in the last step."""

    @property
    def none(self) -> WindowCombinations:
        """No windows, with all columns."""

    @property
    def count(self) -> int:
        """The number of windows so far."""

    @property
    def oldest(self) -> int:
        """The least number of a window that may still change."""

    @property
    def answered(self) -> AnsweredWindows:
        """The answered windows that may still change."""

    @property
    def slide(self) -> int | None:
        """The ticks from one window to the next; None where rows or a loop decide."""

    def frame_of(self, windows: WindowCombinations) -> WindowContents:
        """Return the contents of windows after all that the block does inside them."""

    def before(self, windows: WindowCombinations) -> WindowCombinations:
        """Return the window before each one; NO_WINDOW before the first."""

    def with_successors(self, windows: WindowCombinations) -> WindowCombinations:
        """Return the windows and those that follow them, in order."""

    def except_all(self, windows: WindowCombinations, others: WindowCombinations) -> WindowContents:
        """Return the bag difference of each window and its counterpart in `others` (6.1, 6.4)."""

    def windows_between(self, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        """Return (first, end): the positions among `answered` of the windows with ticks low[i] to high[i]."""

    def covers(self, windows: WindowCombinations) -> list[CoverageRanges]:
        """Return the coverage of windows, numbered by position."""

    def open_from(self, before: int) -> int:
        """Return the tick of the first window that may still change."""


# --- outputs -----------------------------------------------------------------------------------------------------------


class UpdateSource(Protocol):
    """The updates of one or more queries, step by step."""

    @property
    def numbers(self) -> list[int]:
        """The queries that it answers."""

    @property
    def updates(self) -> Sequence[Update | SharedUpdate]:
        """The updates of the last step."""

    @property
    def next_due(self) -> NextDue:
        """When there may be an update next."""


class Output(UpdateSource, Prunable, Protocol):
    """A sink: an operator that turns changes into the updates of one or more queries."""

    @property
    def tracks_versions(self) -> bool:
        """Whether it can report corrections of several clock ticks after one step."""


class QueryGroup(UpdateSource, Protocol):
    """The queries behind one output, as the engine asks them."""

    @property
    def halt(self) -> QueryHalt | None:
        """Why the queries cannot go on, or None."""

    @property
    def multi_tick(self) -> bool:
        """Whether one step may end several clock ticks in which nothing comes late."""

    @property
    def answers_early(self) -> bool:
        """Whether windows are answered before all of their ticks are complete (11)."""

    @property
    def within(self) -> int | None:
        """DELIVER WITHIN in ticks, or None."""

    @property
    def extents(self) -> Collection[str]:
        """The extents whose tuples the queries read."""

    def find_step_end(self, delivered: Mapping[Any, Sequence[Any]], begin: int, end: int) -> int:
        """Return the last clock tick of a step after `begin`, at most `end`, that takes some of the deliveries in."""

    def entry_ticks(self) -> Sequence[int]:
        """Return clock ticks in which a tuple in windows may get its index without a delivery; the next one is among them."""

    @property
    def per_tick_extents(self) -> Sequence[str]:
        """The extents whose corrections need a step for each clock tick."""

    @property
    def settled(self) -> int:
        """The first tick that may still be revised."""

    def ask(self) -> None:
        """Pass on to the operators below what the group still needs."""

    def histories(self) -> Mapping[str, int]:
        """Return by extent the first tick that a scan of its history may still ask for."""


# --- intakes -----------------------------------------------------------------------------------------------------------

BatchT = TypeVar("BatchT", contravariant=True)


class DeliveryIntake(Protocol[BatchT]):
    """Takes the deliveries of one extent, or the partials of one fold, a step at a time."""

    @property
    def watermark(self) -> int:
        """The last tick up to which all that is due is here, or no longer waited for."""

    @property
    def held(self) -> int:
        """The number of tuples or partials held."""

    @property
    def coalesces(self) -> bool:
        """Whether small batches in time may be taken in as one."""

    @property
    def amends(self) -> bool:
        """Whether the corrections of several clock ticks can be applied in one step."""

    def step(
        self,
        batches: Sequence[BatchT],
        corrections: Sequence[Any],
        clock: int,
        end: bool = False,
        multi_tick: bool = False,
        amends: bool = False,
    ) -> None:
        """Take the deliveries up to clock tick `clock` in; `end` says that all time is complete then."""

    def entry_ticks(self) -> Sequence[int]:
        """Return clock ticks in which a tuple may enter its stream without a delivery; the next one is among them."""

    def is_disturbed_by(
        self, batches: Sequence[BatchT], corrections: Sequence[Any], clock: int, answers_early: bool = False
    ) -> bool:
        """Return whether deliveries of a clock tick may change an answer that is due before it."""

    def find_disturbing(self, batch: BatchT) -> BoolArray:
        """Return a mask of the entries that may change an answer given before the clock tick of their arrival."""

    def forget(self) -> None:
        """Drop what no query needs and no copy or correction can name."""

    def forget_history(self, before: int | None) -> None:
        """Drop versions that no scan from tick `before` on sees; all of the history if it is None."""
