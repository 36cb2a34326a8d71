"""Reads a deployment's TOML file, or reports everything that is wrong with it, each fault with its position.

docs/deployments.md defines the format. The file may name two others beside it: the schema of its extents, and a table of
links.
"""

from collections.abc import Callable
from dataclasses import fields
from math import inf
from pathlib import Path

from acquisition.units import UCUM
from gateway.broker_settings import BrokerSettings, read_link_table
from gateway.diagnostics import Diagnostic
from gateway.frame import BROADCAST, COORDINATOR
from gateway.source import Source, Span, did_you_mean
from gateway.toml import ConfigError, Setting, TomlTable, is_number, is_whole, read_toml
from innet.costs.hardware import list_hardware, load_hardware
from innet.deployment import Deployment, Position, SensorSpec, Site
from innet.deployment.archive_table import ArchiveSettings, read_archive_table
from innet.deployment.history_table import HistorySettings, read_history_table
from innet.deployment.interface_settings import InterfaceSettings, read_interface_tables
from innet.deployment.propagation import PropagationModel, predict_link_ratios

_LARGEST = BROADCAST - 1
_RAW = 2**31  # motes hold values in 32 bits
_MAX_FAULTS = 10  # reported of one table of links
_NO_POSITION: Position = (0.0, 0.0, 0.0)  # stands for one with a fault


def read_deployment(path: str | Path, settings: list[Setting] | None = None) -> Deployment:
    """Read the deployment in a file, and note the values taken in `settings`. ConfigError with all faults, or OSError."""
    path = Path(path)
    try:
        text = _read(path)
    except UnicodeDecodeError as error:
        raise ConfigError(
            [Diagnostic("SN708", f"expected UTF-8: {error.reason}", Source("", str(path)), Span(0, 1))]
        ) from error
    return parse_deployment(text, str(path), lambda name: _read(path.parent / name), settings)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")


def parse_deployment(
    text: str, name: str | None, beside: Callable[[str], str], settings: list[Setting] | None = None
) -> Deployment:
    """Parse the text of a deployment; `beside` returns the text of a file that it names."""
    top = read_toml(Source(text, name))
    if settings is not None:
        top.settings = settings
    boards = _boards(top)
    gateways = _gateways(top)
    motes = {}
    for number, table in _numbered(top, "motes"):
        if number == COORDINATOR:
            table.fault("SN704", f"number {COORDINATOR} is the base station's; motes begin with 1")
        elif number in gateways:
            table.fault("SN707", f"number {number} belongs to a gateway already")
        motes[number] = _site(number, table, boards)
    positions = {**gateways, **{number: site.position for number, site in motes.items()}}
    deployment = Deployment(
        name=top.text("name") or "",
        tick_ms=top.integer("tick_ms", 1, 86_400_000, 1_000) or 1_000,
        gateways=gateways,
        motes=motes,
        links=_links(top, positions, beside),
        extents=_extents(top, beside) or Source(""),
    )
    read_archive_table(top)  # for its errors, as the next
    read_history_table(top)
    read_link_table(top, Path())  # for its errors: the link is how a station reaches the network, and no part of it
    read_interface_tables(top, Path())  # the same: the interface is how users reach the station
    top.close()
    if top.faults:
        raise ConfigError(top.faults)
    return deployment


def read_link(path: str | Path) -> BrokerSettings | None:
    """Read the broker of a deployment that `read_deployment` accepts; None where it names none."""
    path = Path(path)
    return read_link_table(read_toml(Source(_read(path), str(path))), path.parent)


def read_archive_settings(path: str | Path) -> ArchiveSettings:
    """Read how long archived readings are kept, of a deployment that `read_deployment` accepts."""
    return read_archive_table(read_toml(Source(_read(Path(path)), str(path))))


def read_history_settings(path: str | Path) -> HistorySettings:
    """Read which Spark the station keeps, of a deployment that `read_deployment` accepts."""
    return read_history_table(read_toml(Source(_read(Path(path)), str(path))))


def read_interface(path: str | Path) -> InterfaceSettings:
    """Read how users reach the station, from a deployment that `read_deployment` accepts."""
    path = Path(path)
    return read_interface_tables(read_toml(Source(_read(path), str(path))), path.parent)


def _numbered(top: TomlTable, key: str) -> list[tuple[int, TomlTable]]:
    """Return (number, table) of the tables under a key that are named by mote numbers, in ascending order."""
    if key not in top:
        top.fault("SN703", f"the file has no `{key}`")
    tables = top.table(key)
    found = []
    for name, table in tables.tables() if tables else ():
        if (number := _number(name)) is None:
            table.fault("SN704", f"expected a number from 0 to {_LARGEST:,}, found `{name}`")
        else:
            found.append((number, table))
    return sorted(found, key=lambda pair: pair[0])


def _number(text: str) -> int | None:
    found = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else _LARGEST + 1
    return found if found <= _LARGEST and str(found) == text else None


def _gateways(top: TomlTable) -> dict[int, Position]:
    gateways = {}
    for number, table in _numbered(top, "gateways"):
        gateways[number] = _position(table)
        table.close()
    return gateways


def _position(table: TomlTable) -> Position:
    at = table.get(
        "at",
        "a position in metres, [east, north] or [east, north, up]",
        lambda at: isinstance(at, list) and len(at) in (2, 3) and all(is_number(metres) for metres in at),
    )
    if at is None:
        return _NO_POSITION
    east, north, *up = map(float, at)
    return east, north, up[0] if up else 0.0


# --- motes ---


def _boards(top: TomlTable) -> dict[str, TomlTable]:
    """Return the boards, by name: properties that several motes share. They are read where a mote uses them."""
    tables = top.table("boards")
    return dict(tables.tables()) if tables else {}


def _site(number: int, table: TomlTable, boards: dict[str, TomlTable]) -> Site:
    """Read a mote. Its board gives the properties that the mote does not."""
    name = table.one_of("board", "board", boards, None)
    tables = [table] if name is None else [table, boards[name]]
    position = _position(table)
    named = [found.one_of("hardware", "hardware", list_hardware()) for found in tables if "hardware" in found]
    if not named and (name or "board" not in table):
        named = [table.one_of("hardware", "hardware", list_hardware())]
    kind = named[0] if named else None
    sensors: dict[str, SensorSpec] = {}
    for found in reversed(tables):
        inner = found.table("sensors")
        sensors.update((name, _sensor(sensor, kind)) for name, sensor in (inner.tables() if inner else ()))
    battery = inf
    for found in reversed(tables):
        battery = _battery(found, kind, battery)
    for found in tables:
        found.close()
    return Site(number, position, kind or "", sensors, battery)


def _sensor(table: TomlTable, kind: str | None) -> SensorSpec:
    raw = table.get(
        "raw",
        "the least and the greatest number of the sensor, within 32 bits",
        lambda raw: (
            isinstance(raw, list) and len(raw) == 2 and all(map(is_whole, raw)) and -_RAW <= raw[0] <= raw[1] < _RAW
        ),
    )
    usual = load_hardware(kind).sensing if kind else None
    raw_min, raw_max = raw or (0, 0)
    spec = SensorSpec(
        raw_min,
        raw_max,
        scale=table.integer("scale", 0, 18, 0) or 0,
        unit=table.one_of("unit", "unit of measurement", UCUM, None),
        sample_ms=table.number("sample_ms", 0, 3_600_000, usual.sample_ms if usual else 0.0) or 0.0,
        sample_ma=table.number("sample_ma", 0, 10_000, usual.sample_ma if usual else 0.0) or 0.0,
    )
    table.close()
    return spec


def _battery(table: TomlTable, kind: str | None, otherwise: float) -> float:
    """Return the energy of the battery in joules."""
    if "battery_mah" in table and "battery_j" in table:
        table.fault("SN705", "expected `battery_mah` or `battery_j`, found both", "battery_j")
    joules = table.number("battery_j", 0.001, 1e12, None)
    mah = table.number("battery_mah", 0.001, 1e9, None)
    if mah is not None and kind is not None:
        joules = mah * 3.6 * load_hardware(kind).voltage
    return otherwise if joules is None else float(joules)


# --- links ---


_LIMITS = {"best": (0, 1), "steepness": (0.01, 100), "exponent": (0, 10), "shadowing": (0, 50), "asymmetry": (0, 50)}


def _links(
    top: TomlTable, positions: dict[int, Position], beside: Callable[[str], str]
) -> dict[tuple[int, int], float]:
    if "links" not in top:
        top.fault("SN703", "the file has no `links`")
    if (table := top.table("links")) is None:
        return {}
    sources = [key for key in ("table", "file", "radio") if key in table]
    if len(sources) != 1:
        code, count = ("SN705", "more than one") if sources else ("SN703", "none")
        table.fault(code, f"links need one of `table`, `file` and `radio`, found {count}")
    links = _Links(positions)
    if (
        rows := table.get("table", "a list of [sender, receiver, ratio]", lambda rows: isinstance(rows, list), None)
    ) is not None:
        for index, row in enumerate(rows):
            if wrong := links.add(row):
                table.fault(*wrong[:2], "table", index, help=wrong[2])
    if (name := table.text("file", None)) is not None and (source := _file(table, "file", name, beside)) is not None:
        table.faults.extend(links.add_lines(source))
    if (radio := table.table("radio")) is not None:
        figures = {
            field.name: radio.number(field.name, *_LIMITS.get(field.name, (-200, 200)), field.default) or 0.0
            for field in fields(PropagationModel)
            if field.name != "seed"
        }
        seed = radio.integer("seed", 0, 2**63 - 1)
        radio.close()
        if seed is not None and not table.faults:
            links.ratios = predict_link_ratios(positions, PropagationModel(seed, **figures))
    table.close()
    return links.ratios


class _Links:
    """The links read so far. Each connects two known motes or gateways, and occurs once."""

    def __init__(self, positions: dict[int, Position]) -> None:
        self._known = positions
        self.ratios: dict[tuple[int, int], float] = {}

    def add(self, row: object) -> tuple[str, str, str | None] | None:
        """Add a row. Return what is wrong with it as (code, message, help), or None."""
        if not isinstance(row, list) or len(row) != 3 or not all(map(is_whole, row[:2])) or not is_number(row[2]):
            return "SN704", "a link needs a sender, a receiver and a ratio", "for example 1, 2, 0.95"
        sender, receiver, ratio = row
        for end in (sender, receiver):
            if end not in self._known:
                return "SN706", f"unknown mote or gateway {end}", did_you_mean(str(end), map(str, self._known))
        if sender == receiver:
            return "SN704", "a mote has no link to itself", None
        if not 0 <= ratio <= 1:
            return "SN704", f"expected a ratio from 0 to 1, the share of frames that arrive; found {ratio}", None
        if (sender, receiver) in self.ratios:
            return "SN707", f"the link from {sender} to {receiver} occurs twice", None
        self.ratios[sender, receiver] = float(ratio)
        return None

    def add_lines(self, source: Source) -> list[Diagnostic]:
        """Read a CSV table with a header, and a link per line."""
        faults: list[Diagnostic] = []
        start = 0
        for number, line in enumerate(source.text.splitlines(keepends=True)):
            span = Span(start, start + len(line.rstrip()))
            start += len(line)
            if number == 0:
                wrong = _header(line)
            else:
                wrong = self.add(_fields(line)) if line.strip() else None
            if wrong:
                faults.append(Diagnostic(*wrong[:2], source, span, help=wrong[2]))
            if len(faults) == _MAX_FAULTS or (faults and number == 0):
                break
        return faults


def _header(line: str) -> tuple[str, str, str | None] | None:
    if [name.strip() for name in line.split(",")] == ["sender", "receiver", "ratio"]:
        return None
    return "SN704", "expected `sender,receiver,ratio` as the first line of a table of links", None


def _fields(line: str) -> list[int | float] | None:
    try:
        sender, receiver, ratio = line.split(",")
        return [int(sender), int(receiver), float(ratio)]
    except ValueError:
        return None


# --- extents ---


def _extents(top: TomlTable, beside: Callable[[str], str]) -> Source | None:
    """Return the schema from a file of its own, or from this one; in this one it keeps its line and column numbers."""
    if "extents" not in top:
        top.fault("SN703", "the file has no `extents`")
    if (table := top.table("extents")) is None:
        return None
    name, text = table.text("file", None), table.text("text", None)
    if ("file" in table) == ("text" in table):
        count = "both" if "file" in table else "none"
        table.fault("SN705" if "file" in table else "SN703", f"extents need `file` or `text`, found {count}")
    table.close()
    if name is not None:
        return _file(table, "file", name, beside)
    if text is None:
        return None
    _, span = table.places[*table.path, "text"]
    line, column = table.source.line_column(span.start)
    quotes = 3 if table.source.text.startswith(('"""', "'''"), span.start) else 1
    # A line end right after the quotes is no part of the text.
    opened = table.source.text.startswith(("\n", "\r\n"), span.start + quotes)
    before = "\n" * line if opened and quotes == 3 else "\n" * (line - 1) + " " * (column - 1 + quotes)
    return Source(before + text, table.source.name)


def _file(table: TomlTable, key: str, name: str, beside: Callable[[str], str]) -> Source | None:
    try:
        return Source(beside(name), str(Path(table.source.name or "").parent / name))
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or not the name of a file
        table.fault("SN708", f"`{name}` cannot be read: {getattr(error, 'strerror', None) or error}", key)
        return None
