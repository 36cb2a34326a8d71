"""Mote descriptions: what the station knows of each mote and of its latest values, as JSON objects."""

from collections.abc import Mapping
from typing import Any

from acquisition.ticks import grid_at_or_after, rfc3339_of
from basestation.station.mote_status import MoteHealth
from basestation.station.service import Station
from gateway.frame import FrameKind, MoteId
from gateway.image import NO_IMAGE, Image
from gateway.reconciler import MoteReconciler
from innet.routing.topology import QUALITY_MAX

RECENT = 100
"""Readings of each extent that `missed` looks back on."""


def describe_motes(station: Station, now_ms: int) -> list[Mapping[str, Any]]:
    """Each mote in the order of its number. Times are RFC 3339, None where there is none."""
    accounts = station.account()
    reconcilers = station.reconcilers.by_mote
    declared = station.world.deployment.motes if station.world.deployment is not None else {}
    return [
        _describe(station, mote, reconcilers.get(MoteId(mote)), accounts, now_ms)
        for mote in sorted({*map(int, reconcilers), *declared})
    ]


def _describe(
    station: Station,
    mote: int,
    reconciler: MoteReconciler | None,
    accounts: Mapping[str, Mapping[int, Mapping[str, int]]],
    now_ms: int,
) -> Mapping[str, Any]:
    world, watch, tick_ms = station.world, station.motes, station.world.catalog.tick_ms
    heard = reconciler.heard_at if reconciler is not None else None
    late = watch.late_ms(mote, heard, now_ms, tick_ms)
    due, missed = station.ledger.recent(mote, now_ms // tick_ms - watch.wait_of(mote), RECENT)
    schedule = world.scheduled.schedules.get(mote)
    grids = [sampling.epochs for sampling in schedule.samplings] if schedule is not None else []
    nexts = [max(grid.start, grid_at_or_after(now_ms // tick_ms + 1, grid.interval)) for grid in grids]
    parent = world.tree.parent.get(mote)
    desired = world.desired.get(MoteId(mote))
    return {
        "mote": mote,
        "state": watch.health.get(mote, MoteHealth.UNKNOWN).value,
        "heard": None if heard is None else rfc3339_of(heard, 1),
        "next_due": rfc3339_of(min(nexts), tick_ms) if nexts else None,
        "late_seconds": late / 1_000 if late is not None and late > 0 else 0,
        "missed": {"of": due, "readings": missed},
        "battery_mv": (reconciler.reported.battery_mv or None) if reconciler is not None else None,
        "clock_off_ms": reconciler.reported.clock_off_ms if reconciler is not None else None,
        "parent": parent,
        "path": list(world.tree.path(mote)) if parent is not None else None,
        "link": None if parent is None else {"up": _ratio(station, mote, parent), "down": _ratio(station, parent, mote)},
        "schedule": _image(desired.schedule if desired else None, reconciler, FrameKind.SCHEDULE),
        "program": _image(desired.program if desired else None, reconciler, FrameKind.PROGRAM),
        "lifecycle": reconciler.state.name.lower() if reconciler is not None else "unknown",
        "meaning": reconciler.state.value if reconciler is not None else "nothing of it has arrived",
        "is_silent": mote in station.failure_detector.motes,
        "readings": {extent: sites[mote] for extent, sites in accounts.items() if mote in sites},
    }  # fmt: skip


def _ratio(station: Station, sender: int, receiver: int) -> float | None:
    """The share of frames that arrive in one direction, as the receiver reports it."""
    quality = station.world.topology.links.get(receiver, {}).get(sender)
    return None if quality is None else round(quality / QUALITY_MAX, 2)


def _image(desired: Image | None, reconciler: MoteReconciler | None, kind: FrameKind) -> Mapping[str, int | None]:
    """The versions that the mote should have and has reported; None where it needs none, or has reported none."""
    reported = reconciler.reported.installed.get(kind, NO_IMAGE) if reconciler is not None else NO_IMAGE
    return {
        "wanted": None if desired is None else desired.stamp.version,
        "reported": None if reported == NO_IMAGE else reported.version,
    }


def describe_topology(station: Station) -> Mapping[str, Any]:
    """The gateways, the declared motes, the parent of each mote, and each link as its receiver reports it."""
    world = station.world
    return {
        "gateways": list(world.tree.roots),
        "motes": sorted(world.deployment.motes if world.deployment is not None else world.tree.parent),
        "parents": [{"mote": mote, "parent": parent} for mote, parent in sorted(world.tree.parent.items())],
        "links": [
            {"sender": sender, "receiver": receiver, "ratio": round(quality / QUALITY_MAX, 2)}
            for receiver, senders in sorted(world.topology.links.items())
            for sender, quality in sorted(senders.items())
        ],
    }


def describe_latest(station: Station, extent: str) -> list[Mapping[str, Any]]:
    """Each site of an extent with the newest value of each attribute and its time."""
    schema, tick_ms = station.world.catalog.extents[extent].schema, station.world.catalog.tick_ms
    scales = {attribute.name: attribute.scale for attribute in schema}
    found: list[Mapping[str, Any]] = []
    for site, values in station.latest.of(extent).items():
        shown = {}
        for name, (tick, value) in values.items():
            scale = scales.get(name)
            is_scaled = scale is not None and isinstance(value, int)
            shown[name] = {
                "value": value / 10**scale if is_scaled and scale else value,
                "time": rfc3339_of(tick, tick_ms),
            }
        found.append({"site": site, "state": station.motes.health.get(site, MoteHealth.UNKNOWN).value, "values": shown})
    return found
