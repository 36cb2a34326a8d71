"""What was swept, as the lines of the trace that motes leave which are simulated one by one."""

import numpy as np

from gateway.frame import Kind
from simulator.kernel import MS
from simulator.sweep.hops import Hop
from simulator.sweep.layout import GATEWAY, Layout
from simulator.sweep.readings import Posted
from simulator.sweep.run import Swept
from simulator.sweep.sampled import Sampled
from simulator.trace import Trace


def record(swept: Swept, layout: Layout, trace: Trace, tick_ms: int) -> None:
    """Everything that happened, in no order: the trace has its own."""
    for sampled in swept.sampled:
        if sampled.outcomes is not None:
            _produced(sampled, layout, trace, tick_ms)
    for sampled, posted, seq in zip(swept.told, swept.posted, swept.seqs, strict=True):
        _posted(sampled, posted, seq, layout, trace)
    for hop in swept.hops:
        _sent(hop, layout, trace)


def _produced(sampled: Sampled, layout: Layout, trace: Trace, tick_ms: int) -> None:
    number = sampled.batch.sampling.number
    lanes = [np.where(lane.there, lane.values, None).tolist() for lane in sampled.values]
    rows = zip(*lanes, strict=True) if lanes else iter([()] * len(sampled.tick))
    sent, wanted = sampled.outcomes.sent.tolist(), sampled.outcomes.wanted.tolist()
    for mote, tick, row, out, due in zip(layout.number[sampled.mote].tolist(), sampled.tick.tolist(), rows, sent, wanted,
                                         strict=True):  # fmt: skip
        trace.record(tick * tick_ms * MS, mote, "produced", sampling=number, tick=tick, values=row, sent=int(out),
                     filtered=int(due and not out))  # fmt: skip


def _posted(sampled: Sampled, posted: Posted, seq: np.ndarray, layout: Layout, trace: Trace) -> None:
    time = posted.round * layout.round_us + layout.send_begin[posted.mote]
    columns = time, layout.number[posted.mote], seq, posted.first, posted.count
    for at, mote, number, first, count in zip(*(column.tolist() for column in columns), strict=True):
        trace.record(at, mote, "posted", kind="READING", boot=1, seq=number, sampling=sampled.batch.sampling.number,
                     first=first, count=count)  # fmt: skip


def _sent(hop: Hop, layout: Layout, trace: Trace) -> None:
    frames = hop.frames
    columns = (
        hop.ended, layout.number[frames.holder], layout.heard_by[frames.holder], layout.number[frames.origin], frames.seq,
        frames.size, hop.attempts, hop.came, hop.known, hop.arrived, layout.parent[frames.holder] == GATEWAY,
        frames.holder == frames.origin,
    )  # fmt: skip
    for ended, mote, to, origin, seq, size, attempts, came, known, arrived, home, own in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        kind = Kind.READING.name
        trace.record(ended, mote, "sent", kind=kind, to=to, origin=origin, boot=1, seq=seq, bytes=size, attempts=attempts,
                     came=int(came), known=int(known))  # fmt: skip
        if own and not known:
            trace.record(ended, mote, "given_up", kind=kind, seq=seq)
        if home and came:
            trace.record(arrived, to, "delivered", kind=kind, origin=origin, boot=1, seq=seq, bytes=size)
