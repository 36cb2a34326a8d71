"""A deployment's TOML file -> Deployment, or everything that is wrong with the file, each with its place.

docs/deployments.md says what may stand in it. The file may name two others: the schema of its extents, and a table of
links; both are found beside it.
"""

from collections.abc import Callable
from dataclasses import fields
from math import inf
from pathlib import Path

from acquisition.units import UCUM
from gateway.diagnostics import Diagnostic
from gateway.frame import BROADCAST, COORDINATOR
from gateway.source import Source, Span, did_you_mean
from gateway.toml import ConfigError, TomlTable, is_number, is_whole, read_toml
from innet.costs.hardware import list_hardware, load_hardware
from innet.deployment import Deployment, Position, SensorSpec, Site
from innet.deployment.propagation import PropagationModel, predict_link_ratios

_LARGEST = BROADCAST - 1
_RAW = 2**31  # motes hold values in 32 bits
_TOLD = 10  # a table of links that is something else is not told line by line


def read_deployment(path: str | Path) -> Deployment:
    """The deployment that a file describes; raises Faulty with everything that is wrong with it, and OSError."""
    path = Path(path)
    try:
        text = _read(path)
    except UnicodeDecodeError as error:
        raise ConfigError(
            [Diagnostic("SN708", f"the file is no UTF-8: {error.reason}", Source("", str(path)), Span(0, 1))]
        ) from error
    return parse_deployment(text, str(path), lambda name: _read(path.parent / name))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")


def parse_deployment(text: str, name: str | None, beside: Callable[[str], str]) -> Deployment:
    """The same from a text; `beside` gives the text of a file that it names."""
    top = read_toml(Source(text, name))
    boards = _boards(top)
    gateways = _gateways(top)
    motes = {}
    for number, table in _numbered(top, "motes"):
        if number == COORDINATOR:
            table.fault("SN704", f"no mote has the number {COORDINATOR}")
        elif number in gateways:
            table.fault("SN707", f"{number} is the number of a gateway already")
        motes[number] = _site(number, table, boards)
    positions = {**gateways, **{number: site.position for number, site in motes.items()}}
    deployment = Deployment(
        name=top.text("name"),
        tick_ms=top.integer("tick_ms", 1, 86_400_000, 1_000),
        gateways=gateways,
        motes=motes,
        links=_links(top, positions, beside),
        extents=_extents(top, beside),
    )
    top.close()
    if top.faults:
        raise ConfigError(top.faults)
    return deployment


def _numbered(top: TomlTable, key: str) -> list[tuple[int, TomlTable]]:
    """The tables under a key that are named by the number of a mote."""
    if key not in top:
        top.fault("SN703", f"the file does not say `{key}`")
    tables = top.table(key)
    found = []
    for name, table in tables.tables() if tables else ():
        if (number := _number(name)) is None:
            table.fault("SN704", f"`{name}` is no number from 0 to {_LARGEST:,}")
        else:
            found.append((number, table))
    return sorted(found, key=lambda each: each[0])


def _number(text: str) -> int | None:
    found = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else _LARGEST + 1
    return found if found <= _LARGEST and str(found) == text else None


def _gateways(top: TomlTable) -> dict[int, Position]:
    gateways = {}
    for number, table in _numbered(top, "gateways"):
        gateways[number] = _position(table)
        table.close()
    return gateways


def _position(table: TomlTable) -> Position | None:
    at = table.get(
        "at",
        "a place in metres, [east, north] or [east, north, up]",
        lambda at: isinstance(at, list) and len(at) in (2, 3) and all(is_number(metres) for metres in at),
    )
    return None if at is None else (*map(float, at), *[0.0] * (3 - len(at)))


# --- motes ---


def _boards(top: TomlTable) -> dict[str, TomlTable]:
    """What several motes have in common, by name; looked into where a mote is made of it."""
    tables = top.table("boards")
    return dict(tables.tables()) if tables else {}


def _site(number: int, table: TomlTable, boards: dict[str, TomlTable]) -> Site | None:
    """What the mote does not say itself, its board says."""
    name = table.one_of("board", "board", boards, None)
    said = [table] if name is None else [table, boards[name]]
    position = _position(table)
    named = [each.one_of("hardware", "hardware", list_hardware()) for each in said if "hardware" in each]
    if not named and (name or "board" not in table):
        named = [table.one_of("hardware", "hardware", list_hardware())]
    kind = named[0] if named else None
    sensors: dict[str, SensorSpec] = {}
    for each in reversed(said):
        inner = each.table("sensors")
        sensors.update((name, _sensor(sensor, kind)) for name, sensor in (inner.tables() if inner else ()))
    battery = inf
    for each in reversed(said):
        battery = _battery(each, kind, battery)
    for each in said:
        each.close()
    return Site(number, position, kind, sensors, battery)


def _sensor(table: TomlTable, kind: str | None) -> SensorSpec:
    raw = table.get(
        "raw",
        "the smallest and the largest number the sensor gives, within 32 bits",
        lambda raw: (
            isinstance(raw, list) and len(raw) == 2 and all(map(is_whole, raw)) and -_RAW <= raw[0] <= raw[1] < _RAW
        ),
    )
    usual = load_hardware(kind).sensing if kind else None
    spec = SensorSpec(
        *(raw or (0, 0)),
        scale=table.integer("scale", 0, 18, 0),
        unit=table.one_of("unit", "unit of measurement", UCUM, None),
        sample_ms=table.number("sample_ms", 0, 3_600_000, usual and usual.sample_ms),
        sample_ma=table.number("sample_ma", 0, 10_000, usual and usual.sample_ma),
    )
    table.close()
    return spec


def _battery(table: TomlTable, kind: str | None, otherwise: float) -> float:
    """In joules."""
    if "battery_mah" in table and "battery_j" in table:
        table.fault("SN705", "a battery is said in mAh or in J, not in both", "battery_j")
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
        top.fault("SN703", "the file does not say `links`")
    if (table := top.table("links")) is None:
        return {}
    said = [key for key in ("table", "file", "radio") if key in table]
    if len(said) != 1:
        code, what = ("SN705", "more than one") if said else ("SN703", "none")
        table.fault(code, f"links are said by `table`, `file` or `radio`, and here is {what} of them")
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
            each.name: _figure(radio, each.name, each.default)
            for each in fields(PropagationModel)
            if each.name != "seed"
        }
        figures["seed"] = radio.integer("seed", 0, 2**63 - 1)
        radio.close()
        if not table.faults:
            links.ratios = predict_link_ratios(positions, PropagationModel(**figures))
    table.close()
    return links.ratios


def _figure(radio: TomlTable, name: str, default: float) -> float | None:
    return radio.number(name, *_LIMITS.get(name, (-200, 200)), default)


class _Links:
    """Links as they are said one after the other, each between two that exist, each once."""

    def __init__(self, positions: dict[int, Position]) -> None:
        self._known = positions
        self.ratios: dict[tuple[int, int], float] = {}

    def add(self, row: object) -> tuple[str, str, str | None] | None:
        """What is wrong with it, as code, message and help; None where nothing is."""
        if not isinstance(row, list) or len(row) != 3 or not all(map(is_whole, row[:2])) or not is_number(row[2]):
            return "SN704", "a link is sender, receiver and ratio", "for example 1, 2, 0.95"
        sender, receiver, ratio = row
        for end in (sender, receiver):
            if end not in self._known:
                return "SN706", f"there is no mote or gateway {end}", did_you_mean(str(end), map(str, self._known))
        if sender == receiver:
            return "SN704", "a mote has no link to itself", None
        if not 0 <= ratio <= 1:
            return "SN704", "the ratio of a link is from 0 to 1: the share of frames that arrive", None
        if (sender, receiver) in self.ratios:
            return "SN707", f"the link from {sender} to {receiver} is said twice", None
        self.ratios[sender, receiver] = float(ratio)
        return None

    def add_lines(self, source: Source) -> list[Diagnostic]:
        """A table with a header, and a link in each line."""
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
            if len(faults) == _TOLD or (faults and number == 0):
                break
        return faults


def _header(line: str) -> tuple[str, str, str | None] | None:
    if [name.strip() for name in line.split(",")] == ["sender", "receiver", "ratio"]:
        return None
    return "SN704", "a table of links begins with `sender,receiver,ratio`", None


def _fields(line: str) -> list[int | float] | None:
    try:
        sender, receiver, ratio = line.split(",")
        return [int(sender), int(receiver), float(ratio)]
    except ValueError:
        return None  # which is no link, as the caller says


# --- extents ---


def _extents(top: TomlTable, beside: Callable[[str], str]) -> Source | None:
    """A schema in a file of its own, or in this one; then what it says keeps its place."""
    if "extents" not in top:
        top.fault("SN703", "the file does not say `extents`")
    if (table := top.table("extents")) is None:
        return None
    name, text = table.text("file", None), table.text("text", None)
    if ("file" in table) == ("text" in table):
        table.fault("SN705" if "file" in table else "SN703", "extents are said by `file` or by `text`")
    table.close()
    if name is not None:
        return _file(table, "file", name, beside)
    if text is None:
        return None
    _, span = table.places[*table.path, "text"]
    line, column = table.source.line_column(span.start)
    quotes = 3 if table.source.text.startswith(('"""', "'''"), span.start) else 1
    # A line end there is no part of the text.
    opened = table.source.text.startswith(("\n", "\r\n"), span.start + quotes)
    before = "\n" * line if opened and quotes == 3 else "\n" * (line - 1) + " " * (column - 1 + quotes)
    return Source(before + text, table.source.name)


def _file(table: TomlTable, key: str, name: str, beside: Callable[[str], str]) -> Source | None:
    try:
        return Source(beside(name), str(Path(table.source.name or "").parent / name))
    except (OSError, ValueError) as error:  # no UTF-8, or no name of a file
        table.fault("SN708", f"`{name}` cannot be read: {getattr(error, 'strerror', None) or error}", key)
        return None
