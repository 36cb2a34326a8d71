"""OutputGroup: the queries behind one output, and what these need of the operators below."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from acquisition.batch import Batch
from acquisition.ticks import grid_at_or_after
from basestation.execution.columns.next_due import DUE_NOW, NextDue
from basestation.execution.ingest.history import HistoryTable
from basestation.execution.interfaces import Output, ScannedTable
from basestation.execution.query_block import QueryBlock
from basestation.execution.query_failure import QueryHalt
from basestation.execution.slices.partial_slices import MergedStream
from basestation.execution.streams.extent_stream import ExtentStream
from basestation.execution.streams.stream import Stream
from basestation.execution.windowing.table_windows import ScanWindows
from basestation.updates.update import SharedUpdate, Update


class OutputGroup:
    """A QueryGroup. All queries of an output have the same `within` and `answers_early`: whether windows are answered early (11)."""

    def __init__(self, output: Output, below: Sequence[object], within: int | None, answers_early: bool) -> None:
        """`below` are all operators that the output reads, directly or not."""
        self._output, self.within, self.answers_early = output, within, answers_early
        self.blocks = [nested for block in below if isinstance(block, QueryBlock) for nested in block.all]
        self._streams = [stream for stream in below if isinstance(stream, ExtentStream | MergedStream)]
        self._indexed = [stream for stream in below if isinstance(stream, Stream) and stream.names_index]
        self._scans = [
            source
            for block in self.blocks
            for source in block.inputs
            if isinstance(source, ScanWindows) and isinstance(source.table, HistoryTable)
        ]

    @property
    def numbers(self) -> list[int]:
        """The queries of the group."""
        return self._output.numbers

    @property
    def extents(self) -> set[str]:
        """The extents whose tuples it reads, those of subqueries and histories too."""
        tables = [getattr(source, "table", None) for block in self.blocks for source in block.inputs]
        return {read.extent.name for read in (*self._streams, *tables) if read is not None}

    @property
    def updates(self) -> Sequence[Update | SharedUpdate]:
        """The updates of the last step."""
        return self._output.updates

    @property
    def halt(self) -> QueryHalt | None:
        """Why the queries cannot go on, or None."""
        return next((block.halt for block in self.blocks if block.halt is not None), None)

    @property
    def multi_tick(self) -> bool:
        """Whether one step may end several clock ticks in which nothing comes late: no answer depends on when it is given."""
        windows_of_indexes = self._indexed and self.blocks
        return not (self.answers_early or windows_of_indexes or any(block.loops for block in self.blocks))

    @property
    def next_due(self) -> NextDue:
        """When the group may have an update next."""
        return DUE_NOW if self.answers_early or self._indexed else self._output.next_due

    def find_step_end(self, delivered: Mapping[Any, Sequence[Any]], begin: int, end: int) -> int:
        """Return the last clock tick of a step after `begin`, at most `end`, whose scans do not read too many rows.

        A join holds each version of a stored table once, however many scans see it.
        """
        for block in self.blocks:
            for source in block.inputs:
                if isinstance(source, ScanWindows) and (block.join is None or isinstance(source.table, HistoryTable)):
                    batches = delivered.get(source.table.extent.name, ())
                    end = source.find_step_end(begin, end, partial(_count_rows, source.table, batches))
        return end

    def entry_ticks(self) -> list[int]:
        """Return clock ticks in which a tuple in windows may get its index without a delivery; the next one is among them.

        A window that is answered before that contains the tuple without its index, and is then revised (semantics 14).
        """
        found: list[int] = []
        for stream in self._indexed if self.blocks else ():
            if isinstance(stream, ExtentStream):
                found += stream.intake.entry_ticks()
                continue
            arrival = stream.first_waiting
            if arrival is None:
                continue
            for below in self._streams:
                wait, interval = below.extent.wait, below.extent.interval
                found.append(arrival + wait)
                if interval is not None:  # the epoch that holds the watermark back
                    found.append(grid_at_or_after(below.watermark + 1, interval) + wait)
        return found

    @property
    def per_tick_extents(self) -> Sequence[str]:
        """The extents whose corrections need a step for each clock tick."""
        return () if self._output.tracks_versions else [stream.extent.name for stream in self._streams]

    @property
    def settled(self) -> int:
        """The first tick that may still be revised: answers are revised back to the longest horizon below."""
        horizon = max((stream.intake.horizon for stream in self._streams), default=0)
        return min((source.watermark for source in (*self._streams, *self._scans)), default=0) - horizon

    def ask(self) -> None:
        """Pass on to the operators below what the group still needs."""
        self._output.need(self.settled)

    def histories(self) -> dict[str, int]:
        """Return by extent the first tick that a scan of its history may still ask for."""
        needed: dict[str, int] = {}
        for scan in self._scans:
            name = scan.table.extent.name
            needed[name] = min(scan.needed, needed.get(name, scan.needed))
        return needed


def _count_rows(table: ScannedTable, batches: Sequence[Batch], tick: int) -> int:
    """Return how many rows a table has at a clock tick, at most, if these deliveries are taken in."""
    return len(table) + sum(int(np.searchsorted(batch.arrival, tick, "right")) for batch in batches)
