"""A scenario's TOML file -> Scenario, or everything that is wrong with the file, each with its place.

A scenario names a deployment and says what the world is like around it, what goes wrong, and what is asked;
docs/simulator.md says what may stand in it. It is frozen: the same scenario and seed are the same simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from acquisition.units import milliseconds_of
from gateway.source import Source
from gateway.toml import ConfigError, TomlTable, is_number, is_whole, read_toml
from innet.deployment import Deployment, Position
from innet.deployment.toml_reader import read_deployment
from simulator.radio_medium import Bursts

_WANTED = 'a span of time, as "90 sec" or "2h"'


@dataclass(frozen=True, slots=True)
class Cycle:
    """Something that comes and goes. `phase_ms` is when it passes its mean upwards."""

    swing: float
    period_ms: int
    phase_ms: int = 0


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a kind of sensor measures: a formula, or a recording (a file with `_tick`, `_site` and a column)."""

    mean: float = 0.0
    noise: float = 0.0
    east: float = 0.0  # for each metre, as are the next two
    north: float = 0.0
    up: float = 0.0
    cycles: tuple[Cycle, ...] = ()
    file: Path | None = None
    column: str | None = None
    hold_ms: int = 0


@dataclass(frozen=True, slots=True)
class WireFaults:
    """What happens to frames between the gateways and the base station: shares, and the longest delay."""

    duplicated: float = 0.0
    delayed: float = 0.0
    delay_ms: int = 0
    damaged: float = 0.0


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """Something that goes wrong, `at_ms` after the beginning, and until when, where it ends."""

    name: str
    what: str
    at_ms: int
    until_ms: int | None = None
    motes: tuple[int, ...] = ()
    by_ms: int = 0
    links: tuple[tuple[int, int, float], ...] = ()
    sensor: str | None = None


@dataclass(frozen=True, slots=True)
class ScenarioQuery:
    """A query, when it is submitted, and when it is stopped."""

    name: str
    text: str
    at_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class Scenario:
    """`delivery` is what all links are worse by: each ratio is multiplied with it. `look_ms` is how often the station looks
    at what came; None for a few times in each tick."""

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

    @property
    def links(self) -> dict[tuple[int, int], float]:
        """As they are heard in good times."""
        return {link: ratio * self.delivery for link, ratio in self.deployment.links.items()}


def default_scenario(deployment: Deployment) -> Scenario:
    """For a deployment of whose world nobody says anything: each sensor measures anything within its range."""
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
"""What can go wrong, and what is said of it besides when; all must be, but `until`."""
GATEWAY_FAULTS = ("cut", "moves")
"""What goes wrong with gateways as with motes."""


def read_scenario(path: str | Path) -> Scenario:
    """The scenario that a file describes; raises Faulty with everything that is wrong with it, and OSError."""
    path = Path(path)
    return parse_scenario(path.read_text(encoding="utf-8-sig"), path)


def parse_scenario(text: str, path: Path) -> Scenario:
    """The same from a text; files that it names are found beside `path`."""
    top = read_toml(Source(text, str(path)))
    deployment = _deployment(top, path)
    motes, gateways, sensors = _known(deployment)
    bursts, delivery, wire = _radio(top)
    scenario = Scenario(
        name=top.text("name", path.name.removesuffix(".toml").removesuffix(".scenario")),
        source=top.source,
        deployment=deployment,
        begin_ms=_span(top, "begin", 0),
        seed=top.integer("seed", 0, 2**63 - 1, 1),
        world={name: _quantity(table, path) for name, table in _named(top, "world", sensors)},
        delivery=delivery,
        bursts=bursts,
        wire=wire,
        ppm=_clocks(top),
        faults=tuple(_fault(name, table, motes, gateways, sensors) for name, table in _named(top, "faults")),
        queries=tuple(_query(name, table, path) for name, table in _named(top, "queries")),
        look_ms=_span(top, "look", None),
    )
    if scenario.look_ms == 0:
        top.fault("SN704", "`look` is longer than nothing", "look")
    top.close()
    if top.faults:
        raise ConfigError(top.faults)
    return scenario


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
    """The motes, the gateways and the sensors there are."""
    if deployment is None:
        return set(), set(), set()
    sensors = {name for site in deployment.motes.values() if site for name in site.sensors}
    return set(deployment.motes), set(deployment.gateways), sensors


def _named(top: TomlTable, key: str, known: set[str] | None = None) -> list[tuple[str, TomlTable]]:
    """The tables under a key; where names are known, only those."""
    tables = top.table(key)
    found = list(tables.tables()) if tables else []
    for name, table in found:
        if known and name not in known:
            table.fault("SN706", f"no mote has a sensor `{name}`", help=f"there are {', '.join(sorted(known))}")
    return found


def _span(table: TomlTable, key: str, default: int | None = ...) -> int | None:
    """Milliseconds."""

    def checked(value) -> bool:
        return isinstance(value, str) and milliseconds_of(value) is not None

    value = table.get(key, _WANTED, checked, default)
    return milliseconds_of(value) if isinstance(value, str) else value


def _from_to(table: TomlTable, otherwise: int = ..., ends: bool = True) -> tuple[int | None, int | None]:
    """`at`, and of what `ends`, `until`, which comes later."""
    at, until = _span(table, "at", otherwise), _span(table, "until", None) if ends else None
    if None not in (at, until) and until <= at:
        table.fault("SN704", "`until` comes after `at`", "until")
    return at, until


def _quantity(table: TomlTable, path: Path) -> Quantity:
    quantity = Quantity(
        mean=table.number("mean", -1e12, 1e12, 0.0),
        noise=table.number("noise", 0, 1e12, 0.0),
        east=table.number("east", -1e6, 1e6, 0.0),
        north=table.number("north", -1e6, 1e6, 0.0),
        up=table.number("up", -1e6, 1e6, 0.0),
        cycles=tuple(_cycle(inner) for _, inner in _named(table, "cycles")),
        file=path.parent / name if (name := table.text("file", None)) is not None else None,
        column=table.text("column") if "file" in table else None,
        hold_ms=_span(table, "hold", 3_600_000) if "file" in table else 0,
    )
    if "file" in table and {"mean", "noise", "east", "north", "up", "cycles"} & table.values.keys():
        table.fault("SN705", "a quantity is a formula or a recording, not both", "file")
    if quantity.file is not None and not quantity.file.is_file():
        table.fault("SN708", f"there is no file `{quantity.file}`", "file")
    table.close()
    return quantity


def _cycle(table: TomlTable) -> Cycle:
    cycle = Cycle(table.number("swing", -1e12, 1e12), _span(table, "period"), _span(table, "phase", 0))
    if cycle.period_ms == 0:
        table.fault("SN704", "`period` is longer than nothing", "period")
    table.close()
    return cycle


def _radio(top: TomlTable) -> tuple[Bursts | None, float, WireFaults]:
    radio, wire = top.table("radio"), top.table("wire")
    bursts, delivery = None, 1.0
    if radio is not None:
        delivery = radio.number("delivery", 0, 1, 1.0)
        bursts = _bursts(radio)
        radio.close()
    if wire is None:
        return bursts, delivery, WireFaults()
    found = WireFaults(
        duplicated=wire.number("duplicated", 0, 1, 0.0),
        delayed=wire.number("delayed", 0, 1, 0.0),
        delay_ms=_span(wire, "delay", 0),
        damaged=wire.number("damaged", 0, 1, 0.0),
    )
    if found.delayed and "delay" not in wire:
        wire.fault("SN703", "`wire` says how many are `delayed` and not `delay`, by how long at most", "delayed")
    wire.close()
    return bursts, delivery, found


def _bursts(radio: TomlTable) -> Bursts | None:
    if (table := radio.table("bursts")) is None:
        return None
    said = [table.number(name, 0, 1) for name in ("begin", "end", "left")]
    table.close()
    if None in said:
        return None
    try:
        return Bursts(*said)
    except ValueError as error:
        table.fault("SN704", str(error))
        return None


def _clocks(top: TomlTable) -> int:
    if (table := top.table("clocks")) is None:
        return 0
    ppm = table.integer("ppm", 0, 10_000, 0)
    table.close()
    return ppm


def _fault(name: str, table: TomlTable, motes: set[int], gateways: set[int], sensors: set[str]) -> InjectedFault:
    what = table.one_of("what", "fault", FAULTS)
    needs, both = FAULTS.get(what, ("mote", "until")), motes | gateways
    found = table.get("mote", "the number of a mote, or a list of some", _is_motes) if "mote" in needs else None
    some = tuple(found) if isinstance(found, list) else () if found is None else (found,)
    if motes and (strange := sorted(set(some) - (both if what in GATEWAY_FAULTS else motes))):
        why = f"{strange[0]} is a gateway, and `{what}` is about motes" if strange[0] in gateways else None
        table.fault("SN706", why or f"there is no mote {strange[0]}", "mote")
    at, until = _from_to(table, ends="until" in needs)
    fault = InjectedFault(
        name,
        what,
        at_ms=at,
        until_ms=until,
        motes=some,
        by_ms=_span(table, "by") * (1 if table.get("back", "true or false", _is_truth, False) is False else -1)
        if "by" in needs and "by" in table
        else 0,
        links=_links(table, both) if "links" in needs else (),
        sensor=table.one_of("sensor", "sensor", sensors) if "sensor" in needs else None,
    )
    for key in needs:
        if key not in table and key not in ("until", "links", "sensor", "mote"):
            table.fault("SN703", f"`{what}` needs `{key}`")
    table.close()
    return fault


def _is_truth(value) -> bool:
    return isinstance(value, bool)


def _is_motes(value) -> bool:
    return is_whole(value) or (isinstance(value, list) and bool(value) and all(map(is_whole, value)))


def _links(table: TomlTable, motes: set[int]) -> tuple[tuple[int, int, float], ...]:
    rows = table.get("links", "a list of [sender, receiver, ratio]", lambda rows: isinstance(rows, list))
    found = []
    for index, row in enumerate(rows or ()):
        if not (isinstance(row, list) and len(row) == 3 and all(map(is_whole, row[:2])) and is_number(row[2])):
            table.fault("SN704", "a link is sender, receiver and ratio", "links", index, help="for example 1, 2, 0.95")
        elif motes and (strange := sorted(set(row[:2]) - motes)):
            table.fault("SN706", f"there is no mote or gateway {strange[0]}", "links", index)
        elif not 0 <= row[2] <= 1:
            table.fault("SN704", "the ratio of a link is from 0 to 1", "links", index)
        else:
            found.append((row[0], row[1], float(row[2])))
    return tuple(found)


def _query(name: str, table: TomlTable, path: Path) -> ScenarioQuery:
    text, file = table.text("text", None), table.text("file", None)
    if (text is None) == (file is None):
        table.fault("SN705" if text else "SN703", "a query is said by `text` or by `file`")
    if file is not None:
        try:
            text = (path.parent / file).read_text(encoding="utf-8-sig")
        except OSError as error:
            table.fault("SN708", f"`{file}` cannot be read: {error.strerror}", "file")
    asked = ScenarioQuery(name, text, *_from_to(table, 0))
    table.close()
    return asked


def positions(deployment: Deployment) -> dict[int, Position]:
    """Where the motes are."""
    return {number: site.position for number, site in deployment.motes.items()}
