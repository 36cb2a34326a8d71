"""Writes the trace and the tally of vectorised rounds: the same as those of an event-by-event simulation."""

from collections import Counter

import numpy as np

from acquisition.arrays import AnyArray, IntArray
from gateway.frame import FrameKind
from innet.operators.column_evaluation import ValueColumn
from simulator.kernel import MS
from simulator.tally import Tally
from simulator.trace import Trace
from simulator.vector_engine.convergecast import MergedReadings
from simulator.vector_engine.engine import RoundsOutcome
from simulator.vector_engine.hops import Hop
from simulator.vector_engine.layout import GATEWAY, NetworkLayout
from simulator.vector_engine.reading_frames import ReadingFrames
from simulator.vector_engine.sampling import SampledRows


def write_trace(swept: RoundsOutcome, layout: NetworkLayout, trace: Trace, tick_ms: int) -> None:
    """Record all events of some rounds, in any order: the trace sorts them."""
    if swept.is_first:
        for mote in layout.number.tolist():
            trace.record(swept.rounds.start * layout.round_us, mote, "sleeps")
    _record_receive_slots(swept, layout, trace)
    for sampled in swept.sampled:
        _record_samples(sampled, layout, trace, tick_ms)
    for sampled, posted, seq in zip(swept.sending, swept.posted, swept.seqs, strict=True):
        _record_reading_frames(sampled, posted, seq, layout, trace)
    for hop in swept.hops:
        _record_hop(hop, swept.readings, layout, trace)
        _record_send_slots(hop, layout, trace)
    for hop in swept.polls:
        _record_polls(hop, layout, trace)
        _record_send_slots(hop, layout, trace)
    for merged in swept.merged:
        _record_merged(merged, layout, trace)


def _record_receive_slots(swept: RoundsOutcome, layout: NetworkLayout, trace: Trace) -> None:
    slots = layout.receive_slots
    slot, at = np.nonzero(swept.listening[slots.mote])
    time = (swept.rounds.start + at) * layout.round_us + slots.end[slot]
    for time_, mote, us in zip(
        time.tolist(), layout.number[slots.mote[slot]].tolist(), slots.us(layout.startup)[slot].tolist(), strict=True
    ):
        trace.record(time_, mote, "awake", us=us)


def _record_send_slots(hop: Hop, layout: NetworkLayout, trace: Trace) -> None:
    last = hop.last_of_slot
    columns = hop.ended, layout.number[hop.frames.holder], hop.awake_us(layout)
    for ended, mote, us in zip(*(column[last].tolist() for column in columns), strict=True):
        trace.record(ended, mote, "awake", us=us)


def _record_samples(sampled: SampledRows, layout: NetworkLayout, trace: Trace, tick_ms: int) -> None:
    number, outcomes = sampled.batch.sampling.number, sampled.outcomes
    columns = [_or_none(column) for column in sampled.values]
    rows = zip(*columns, strict=True) if columns else iter([()] * len(sampled.tick))
    places = zip(layout.number[sampled.mote].tolist(), sampled.tick.tolist(), rows, strict=True)
    if outcomes is None:
        for mote, tick, row in places:
            trace.record(tick * tick_ms * MS, mote, "wasted", sampling=number, tick=tick, values=row)
        return
    for (mote, tick, row), out, due in zip(places, outcomes.sent.tolist(), outcomes.due.tolist(), strict=True):
        trace.record(tick * tick_ms * MS, mote, "produced", sampling=number, tick=tick, values=row, sent=int(out),
                     filtered=int(due and not out), steps=sampled.batch.steps)  # fmt: skip


def _or_none(column: ValueColumn) -> list[int | None]:
    """The values of a column; None for those that are null."""
    return [
        value if valid else None for value, valid in zip(column.values.tolist(), column.valid.tolist(), strict=True)
    ]


def _record_reading_frames(
    sampled: SampledRows, posted: ReadingFrames, seq: IntArray, layout: NetworkLayout, trace: Trace
) -> None:
    time = posted.round * layout.round_us + layout.send_begin[posted.mote]
    columns = time, layout.number[posted.mote], seq, posted.first, posted.count
    for at, mote, number, first, count in zip(*(column.tolist() for column in columns), strict=True):
        trace.record(at, mote, "posted", kind="READING", boot=1, seq=number, sampling=sampled.batch.sampling.number,
                     first=first, count=count)  # fmt: skip


def _record_hop(hop: Hop, readings: int, layout: NetworkLayout, trace: Trace) -> None:
    frames = hop.frames
    columns = (
        hop.ended, layout.number[frames.holder], layout.parent_number[frames.holder], layout.number[frames.origin], frames.seq,
        frames.size, hop.attempts, hop.copies, hop.known, hop.arrived, layout.parent[frames.holder] == GATEWAY,
        frames.holder == frames.origin, frames.tag < readings,
    )  # fmt: skip
    for ended, mote, to, origin, seq, size, attempts, came, known, arrived, home, own, reading in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        kind = (FrameKind.READING if reading else FrameKind.PARTIAL).name
        trace.record(ended, mote, "sent", kind=kind, to=to, origin=origin, boot=1, seq=seq, bytes=size, attempts=attempts,
                     came=came, known=int(known))  # fmt: skip
        if own and not known:
            trace.record(ended, mote, "given_up", kind=kind, seq=seq)
        if home and came:
            trace.record(arrived, to, "delivered", kind=kind, origin=origin, boot=1, seq=seq, bytes=size)


def _record_polls(hop: Hop, layout: NetworkLayout, trace: Trace) -> None:
    holder = hop.frames.holder
    columns = hop.ended, layout.number[holder], layout.parent_number[holder], hop.attempts, hop.copies, hop.known
    for ended, mote, of, attempts, came, known in zip(*(column.tolist() for column in columns), strict=True):
        trace.record(ended, mote, "inquired", of=of, attempts=attempts, came=came, known=int(known))


def _record_merged(merged: MergedReadings, layout: NetworkLayout, trace: Trace) -> None:
    """Record the readings in each partial that reached a gateway."""
    rows = merged.rows
    keys = [_or_none(key) for key in rows.keys]
    groups: list[tuple[int | None, ...]] = list(zip(*keys, strict=True)) if keys else [()] * len(rows)
    within: dict[tuple[int, int, int, int, int, bool, tuple[int | None, ...]], list[tuple[int, int]]] = {}
    identity = layout.number[merged.origin], merged.seq
    columns = merged.time, *identity, layout.gateway[rows.mote], rows.slice, rows.bare
    places = zip(*(column.tolist() for column in columns), groups, strict=True)
    readings = zip(layout.number[rows.mote].tolist(), rows.tick.tolist(), strict=True)
    for (time, origin, seq, gateway, slice_, bare, group), reading in zip(places, readings, strict=True):
        within.setdefault((time, origin, seq, gateway, slice_, bare, () if bare else group), []).append(reading)
    for (time, origin, seq, gateway, slice_, bare, group), found in within.items():
        of = ",".join(f"{site}:{tick}" for site, tick in sorted(found))
        trace.record(time, gateway, "merged", origin=origin, boot=1, seq=seq, table=merged.table.number, slice=slice_,
                     bare=int(bare), group=group, readings=of)  # fmt: skip


def count_events(swept: RoundsOutcome, layout: NetworkLayout, tally: Tally) -> None:
    """Add the events of some rounds to a tally."""
    number = layout.number.tolist()

    def add(counter: Counter[int], weights: AnyArray) -> None:
        counter.update(
            {mote: value for mote, value in zip(number, weights.astype(np.int64).tolist(), strict=True) if value}
        )

    for sampled in swept.sampled:
        if sampled.outcomes is not None:
            add(tally.produced, np.bincount(sampled.mote, minlength=len(layout)))
    for hop in swept.hops:
        holder, size = hop.frames.holder, len(layout)
        add(tally.frames, np.bincount(holder, minlength=size))
        add(tally.attempts, np.bincount(holder, hop.attempts, minlength=size))
        add(tally.bytes, np.bincount(holder, hop.attempts * hop.frames.size, minlength=size))
        add(tally.lost, np.bincount(holder, ~hop.came, minlength=size))
        home = hop.came & (layout.parent[holder] == GATEWAY)
        reading = hop.frames.tag < swept.readings
        for kind, which in ((FrameKind.READING, home & reading), (FrameKind.PARTIAL, home & ~reading)):
            tally.delivered[kind.name] += int(which.sum())
