"""Speaking: who says what an output has to say, for all queries whose output it is, and asks for what they still need."""

from basestation.execution.columns.next_due import DUE_NOW
from basestation.execution.ingest.history import HistoryTable
from basestation.execution.query_block import QueryBlock
from basestation.execution.slices.partial_slices import MergedStream
from basestation.execution.streams.extent_stream import ExtentStream
from basestation.execution.streams.stream import Stream
from basestation.execution.windowing.table_windows import ScanWindows


class OutputGroup:
    """`within` and `hasty` are alike for all queries of an output: whether they are answered before all of it is here (11)."""

    def __init__(self, output, below, within, answers_early):
        """`below` is all that the output stands on."""
        self._output, self.within, self.answers_early = output, within, answers_early
        self.blocks = [each for block in below if isinstance(block, QueryBlock) for each in block.all]
        self._streams = [stream for stream in below if isinstance(stream, ExtentStream | MergedStream)]
        self._tells_entries = any(isinstance(each, Stream) and each.names_index for each in below)
        self._scans = [each for block in self.blocks for each in block.inputs
                       if isinstance(each, ScanWindows) and isinstance(each.table, HistoryTable)]  # fmt: skip

    @property
    def numbers(self):
        """The queries that it speaks for."""
        return self._output.numbers

    @property
    def updates(self):
        """What they had to say in the last step."""
        return self._output.updates

    @property
    def halt(self):
        """Why they cannot go on, or None."""
        return next((block.halt for block in self.blocks if block.halt is not None), None)

    @property
    def multi_tick(self):
        """Whether many clock ticks in which nothing comes late may be ended as one: nothing hangs on when it was told."""
        return not (self.answers_early or self._scans or any(block.loops for block in self.blocks))

    @property
    def next_due(self):
        """For how long they say nothing."""
        return DUE_NOW if self.answers_early or self._tells_entries else self._output.next_due

    @property
    def per_tick_extents(self):
        """The extents of which they have to be told what disturbs them clock tick by clock tick."""
        return () if self._output.tracks_versions else [stream.extent.name for stream in self._streams]

    @property
    def settled(self):
        """What is before this tick changes no more: answers are revised back to the longest horizon below."""
        horizon = max((stream.intake.horizon for stream in self._streams), default=0)
        return min((each.watermark for each in (*self._streams, *self._scans)), default=0) - horizon

    def ask(self):
        """Say what is still needed."""
        self._output.need(self.settled)

    def histories(self):
        """{extent: the first tick that its history may still be asked for}."""
        needed = {}
        for scan in self._scans:
            name = scan.table.extent.name
            needed[name] = min(scan.needed, needed.get(name, scan.needed))
        return needed
