"""DOOR UP: frames -> readings to engine and archive, partials to the engine, links to the world; updates to the results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

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
from basestation.updates.update import QueryFailure, Update, split_by_query
from gateway.frame import Frame, FrameKind, MoteId
from innet.payload import PartialColumns

DATA_KINDS = FrameKind.READING, FrameKind.LINKS, FrameKind.PARTIAL
STATUS_KINDS = FrameKind.HELLO, FrameKind.EVENT
"""Reports of a mote about itself, which `gateway.reconciler` reads."""
_NONE_HELD: Mapping[int, list[Update]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ReceivedFrames:
    """The world after some frames, their readings and partials, and the errors of frames that cannot be decoded.

    `batches` are the partials that the engine took, by fold number.
    """

    world: World
    readings: ReceivedReadings
    partials: tuple[PartialColumns, ...]
    batches: tuple[tuple[int, PartialBatch], ...]
    errors: tuple[PayloadError, ...]


def receive(frames: Sequence[Frame], world: World, engine: Engine, archive: Archive, tick: int) -> ReceivedFrames:
    """Take frames that arrived in a clock tick. On return their readings are in the archive."""
    of_kind = {kind: [frame for frame in frames if frame.kind is kind] for kind in DATA_KINDS}
    readings = acquisition.uplink.receive(of_kind[FrameKind.READING], world.scheduled.samplings, world.catalog, tick)
    reports, link_errors = innet.uplink.receive(of_kind[FrameKind.LINKS])
    in_partials = of_kind[FrameKind.PARTIAL]
    partials, partial_errors = innet.uplink.receive_partials(in_partials, world.shapes if in_partials else {})
    for name, batch in readings.batches:
        archive.append(world.catalog.extents[name], batch)
        engine.deliver(name, batch)
    for sampling, batch in readings.filtered:
        valid = select_valid_reports(sampling, batch, world)
        archive.append_reports(world.catalog.extents[sampling.extent], valid)
        world = world.with_filter_reports(sampling.extent, valid.tick)
        engine.deliver(sampling.extent, valid)
    batches = []
    for columns in partials:
        if engine.has_fold(number := columns.shape.aggregation):
            batches.append((number, PartialBatch.from_frames(columns, tick)))
            engine.deliver(*batches[-1])
    unknown = [frame for frame in frames if frame.kind not in (*DATA_KINDS, *STATUS_KINDS)]
    kind_errors = [PayloadError("kind", frame.mote, f"unexpected {frame.kind.name} frame") for frame in unknown]
    errors: tuple[PayloadError, ...] = *readings.errors, *link_errors, *partial_errors, *kind_errors
    return ReceivedFrames(world.with_links(reports), readings, tuple(partials), tuple(batches), errors)


def find_merged(received: ReceivedFrames, frames: Sequence[Frame]) -> frozenset[tuple[MoteId, MoteId]]:
    """The sites whose readings arrived in partials, each with the mote that forwarded the last such frame."""
    forwarders = {frame.mote: frame.sender for frame in frames if frame.kind is FrameKind.PARTIAL}
    pairs = (pair for columns in received.partials for pair in columns.contributor_pairs)
    return frozenset((MoteId(site), forwarders[MoteId(sender)]) for site, sender in pairs)


def answer(engine: Engine, feed: Feed, clock: int, held: Mapping[int, list[Update]] = _NONE_HELD) -> list[QueryFailure]:
    """End a clock tick: publish the updates of all queries; those of queries in `held` are added there. Return why queries failed."""
    published: list[Update] = []
    for update in split_by_query(engine.on_clock(clock)):
        is_held = update.query in held and not isinstance(update, QueryFailure)
        (held[update.query] if is_held else published).append(update)
    return publish_updates(feed, published)


def publish_updates(feed: Feed, updates: Sequence[Update]) -> list[QueryFailure]:
    """Publish updates. Return why queries failed."""
    feed.publish(updates)
    return [update for update in updates if isinstance(update, QueryFailure)]
