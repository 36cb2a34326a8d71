"""The world of a golden file: a small network with motes at the sites of its extents, and what they measure.

Attributes have a sensor each, which gives what the file has recorded, again and again; where nothing is recorded for a site
and an epoch it gives something that was recorded elsewhere. Strings cannot be measured and are left out of the sensed
extents; a float without a scale gets one, as motes give whole numbers. Pushed and stored extents are as they are.
"""

import csv
import io
import random
from dataclasses import dataclass, replace
from decimal import Decimal
from math import lcm
from pathlib import Path

from acquisition.extent import ExtentKind
from basestation.language.schema_parser import parse_schema
from basestation.language.schema_syntax import SitesClause
from basestation.language.syntax import Number, String
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from gateway.source import Source
from innet.deployment import Deployment, SensorSpec, Site
from simulator.scenario import Quantity, RecordedValues, Scenario, ScenarioQuery, WireFaults
from tests.golden.recordings import for_engine
from tests.language.schema_printer import print_schema

SCALE = 2
"""Of floats that have none."""
WIDTHS = (8, 16, 32)
"""Bits of the converters that there are."""
RELAY = 100
"""A mote without sensors, between the gateway and all others."""
PAST = 20
"""Ticks that pass before all motes have what they should."""


@dataclass(frozen=True)
class World:
    """`pushed` are the inputs of pushed extents as CSV, `versions` those of stored ones as (tick, extent, CSV)."""

    scenario: Scenario
    seconds: int
    pushed: dict[str, str]
    versions: list[tuple[int, str, str]]


def world_of(golden, folder):
    """The World of a golden file; recordings of what its sensors give lie in `folder`."""
    known = read_recording(read_schema(golden.schema), for_engine(golden)).catalog
    schema = print_schema(
        [_declared(each, known.find(each.name.text)) for each in parse_schema(Source(golden.schema)).extents]
    )
    catalog = read_schema(schema)
    sensed = [extent for extent in catalog if extent.kind is ExtentKind.SENSED]
    grid = lcm(*(extent.interval for extent in sensed)) if sensed else 1
    period = -(-(golden.until() + 1) // grid) * grid
    seconds = PAST + max(period, 5 * grid)
    sensors, world = {}, {}
    for extent in sensed:
        for attribute in _measured(extent):
            values = _values(golden, extent, attribute, period)
            path = Path(folder) / f"{extent.name}.{attribute.name}.csv"
            path.write_text(_recording(values, attribute.scale or 0, period, seconds))
            world[attribute.sensor] = Quantity(recording=RecordedValues(path, extent.interval * 1_000), column="value")
            for site in extent.sites:
                sensors.setdefault(site, {})[attribute.sensor] = _converter(values, attribute)
    deployment = Deployment(
        golden.path.stem, 1_000, {0: (0.0, 0.0, 0.0)}, _motes(sensors), _links(sorted(sensors)), Source(schema)
    )
    scenario = Scenario(golden.path.stem, Source(""), deployment, 0, 1, world, 1.0, None, WireFaults(), 0, (), ())
    pushed = {
        name: text for name, text in golden.inputs.items() if (e := catalog.find(name)) and e.kind is ExtentKind.PUSHED
    }
    versions = []
    for label, text in golden.inputs.items():
        name, _, tick = label.partition("@")
        if catalog.find(name).kind is ExtentKind.STORED:
            versions.append((int(tick or 0), name, text))
    return World(scenario, seconds, pushed, versions)


def asking(world, texts):
    """Its scenario with queries from the beginning, named by their numbers from 1."""
    queries = tuple(ScenarioQuery(str(number), text, 0, None) for number, text in enumerate(texts, 1))
    return replace(world.scenario, queries=queries)


# --- the schema ------------------------------------------------------------------------------------------------------


def _declared(extent, known):
    """A declaration as it can be deployed; `known` is what it means."""
    if extent.kind == "stored":
        return replace(extent, source=None)
    if extent.kind == "pushed":
        return extent
    attributes = [each for each in extent.attributes if each.type.text != "string"]
    fitted = tuple(each if _known(known, each) else _fitted(extent, each) for each in attributes)
    return replace(extent, attributes=fitted, sites=SitesClause(tuple((site, site) for site in known.sites)))


def _known(extent, attribute):
    return attribute.name.text in {a.name for a in (extent.site_attribute, extent.time_attribute) if a}


def _fitted(extent, attribute):
    scale = Number(SCALE) if attribute.type.text == "float" and attribute.scale is None else attribute.scale
    return replace(attribute, scale=scale, sensor=String(f"{extent.name.text} {attribute.name.text}"))


def _measured(extent):
    return [each for each in extent.schema if each not in (extent.site_attribute, extent.time_attribute)]


# --- what is measured ------------------------------------------------------------------------------------------------


def _values(golden, extent, attribute, period):
    """{(site, tick): multiple, or None where the sensor fails} of each due reading of a period."""
    found = {}
    for row in csv.DictReader(io.StringIO(golden.inputs.get(extent.name, ""))):
        if not row["_site"]:  # it replaces a reading by its index
            continue
        text = row.get(attribute.name)
        multiple = int(Decimal(text).scaleb(attribute.scale or 0)) if text else None
        if multiple is None or abs(multiple) < 2**31:
            found[int(row["_site"]), int(row["_tick"])] = multiple
    rng = random.Random(f"{golden.path.stem} {extent.name} {attribute.name}")
    others = sorted(set(found.values()) - {None}) or list(range(-20, 60, 7))
    due = [(site, tick) for tick in range(0, period, extent.interval) for site in extent.sites]
    return {key: found[key] if key in found else rng.choice(others) for key in due}


def _recording(values, scale, period, seconds):
    """CSV with what is given in each epoch, period by period."""
    lines = [
        f"{tick + begin},{site},{Decimal(value).scaleb(-scale)}"
        for begin in range(0, seconds, period)
        for (site, tick), value in values.items()
        if value is not None
    ]
    return "\n".join(["_tick,_site,value", *lines, ""])


def _converter(values, attribute):
    """The narrowest that gives all values."""
    known = [value for value in values.values() if value is not None]
    width = next(w for w in WIDTHS if all(-(2 ** (w - 1)) <= value < 2 ** (w - 1) for value in known))
    return SensorSpec(-(2 ** (width - 1)), 2 ** (width - 1) - 1, attribute.scale or 0, attribute.unit)


# --- the network -----------------------------------------------------------------------------------------------------


def _motes(sensors):
    sensors_by_mote = {RELAY: {}, **sensors}
    return {
        number: Site(number, (0.0, 0.0, 0.0), "telosb", of, 31_320.0) for number, of in sorted(sensors_by_mote.items())
    }


def _links(sites):
    """A tree of twos behind the relay; nothing is lost on it."""
    order = [0, RELAY, *sites]
    pairs = [(order[place // 2], order[place]) for place in range(1, len(order))]
    return {link: 1.0 for a, b in pairs for link in ((a, b), (b, a))}
