"""Anything: small networks of any motes, extents and queries, by chance, and what goes wrong in them.

Sensors give what their converters can give, its ends included, and fail; scales, intervals, sites and rules about late readings
are any; queries come and go while others stay, and ask of the network what may be asked.
"""

from dataclasses import replace
from decimal import Decimal
from math import lcm

from gateway.source import Source
from innet.deployment import Deployment, SensorSpec, Site
from simulator.scenario import InjectedFault, Quantity, RecordedValues, Scenario, ScenarioQuery, WireFaults
from tests.simulation.random_faults import mishaps

RAW = (-(2**31), 2**31 - 1), (0, 4095), (-2048, 2047), (0, 1), (-5, 5), (0, 2**31 - 1)
LATE = "", "", "", "late revise by 1 hour", "late revise by 1 min", "late append", "late drop"
CONSTANTS = "0", "1", "-1", "3", "100", "0.5", "2000000000", "-2147483648", "0.01"
MERGING = "COUNT", "SUM", "AVG", "MIN", "MAX", "STDEV", "VARIANCE", "FIRST", "LAST"


class Maker:
    """Makes one Scenario; recordings of what its sensors give lie in a folder."""

    def __init__(self, rng, folder):
        self.rng, self.folder = rng, folder
        self.tick_ms, self.seconds = self.pick(500, 1_000, 1_000, 2_000), rng.randint(150, 300)
        self.motes = sorted(rng.sample(range(1, 100), rng.randint(2, 7)))
        self.sensors = {
            f"s{n}": SensorSpec(*self.pick(*RAW), self.pick(0, 0, 1, 2, 9)) for n in range(rng.randint(1, 3))
        }
        self.extents = {}  # by name: the attributes, and the interval

    def pick(self, *options):
        return self.rng.choice(options)

    def chance(self, share):
        return self.rng.random() < share

    def scenario(self):
        schema = "\n".join(self.extents_of())
        begin = self.pick(0, 86_407_000, 1_800_000_000_000) // self.tick_ms
        deployment = Deployment("anything", self.tick_ms, self.gateways(), self.sites(), self.links(), Source(schema))
        world = {name: self.recording(name, spec, begin) for name, spec in self.sensors.items()}
        queries = tuple(self.asked(f"{n}") for n in range(self.pick(1, 1, 2, 3, 5)))
        scenario = Scenario(
            "anything", Source(""), deployment, begin * self.tick_ms, 1, world, 1.0, None, WireFaults(), 0, (), queries
        )
        return replace(scenario, **self.wrong(scenario)) if self.chance(0.6) else scenario

    # --- the network -------------------------------------------------------------------------------------------------

    def gateways(self):
        self.roots = self.pick((0,), (0,), (0, 500))
        return {number: (float(number), 0.0, 0.0) for number in self.roots}

    def sites(self):
        kinds = self.rng.sample(("telosb", "mica2", "esp32", "nrf52840"), self.pick(1, 1, 3))
        return {n: Site(n, (0.0, 0.0, 0.0), self.pick(*kinds), self.sensors, 31_320.0) for n in self.motes}

    def links(self):
        """Every mote has a way to a gateway; some have more."""
        found, near = {}, list(self.roots)
        for mote in self.motes:
            above, ratio = self.pick(*near), self.pick(1.0, 1.0, 0.95, 0.8)
            found |= {(above, mote): ratio, (mote, above): ratio}
            near.append(mote)
        for _ in range(self.rng.randint(0, len(self.motes))):
            one, other = self.rng.sample(near, 2)
            if not {one, other} <= set(self.roots):
                ratio = self.pick(1.0, 0.9, 0.5)
                found = {(one, other): ratio, (other, one): ratio} | found
        return found

    def wrong(self, scenario):
        found, at = mishaps(self.rng, scenario, self.seconds), self.rng.randrange(1_000 * self.seconds)
        fails = InjectedFault(
            "fails", "sensor_fails", at, at + 30_000, (self.pick(*self.motes),), sensor=self.pick(*self.sensors)
        )
        away = InjectedFault("away", "base_away", at, at + self.rng.randrange(2_000, 40_000))
        return found | {"faults": (*found["faults"], *self.pick((), (), (fails,), (away,)))}

    def recording(self, name, spec, begin):
        path, scale = self.folder / f"{name}.csv", spec.scale
        some = [spec.raw_min, spec.raw_max, *(max(spec.raw_min, min(value, spec.raw_max)) for value in range(-2, 3))]
        nulls, lines = self.pick(0, 0, 0.1, 0.5), ["_tick,_site,value"]
        for tick in range(begin, begin + 1_000 * self.seconds // self.tick_ms, 5):
            for mote in self.motes:
                if not self.chance(nulls):
                    lines.append(f"{tick},{mote},{Decimal(self.pick(*some)).scaleb(-scale)}")
        path.write_text("\n".join([*lines, ""]))
        return Quantity(recording=RecordedValues(path, 5 * self.tick_ms), column="value")

    # --- extents -----------------------------------------------------------------------------------------------------

    def extents_of(self):
        every, sites, rules = self.rules()
        for number in range(self.pick(1, 2, 2, 3)):
            if self.chance(0.3):
                every, sites, rules = self.rules()
            types = {"site": "integer"} if self.chance(0.85) else {}
            for n, (name, spec) in enumerate(self.sensors.items()):
                scaled = (
                    f"float {{scale {spec.scale}, sensor '{name}'}}" if spec.scale else f"integer {{sensor '{name}'}}"
                )
                types |= {f"v{n}": scaled} if n == 0 or self.chance(0.8) else {}
            self.extents[f"e{number}"] = list(types), every
            columns = ", ".join(f"{name}:{type_}" for name, type_ in types.items())
            at = ", ".join(map(str, sites))
            yield f"e{number}: sensed ({columns}) every {self.span(every)} at sites {at} {rules}"

    def rules(self):
        """An interval, sites, and the policy for late and early readings."""
        few = sorted(self.rng.sample(self.motes, self.rng.randint(1, len(self.motes))))
        said = self.pick("", "wait 2 sec", "wait 20 sec"), self.pick(*LATE), self.pick("", "", "ahead 10 sec")
        return self.pick(5, 10, 15, 20), self.pick(few, self.motes, self.motes), " ".join(said)

    def span(self, ticks):
        return f"{ticks * self.tick_ms} MS"

    # --- queries -----------------------------------------------------------------------------------------------------

    def asked(self, name):
        """From the beginning or later, also amid a tick, to the end or not."""
        at = self.pick(0, 0, 250 * self.rng.randrange(0, self.seconds * 8 // 3))
        until = self.pick(None, None, None, at + 250 * self.rng.randrange(80, 480))
        return ScenarioQuery(name, self.query() + self.clause(), at, until)

    def query(self):
        self.read = [self.pick(*self.extents)]
        if self.chance(0.2) and len(self.extents) > 1:
            return self.pairs()
        columns, every = self.extents[self.read[0]]
        source = f"{self.read[0]} {self.window(every)}"
        if self.chance(0.2):
            source = f"(SELECT {', '.join(columns)}, {self.value(columns)} AS k FROM {self.read[0]}{self.where(columns)}) q " \
                     f"{self.window(every)}"  # fmt: skip
            columns = [*columns, "k"]
        if self.chance(0.15):
            return f"SELECT {self.value(columns[:1])} AS k FROM {self.read[0]}{self.where(columns[:1])}"
        text = self.over(source, columns, self.where(columns))
        return f"{self.pick('RSTREAM', 'ISTREAM', 'DSTREAM')}({text})" if self.chance(0.12) else text

    def pairs(self):
        """A join of two extents at the same tick, and at the same site if both have one."""
        self.read = self.rng.sample(sorted(self.extents), 2)
        (left, every), (right, _) = (self.extents[name] for name in self.read)
        window = self.window(every)
        sources = (f"(SELECT tick AS t, {', '.join(columns)} FROM {name}) {alias} {window}"
                   for name, alias, columns in zip(self.read, "xy", (left, right), strict=True))  # fmt: skip
        columns = [*(f"x.{name}" for name in left), *(f"y.{name}" for name in right)]
        terms = ["x.t = y.t", *(["x.site = y.site"] if "site" in left and "site" in right else [])]
        terms += [self.condition(columns)] if self.chance(0.5) else []
        return self.over(", ".join(sources), columns, f" WHERE {' AND '.join(terms)}", MERGING[:7])

    def over(self, source, columns, where, aggregates=MERGING):
        """A query over windows: of tuples, or of aggregates and groups."""
        if self.chance(0.2):
            return f"SELECT {self.value(columns)} AS k FROM {source}{where}"
        groups = self.rng.sample(columns, self.pick(0, 0, 1, min(2, len(columns))))
        items = [f"{column} AS g{n}" for n, column in enumerate(groups)] + ["COUNT(*) AS n"]
        items += [f"{self.pick(*aggregates)}({self.value(columns)}) AS a{n}" for n in range(self.pick(1, 2))]
        items += [f"MEDIAN({self.pick(*columns)}) AS m"] if self.chance(0.05) else []
        by = f" GROUP BY {', '.join(groups)}" if groups else ""
        return f"SELECT {', '.join(items)} FROM {source}{where}{by}{self.pick('', '', ' HAVING COUNT(*) < 9')}"

    def window(self, every):
        begin = self.pick(0, 1, every, 2 * every, 4 * every, 17)
        end, slide = self.pick(0, 0, 0, min(begin, every)), self.pick(every, every, 2 * every, 6 * every, 7)
        first, last = ("NOW" if not back else f"NOW-{self.span(back)}" for back in (begin, end))
        return self.pick("[NOW]", *[f"[FROM {first} TO {last} SLIDE {self.span(slide)}]"] * 4)

    def clause(self):
        every = lcm(*(self.extents[name][1] for name in self.read))
        some = f"FOR {self.span(60)}", f"DELIVER WITHIN {self.span(50)}", f"ACQUIRE EVERY {self.span(2 * every)}"
        return " " + " ".join(self.rng.sample(some, self.pick(1, 2))) if self.chance(0.2) else ""

    def where(self, columns):
        return f" WHERE {self.condition(columns)}" if self.chance(0.5) else ""

    def condition(self, columns):
        one = f"{self.value(columns)} {self.pick('<', '<=', '>', '=', '<>')} {self.pick(*CONSTANTS)}"
        other = f"{self.pick(*columns)} {self.pick('IS NULL', 'IS NOT NULL', 'BETWEEN 0 AND 50', 'IN (0, 1, 7)')}"
        return self.pick(one, one, other, f"({one} {self.pick('AND', 'OR', 'AND NOT')} {other})")

    def value(self, columns):
        name, constant = self.pick(*columns), self.pick(*CONSTANTS)
        changed = f"({name} + {constant})", f"({name} * {constant})", f"ABS({name})", f"COALESCE({name}, {constant})"
        return self.pick(name, name, name, self.pick(*changed, f"({name} / {constant})", f"NULLIF({name}, {constant})"))
