"""Extents as declared (13), with every duration in ticks."""

from dataclasses import dataclass

from acquisition.units import ticks_of
from basestation.language import syntax
from basestation.language.schema_parser import parse_schema
from gateway.source import Source
from tests.oracles.errors import NotCoveredError, RejectedError
from tests.oracles.values import Multiple, exact, half_away, nearest_multiple


@dataclass(frozen=True)
class Attribute:
    name: str
    type: str  # integer, float, string, time
    scale: int | None = None
    range: tuple | None = None


@dataclass(frozen=True)
class Extent:
    name: str
    kind: str  # sensed, pushed, stored
    attributes: tuple
    interval: int | None = None
    sites: tuple = ()  # in declared order
    wait: int = 0
    late: str = "revise"
    horizon: int | None = None
    ahead: int | None = None

    def attribute(self, name):
        return next((a for a in self.attributes if a.name == name), None)

    @property
    def site_attribute(self):
        """1.4: an attribute `site` of type integer has the site."""
        found = self.attribute("site")
        return "site" if self.kind == "sensed" and found and found.type == "integer" else None

    @property
    def time_attribute(self):
        """1.4: an attribute `time` of type integer or time has the tick."""
        found = self.attribute("time")
        return "time" if self.kind == "sensed" and found and found.type in ("integer", "time") else None


def ticks(duration, tick_ms):
    """A duration in ticks; 1.1: one that is not a whole number of ticks is an error."""
    found = ticks_of(duration.count, duration.unit, tick_ms)
    if found is None:
        raise RejectedError("static", f"{duration.count} {duration.unit} is no whole number of ticks")
    return found


def read_schema(text, tick_ms=1000):
    """The extents of a schema, by name."""
    parsed = parse_schema(Source(text))
    diagnostics = getattr(parsed, "diagnostics", ())
    if diagnostics:
        raise RejectedError(diagnostics[0].kind, diagnostics[0].message)
    return {decl.name.text: _extent(decl, tick_ms) for decl in parsed.extents}


def _extent(decl, tick_ms):
    kind = decl.kind
    attributes = tuple(
        Attribute(a.name.text, a.type.text.lower(), a.scale.value if a.scale else None, _range(a))
        for a in decl.attributes
    )
    if any(a.name in ("tick", "index") for a in attributes):
        raise RejectedError("static", "tick and index cannot be declared as attributes")  # 1.7
    if kind == "stored":
        return Extent(decl.name.text, kind, attributes)
    if kind == "sensed" and decl.every is None:
        raise RejectedError("static", "a sensed extent has an interval")  # 1.3: it belongs to the declaration
    if decl.sites is not None and decl.sites.all:
        raise NotCoveredError("13", "`at sites all` needs a deployment")
    interval = ticks(decl.every, tick_ms) if decl.every else None
    sites = tuple(s for low, high in decl.sites.ranges for s in range(low, high + 1)) if decl.sites else ()
    wait = ticks(decl.wait, tick_ms) if decl.wait else (interval if kind == "sensed" else 0)  # 13: defaults
    late = decl.late.policy if decl.late else "revise"  # 1.5: the default, by 1 DAY
    horizon = None
    if late == "revise":
        given = decl.late.horizon if decl.late else None
        horizon = ticks(given, tick_ms) if given else 86_400_000 // tick_ms
    ahead = ticks(decl.ahead, tick_ms) if decl.ahead else (interval if kind == "sensed" else None)  # 13: defaults
    return Extent(decl.name.text, kind, attributes, interval, sites, wait, late, horizon, ahead)


def _range(decl):
    if decl.range is None:
        return None
    return tuple(-end.operand.value if isinstance(end, syntax.Unary) else end.value for end in decl.range)


def held(attribute, value):
    """A value as its declared type holds it (1.8), to the nearest multiple of its scale (14, on 13)."""
    if value is None:
        return None
    if attribute.type == "string":
        if not isinstance(value, str):
            raise RejectedError("input", f"{attribute.name}: {value!r} is no string")
        return value
    if isinstance(value, str):
        raise RejectedError("input", f"{attribute.name}: {value!r} is no number")
    if attribute.type == "float":
        if attribute.scale is None:
            return float(value)
        return value if isinstance(value, Multiple) else nearest_multiple(value, attribute.scale)
    if exact(value).denominator != 1:
        raise RejectedError("input", f"{attribute.name}: {value!r} is no integer")
    return half_away(exact(value))
