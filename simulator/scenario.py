"""Reads a scenario's TOML file: a Scenario, or every fault of the file with its place.

A scenario names a deployment and describes the world around it, the faults that are injected, and the queries.
docs/simulator.md lists the keys. A Scenario is frozen: the same scenario and seed give the same simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acquisition.sources.times import check_zone
from acquisition.units import milliseconds_of
from gateway.source import Source, Span
from gateway.toml import ConfigError, TomlTable, is_number, is_whole, read_toml
from innet.deployment import Deployment
from innet.deployment.toml_reader import read_deployment
from simulator.radio_medium import Bursts

_SPAN = 'a span of time, as "90 sec" or "2h"'


@dataclass(frozen=True, slots=True)
class Cycle:
    """A periodic part of a quantity. `phase_ms` is when it passes its mean upwards."""

    swing: float
    period_ms: int
    phase_ms: int = 0


@dataclass(frozen=True, slots=True)
class RecordedValues:
    """A file with values by time and site. Times are ticks, RFC 3339, or numbers since 1970; `zone` is that of times without one.

    A value holds until the next one of its site, and for at most `hold_ms`.
    """

    file: Path
    hold_ms: int
    time_column: str = "_tick"
    site_column: str = "_site"
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Quantity:
    """The values that a kind of sensor measures: a formula, or a column of a recording."""

    mean: float = 0.0
    noise: float = 0.0
    east: float = 0.0  # per metre, as are the next two
    north: float = 0.0
    up: float = 0.0
    cycles: tuple[Cycle, ...] = ()
    recording: RecordedValues | None = None
    column: str = ""


@dataclass(frozen=True, slots=True)
class WireFaults:
    """The faults of the wire between gateways and base station: shares of frames, and the longest delay."""

    duplicated: float = 0.0
    delayed: float = 0.0
    delay_ms: int = 0
    damaged: float = 0.0


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault that begins `at_ms` after the scenario begins, and ends at `until_ms` if that is given."""

    name: str
    what: str
    at_ms: int
    until_ms: int | None = None
    motes: tuple[int, ...] = ()
    by_ms: int = 0
    links: tuple[tuple[int, int, float], ...] = ()
    sensor: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioQuery:
    """A query, the file that it was read from if it has one, and when it is submitted and stopped."""

    name: str
    text: str
    at_ms: int
    until_ms: int | None
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """`delivery` is a factor on the ratio of every link. `look_ms` is how often the station processes what has arrived; None
    for a few times in each tick. `places` has the spans of key and value of each path of the scenario's file.

    `recording` has the values of the sensors that are not in `world`, in columns of the names of attributes or sensors;
    `begins_with_recording` tells that the scenario begins with its first value (`basestation.testbed.scenarios`).
    """

    name: str
    source: Source
    deployment: Deployment
    begin_ms: int
    seed: int
    world: Mapping[str, Quantity]
    delivery: float
    bursts: Bursts | None
    wire: WireFaults
    ppm: int
    faults: tuple[InjectedFault, ...]
    queries: tuple[ScenarioQuery, ...]
    look_ms: int | None = None
    places: Mapping[tuple[str | int, ...], tuple[Span, Span]] = field(default_factory=dict, repr=False, compare=False)
    recording: RecordedValues | None = None
    begins_with_recording: bool = False

    @property
    def links(self) -> dict[tuple[int, int], float]:
        """The ratio of each link in good times."""
        return {link: ratio * self.delivery for link, ratio in self.deployment.links.items()}


def default_scenario(deployment: Deployment) -> Scenario:
    """The scenario of a deployment without a description of its world: noise within the range of each sensor."""
    sensors = {name: spec for site in deployment.motes.values() for name, spec in site.sensors.items()}
    world = {}
    for name, spec in sorted(sensors.items()):
        low, high = (end / 10**spec.scale for end in (spec.raw_min, spec.raw_max))
        world[name] = Quantity(mean=(low + high) / 2, noise=(high - low) / 6)
    return Scenario(deployment.name, Source(""), deployment, 0, 1, world, 1.0, None, WireFaults(), 0, (), ())


FAULTS = {
    "dies": ("mote",),
    "hangs": ("mote",),
    "reboots": ("mote",),
    "cut": ("mote", "until"),
    "sensor_fails": ("mote", "sensor", "until"),
    "clock_jumps": ("mote", "by"),
    "moves": ("mote", "links"),
    "links_change": ("links", "until"),
    "base_away": ("until",),
}
"""The kinds of fault, and the keys of each besides `at`. All are required but `until`."""
GATEWAY_FAULTS = ("cut", "moves")
"""The faults that gateways can have, too."""


def read_scenario(path: str | Path) -> Scenario:
    """The scenario in a file. Raises ConfigError with every fault of the file, and OSError."""
    path = Path(path)
    return parse_scenario(path.read_text(encoding="utf-8-sig"), path)


def parse_scenario(text: str, path: Path) -> Scenario:
    """The scenario in a text; files that it names are found beside `path`. Raises ConfigError."""
    top = read_toml(Source(text, str(path)))
    deployment = _deployment(top, path)
    motes, gateways, sensors = _known(deployment)
    bursts, delivery, wire = _radio(top)
    name = top.text("name", path.name.removesuffix(".toml").removesuffix(".scenario"))
    begin_ms, look_ms = _span(top, "begin", 0), _span(top, "look", None)
    if look_ms == 0:
        top.fault("SN704", "expected a `look` above 0", "look")
    seed = top.integer("seed", 0, 2**63 - 1, 1)
    recording, world = _world(top, path, sensors)
    ppm = _clocks(top)
    faults = tuple(_fault(each, table, motes, gateways, sensors) for each, table in _named(top, "faults"))
    queries = tuple(_query(each, table, path) for each, table in _named(top, "queries"))
    top.close()
    if top.faults or deployment is None:
        raise ConfigError(top.faults)
    return Scenario(name or "", top.source, deployment, begin_ms or 0, seed or 0, world, delivery, bursts, wire, ppm,
                    faults, queries, look_ms, top.places, recording, recording is not None and "begin" not in top)  # fmt: skip


# From here on a value with a fault is replaced by some value of its type: `parse_scenario` raises for the fault.


def _deployment(top: TomlTable, path: Path) -> Deployment | None:
    name = top.text("deployment")
    if name is None:
        return None
    try:
        return read_deployment(path.parent / name)
    except OSError as error:
        top.fault("SN708", f"`{name}` cannot be read: {error.strerror}", "deployment")
        return None


def _known(deployment: Deployment | None) -> tuple[set[int], set[int], set[str]]:
    """The motes, the gateways and the sensors of a deployment."""
    if deployment is None:
        return set(), set(), set()
    sensors = {name for site in deployment.motes.values() if site for name in site.sensors}
    return set(deployment.motes), set(deployment.gateways), sensors


def _named(top: TomlTable, key: str, known: set[str] | None = None) -> list[tuple[str, TomlTable]]:
    """The tables under a key. Their names must be `known`, if names are."""
    tables = top.table(key)
    found = list(tables.tables()) if tables else []
    for name, table in found:
        if known and name not in known:
            table.fault("SN706", f"no mote has a sensor `{name}`", help=f"there are {', '.join(sorted(known))}")
    return found


def _span(table: TomlTable, key: str, default: Any = ...) -> int | None:
    """Milliseconds; None for a fault, and for a default of None."""

    def is_span(value: object) -> bool:
        return isinstance(value, str) and milliseconds_of(value) is not None

    value = table.get(key, _SPAN, is_span, default)
    return milliseconds_of(value) if isinstance(value, str) else value


def _from_to(table: TomlTable, at_default: Any = ..., ends: bool = True) -> tuple[int, int | None]:
    """`at` and, for entries that end, `until`, which must be later."""
    at, until = _span(table, "at", at_default), _span(table, "until", None) if ends else None
    if at is not None and until is not None and until <= at:
        table.fault("SN704", "expected an `until` later than `at`", "until")
    return at or 0, until


_RECORDING = ("file", "hold", "time_column", "site_column", "zone")
"""The keys of a recording."""


def _world(top: TomlTable, path: Path, sensors: set[str]) -> tuple[RecordedValues | None, dict[str, Quantity]]:
    """The recording of the whole world, if there is one, and the quantities that are described apart."""
    table = top.table("world")
    if table is None:
        return None, {}
    is_recorded = "file" in table and not isinstance(table.values["file"], dict)
    recording = _recording(table, path) if is_recorded else None
    names = [name for name in table.values if not (is_recorded and name in _RECORDING)]
    found = {}
    for name in names:
        if (inner := table.table(name)) is not None:
            if sensors and name not in sensors:
                inner.fault("SN706", f"no mote has a sensor `{name}`", help=f"there are {', '.join(sorted(sensors))}")
            found[name] = _quantity(inner, path)
    return recording, found


def _recording(table: TomlTable, path: Path) -> RecordedValues | None:
    file, zone = table.text("file"), table.text("zone", None)
    recording = RecordedValues(
        path.parent / (file or ""),
        _span(table, "hold", 3_600_000) or 0,
        table.text("time_column", "_tick") or "",
        table.text("site_column", "_site") or "",
        zone,
    )
    if file is not None and not recording.file.is_file():
        table.fault("SN708", f"there is no file `{recording.file}`", "file")
    if zone is not None:
        try:
            check_zone(zone)
        except ValueError as error:
            table.fault(
                "SN704", f"`zone`: expected a name such as Europe/Zurich, or an offset such as +01:00; {error}", "zone"
            )
    return recording


def _quantity(table: TomlTable, path: Path) -> Quantity:
    is_recorded = "file" in table
    quantity = Quantity(
        mean=table.number("mean", -1e12, 1e12, 0.0) or 0.0,
        noise=table.number("noise", 0, 1e12, 0.0) or 0.0,
        east=table.number("east", -1e6, 1e6, 0.0) or 0.0,
        north=table.number("north", -1e6, 1e6, 0.0) or 0.0,
        up=table.number("up", -1e6, 1e6, 0.0) or 0.0,
        cycles=tuple(_cycle(inner) for _, inner in _named(table, "cycles")),
        recording=_recording(table, path) if is_recorded else None,
        column=(table.text("column") or "") if is_recorded else "",
    )
    if is_recorded and {"mean", "noise", "east", "north", "up", "cycles"} & table.values.keys():
        table.fault("SN705", "a quantity is a formula or a recording, not both", "file")
    table.close()
    return quantity


def _cycle(table: TomlTable) -> Cycle:
    swing, period_ms = table.number("swing", -1e12, 1e12), _span(table, "period")
    cycle = Cycle(swing or 0.0, period_ms or 1, _span(table, "phase", 0) or 0)
    if period_ms == 0:
        table.fault("SN704", "expected a `period` above 0", "period")
    table.close()
    return cycle


def _radio(top: TomlTable) -> tuple[Bursts | None, float, WireFaults]:
    radio, wire = top.table("radio"), top.table("wire")
    bursts, delivery = None, 1.0
    if radio is not None:
        delivery = radio.number("delivery", 0, 1, 1.0) or 0.0
        bursts = _bursts(radio)
        radio.close()
    if wire is None:
        return bursts, delivery, WireFaults()
    found = WireFaults(
        duplicated=wire.number("duplicated", 0, 1, 0.0) or 0.0,
        delayed=wire.number("delayed", 0, 1, 0.0) or 0.0,
        delay_ms=_span(wire, "delay", 0) or 0,
        damaged=wire.number("damaged", 0, 1, 0.0) or 0.0,
    )
    if found.delayed and "delay" not in wire:
        wire.fault("SN703", "`wire` has `delayed` but no `delay`, the longest delay", "delayed")
    wire.close()
    return bursts, delivery, found


def _bursts(radio: TomlTable) -> Bursts | None:
    if (table := radio.table("bursts")) is None:
        return None
    begin, end, left = (table.number(name, 0, 1) for name in ("begin", "end", "left"))
    table.close()
    if begin is None or end is None or left is None:
        return None
    try:
        return Bursts(begin, end, left)
    except ValueError as error:
        table.fault("SN704", str(error))
        return None


def _clocks(top: TomlTable) -> int:
    if (table := top.table("clocks")) is None:
        return 0
    ppm = table.integer("ppm", 0, 10_000, 0)
    table.close()
    return ppm or 0


def _fault(name: str, table: TomlTable, motes: set[int], gateways: set[int], sensors: set[str]) -> InjectedFault:
    what = table.one_of("what", "fault", FAULTS) or ""
    needs, both = FAULTS.get(what, ("mote", "until")), motes | gateways
    found = table.get("mote", "the number of a mote, or a list of some", _is_motes) if "mote" in needs else None
    some = tuple(found) if isinstance(found, list) else () if found is None else (found,)
    if motes and (unknown := sorted(set(some) - (both if what in GATEWAY_FAULTS else motes))):
        why = f"{unknown[0]} is a gateway, and `{what}` is a fault of motes" if unknown[0] in gateways else None
        table.fault("SN706", why or f"there is no mote {unknown[0]}", "mote")
    at, until = _from_to(table, ends="until" in needs)
    fault = InjectedFault(
        name,
        what,
        at_ms=at,
        until_ms=until,
        motes=some,
        by_ms=_jump(table) if "by" in needs and "by" in table else 0,
        links=_links(table, both) if "links" in needs else (),
        sensor=(table.one_of("sensor", "sensor", sensors) or "") if "sensor" in needs else "",
    )
    for key in needs:
        if key not in table and key not in ("until", "links", "sensor", "mote"):
            table.fault("SN703", f"`{what}` needs `{key}`")
    table.close()
    return fault


def _jump(table: TomlTable) -> int:
    """The milliseconds by which a clock jumps, below 0 for a jump `back`."""
    by_ms = _span(table, "by") or 0
    back = table.get("back", "true or false", lambda value: isinstance(value, bool), False)
    return by_ms if back is False else -by_ms


def _is_motes(value: object) -> bool:
    return is_whole(value) or (isinstance(value, list) and bool(value) and all(map(is_whole, value)))


def _links(table: TomlTable, motes: set[int]) -> tuple[tuple[int, int, float], ...]:
    rows = table.get("links", "a list of [sender, receiver, ratio]", lambda rows: isinstance(rows, list))
    found = []
    for index, row in enumerate(rows or ()):
        if not (isinstance(row, list) and len(row) == 3 and all(map(is_whole, row[:2])) and is_number(row[2])):
            table.fault("SN704", "a link is sender, receiver and ratio", "links", index, help="for example 1, 2, 0.95")
        elif motes and (unknown := sorted(set(row[:2]) - motes)):
            table.fault("SN706", f"unknown mote or gateway {unknown[0]}", "links", index)
        elif not 0 <= row[2] <= 1:
            table.fault("SN704", "the ratio of a link is from 0 to 1", "links", index)
        else:
            found.append((row[0], row[1], float(row[2])))
    return tuple(found)


def _query(name: str, table: TomlTable, path: Path) -> ScenarioQuery:
    text, file = table.text("text", None), table.text("file", None)
    if (text is None) == (file is None):
        table.fault("SN705" if text else "SN703", "a query has either a `text` or a `file`")
    if file is not None:
        try:
            text = (path.parent / file).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            table.fault("SN708", f"`{file}` cannot be read: {why}", "file")
    query = ScenarioQuery(name, text or "", *_from_to(table, 0), None if file is None else path.parent / file)
    table.close()
    return query
