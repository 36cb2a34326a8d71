"""From what all queries need of the sensed extents to one schedule per site.

Each sensor is read once per due tick, however many queries want it: the interval of a sampling is the greatest common
divisor of the intervals wanted, its columns are the union of theirs. A pure function of its arguments.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import gcd
from types import MappingProxyType

from acquisition.errors import ScheduleError
from acquisition.extent import Catalog, Extent, ExtentKind
from acquisition.schedule import Sampling, Schedule, SensorChannel, channel_of
from acquisition.schema import Type
from acquisition.ticks import EpochGrid, grid_at_or_after

ALL_SITES: Mapping[str, Collection[int]] = MappingProxyType({})
ALL_SENDERS: Mapping[str, Mapping[str, Collection[int]]] = MappingProxyType({})
MAX_SAMPLINGS = 256  # a sampling's number is one byte on the air
MAX_CHANNELS = 8
MAX_INTERVAL = 0xFFFF_FFFF
"""Schedules and programs have 32 bits for an interval."""


@dataclass(frozen=True, slots=True)
class SamplingNeed:
    """What one query needs of one extent: columns, every so many ticks."""

    extent: str
    attributes: frozenset[str]
    every: int


@dataclass(frozen=True, slots=True)
class ScheduleSet:
    """The outcome: the samplings by number (old ones too: frames made by them may be under way), and the schedules."""

    samplings: Mapping[int, Sampling]
    schedules: Mapping[int, Schedule]

    @property
    def running(self) -> dict[int, Sampling]:
        """By number, the samplings that some site runs now."""
        return {each.number: each for schedule in self.schedules.values() for each in schedule.samplings}

    def current(self, extent: str) -> Sampling | None:
        """The sampling that an extent's sites run now."""
        return next((each for each in self.running.values() if each.extent == extent), None)


NO_SCHEDULES = ScheduleSet({}, {})


def build_schedules(
    needs: Iterable[SamplingNeed],
    catalog: Catalog,
    before: ScheduleSet,
    now: int,
    renewed: Collection[str] = (),
    wanted_of: Mapping[str, Collection[int]] = ALL_SITES,
    sent_of: Mapping[str, Mapping[str, Collection[int]]] = ALL_SENDERS,
) -> ScheduleSet:
    """One schedule per site that serves all needs from tick `now` on.

    What did not change keeps number and start, but for the extents that are to be `renewed`. `find_required_sites` has the sites of
    an extent that anybody wants readings of, where that is not of all; `find_sending_sites` those that send each of its attributes,
    where not all is sent by everybody. Who sends something else than before does so under another number.
    """
    by_extent: dict[str, list[SamplingNeed]] = {}
    for need in needs:
        by_extent.setdefault(need.extent, []).append(need)
    samplings, taken = dict(before.samplings), set(before.running)
    by_site: dict[int, list[Sampling]] = {site: [] for site in before.schedules}  # those without a need fall silent
    for name, wanted in by_extent.items():
        extent = catalog.find(name)
        interval, channels = _merge(extent, name, wanted)
        measuring = frozenset(wanted_of.get(name, extent.sites or ()))
        channels = tuple(_with_senders(channel, measuring, sent_of.get(name)) for channel in channels)
        sampling = before.current(name)
        kept = sampling is not None and (sampling.epochs.interval, sampling.channels) == (interval, channels)
        if not kept or name in renewed:
            number = _next_free_number(name, samplings, taken)
            sampling = Sampling(number, name, EpochGrid(grid_at_or_after(now, interval), interval), channels)
            samplings.pop(number, None)  # a number used again becomes the youngest of the dictionary
            samplings[number] = sampling
            taken.add(number)
        for site in _sites(extent):
            if site not in wanted_of.get(name, extent.sites):
                continue
            by_site.setdefault(site, []).append(sampling)
    return ScheduleSet(samplings, {site: _schedule(site, tuple(found), before) for site, found in by_site.items()})


def _merge(extent: Extent | None, name: str, needs: list[SamplingNeed]) -> tuple[int, tuple[SensorChannel, ...]]:
    if extent is None or extent.kind is not ExtentKind.SENSED:
        raise ScheduleError(name, "only a sensed extent has a schedule")
    for need in needs:
        if need.every % extent.interval:
            raise ScheduleError(name, f"every {need.every} ticks is no multiple of its interval, {extent.interval}")
        if need.every > MAX_INTERVAL:
            said = f"every {need.every:,} ticks is too rare; motes count {MAX_INTERVAL:,} of them at most"
            raise ScheduleError(name, said, "SN607")
    known = {a.name for a in (extent.site_attribute, extent.time_attribute) if a}
    wanted = {attribute for need in needs for attribute in need.attributes} - known
    sampled = [attribute for attribute in extent.schema if attribute.name in wanted]
    if unfit := next((a for a in sampled if not a.type.whole and a.scale is None), None):
        remedy = (
            f"needs a scale: `{unfit.name}:float {{scale 2}}`" if unfit.type is Type.FLOAT else f"is a {unfit.type}"
        )
        raise ScheduleError(name, f"motes compute in integers, and `{unfit.name}` {remedy}", "SN602")
    channels = tuple(channel_of(attribute) for attribute in sampled)
    if len(channels) > MAX_CHANNELS:
        said = f"{len(channels)} sensors are needed at once; a mote samples at most {MAX_CHANNELS}"
        raise ScheduleError(name, said, "SN603")
    if len({channel.sensor for channel in channels}) < len(channels):
        raise ScheduleError(
            name, "two of its sensors have the same code on the air; rename one (`sensor '…'`)", "SN604"
        )
    return gcd(*(need.every for need in needs)), channels


def _with_senders(
    channel: SensorChannel, measuring: frozenset[int], sent: Mapping[str, Collection[int]] | None
) -> SensorChannel:
    if sent is None:
        return channel
    senders = measuring.intersection(sent.get(channel.attribute, ()))
    return channel if senders == measuring else replace(channel, senders=senders)


def _sites(extent: Extent) -> tuple[int, ...]:
    if extent.sites is None:
        raise ScheduleError(extent.name, "`at sites all` cannot be scheduled yet; list the sites", "SN605")
    return extent.sites


def _next_free_number(extent: str, samplings: Mapping[int, Sampling], taken: Collection[int]) -> int:
    """The next number that nobody has: they come round after 256, when no frame of that age can be under way.

    A sampling that stays may have run for as long as that, and keeps its number.
    """
    if len(taken) == MAX_SAMPLINGS:
        raise ScheduleError(
            extent, f"{MAX_SAMPLINGS} samplings run or have just ended, and there are no more numbers on the air"
        )
    number = (next(reversed(samplings)) + 1) % MAX_SAMPLINGS if samplings else 0
    while number in taken:
        number = (number + 1) % MAX_SAMPLINGS
    return number


def _schedule(site: int, samplings: tuple[Sampling, ...], before: ScheduleSet) -> Schedule:
    old = before.schedules.get(site)
    if old and old.samplings == samplings:
        return old
    return Schedule(site, old.version % 0xFFFF + 1 if old else 1, samplings)  # no image has the version 0
