"""DOOR UP: frames -> readings to engine and archive, partials to the engine, links to the world; updates to the results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import acquisition.uplink
import innet.uplink
from acquisition.errors import PayloadError
from acquisition.uplink import ReceivedReadings
from basestation.archive.interface import Archive
from basestation.controller.requirements import select_valid_reports
from basestation.controller.world import World
from basestation.execution.engine import Engine
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.results.feed import Feed
from basestation.station.clock_skew import TimestampColumns
from basestation.station.ledger import Ledger
from basestation.station.statistics_collector import StatisticsCollector
from basestation.updates.update import QueryFailure, split_by_query
from gateway.frame import Frame, FrameKind, MoteId
from innet.payload import PartialColumns

STATUS_KINDS = (FrameKind.HELLO, FrameKind.EVENT)
"""What motes say of themselves, which is for their keepers (`gateway.reconciler`)."""


@dataclass(frozen=True, slots=True)
class ReceivedFrames:
    """The world after the frames, whose readings came in partials and who handed those over, what all data was stamped with,
    and the frames that said nothing understood."""

    world: World
    merged: frozenset[tuple[MoteId, MoteId]]
    stamps: tuple[TimestampColumns, ...]
    errors: tuple[PayloadError, ...]


def receive(
    frames: Sequence[Frame], copies: Sequence[Frame], world: World, engine: Engine, archive: Archive, gathering: StatisticsCollector,
    ledger: Ledger, delivery: int,
) -> ReceivedFrames:  # fmt: skip
    """Frames that came in the clock tick `delivery`, and copies of some. On return their readings are in the archive."""
    readings = [frame for frame in frames if frame.kind is FrameKind.READING]
    links = [frame for frame in frames if frame.kind is FrameKind.LINKS]
    partials = [frame for frame in frames if frame.kind is FrameKind.PARTIAL]
    others = [
        frame
        for frame in frames
        if frame.kind not in (FrameKind.READING, FrameKind.LINKS, FrameKind.PARTIAL, *STATUS_KINDS)
    ]
    measured = acquisition.uplink.receive(readings, world.scheduled.samplings, world.catalog, delivery)
    reports, report_errors = innet.uplink.receive(links)
    gathered, partial_errors = innet.uplink.receive_partials(partials, world.shapes if partials else {})
    ledger.take(frames, copies, measured, delivery)
    for name, batch in measured.batches:
        archive.append(world.catalog.find(name), batch)
        engine.deliver(name, batch)
    for sampling, batch in measured.filtered:
        engine.deliver(sampling.extent, select_valid_reports(sampling, batch, world))
    came: list[tuple[int, PartialBatch]] = []
    for found in gathered:
        ledger.merge(world.folds[found.shape.aggregation], found.slice, found.who, found.readings, delivery)
        if engine.has_fold(found.shape.aggregation):
            came.append((found.shape.aggregation, PartialBatch.from_frames(found, delivery)))
            engine.deliver(*came[-1])
    gathering.take(measured, came)
    last, tick_ms = {frame.mote: frame.sender for frame in partials}, world.catalog.tick_ms
    merged = frozenset((MoteId(site), last[sender]) for found in gathered for site, sender in found.contributors)
    unknown = [PayloadError("kind", frame.mote, f"nothing takes {frame.kind.name} frames yet") for frame in others]
    stamps = *_of_readings(measured, tick_ms), *(_of_partials(found, tick_ms) for found in gathered)
    return ReceivedFrames(
        world.with_links(reports), merged, stamps, (*measured.errors, *report_errors, *partial_errors, *unknown)
    )


def _of_readings(measured: ReceivedReadings, tick_ms: int) -> Iterator[TimestampColumns]:
    for _, batch in (*measured.batches, *measured.filtered):
        yield batch.site, batch.tick * tick_ms, batch.tick * tick_ms


def _of_partials(found: PartialColumns, tick_ms: int) -> TimestampColumns:
    """A partial is of a whole slice."""
    at, site = found.contributions
    number, slices = found.slice[at], found.shape.slices
    return site, slices.begin(number) * tick_ms, (slices.end(number) - 1) * tick_ms


def answer(engine: Engine, feed: Feed, clock: int) -> list[int]:
    """The clock tick ends: what queries have to say goes to whoever listens. The numbers of those that have failed."""
    said = list(split_by_query(engine.on_clock(clock)))
    feed.publish(said)
    return [update.query for update in said if isinstance(update, QueryFailure)]
