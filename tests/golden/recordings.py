"""Reads the inputs of a golden file for the engine, as a replay does, and for the oracle.

The oracle has its own reader of a few lines, which shares no code with the engine's.
"""

import re
from decimal import Decimal
from functools import lru_cache

from acquisition.extent import ExtentKind
from acquisition.sources.csv import read_csv
from basestation.planner.catalog import read_schema
from tests.oracles.schema import read_schema as read_oracle_schema
from tests.oracles.values import nearest_multiple

_FIELD = re.compile(r'("(?:[^"]|"")*"|[^,]*)(,|$)')
_ALL = re.compile(r"^(\w+)(: sensed .*?at sites )all\b", re.MULTILINE)


def for_engine(golden):
    """The inputs for `basestation.replay.inputs.read_recording`."""
    return _for_engine(golden.schema, tuple(golden.inputs.items()))


@lru_cache(maxsize=8)  # the queries of a file come one after another
def _for_engine(schema, texts):
    catalog, inputs = read_schema(schema), {}
    for label, text in texts:
        name, _, tick = label.partition("@")
        data = read_csv(text.encode(), label)
        if catalog.find(name).kind is ExtentKind.STORED:
            inputs.setdefault(name, []).append((int(tick or 0), data))
        else:
            inputs[name] = data
    return inputs


def for_oracle(golden):
    """(schema, inputs) for the oracle's `run`; `at sites all` becomes the recorded sites (13), which the oracle cannot infer."""
    return _for_oracle(golden.schema, tuple(golden.inputs.items()))


@lru_cache(maxsize=8)
def _for_oracle(schema, texts):
    named = _ALL.sub(lambda m: f"{m[1]}{m[2]}1", schema)
    extents, inputs = read_oracle_schema(named), {}
    for label, text in texts:
        name, _, tick = label.partition("@")
        rows = _rows(text, {a.name: a for a in extents[name].attributes})
        if extents[name].kind == "stored":
            inputs.setdefault(name, []).append((int(tick or 0), rows))
        else:
            inputs[name] = rows

    def sites(match):
        found = sorted({row["_site"] for row in inputs[match[1]]})
        return f"{match[1]}{match[2]}{', '.join(map(str, found))}"

    return _ALL.sub(sites, schema), inputs


def _rows(text, attributes):
    header, *lines = text.strip("\n").split("\n")
    names = header.split(",")
    return [
        {
            name: _value(field, attributes.get(name))
            for name, field in zip(names, _fields(line), strict=True)
            if field or name in attributes
        }
        for line in lines
    ]


def _fields(line):
    found, at = [], 0
    while True:
        match = _FIELD.match(line, at)
        found.append(match[1])
        if not match[2]:
            return found
        at = match.end()


def _value(field, attribute):
    """An empty field is null, a quoted empty one the empty string; `attribute` is None for system columns."""
    if not field:
        return None
    if attribute is not None and attribute.type == "string":
        return field[1:-1].replace('""', '"') if field.startswith('"') else field
    if attribute is None or attribute.type != "float":
        return int(field)
    return float(field) if attribute.scale is None else nearest_multiple(Decimal(field), attribute.scale)
