"""In the network against collecting everything: messages, bytes and energy of an hour, and how well they were predicted.

    python -m bench.network [--full]

The office of the examples, and random networks of 100 and, with --full, 1,000 motes; links as they are, without loss, and
with a fifth of loss each. Each query is run three times: every reading that it needs is collected, what the planner chose runs
on the motes, or everything that may; so are twenty that overlap, together, and nine aggregates with
eleven selections. A message is one attempt to hand a frame over. The planner has counted
in the readings of another hour, as a base station has that has collected before; guessing is shown beside it. Predicted is the
planner's cost model, measured the simulator's account.
"""

import sys
from dataclasses import dataclass, replace
from random import Random

from basestation.controller.network_plan import NetworkPlan
from basestation.controller.what_if import plan_what_if
from basestation.planner.binder import bind_text
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.testbed.scenarios import measure, scenario_around
from bench import record
from gateway.source import Source
from innet.deployment import Deployment, SensorSpec, Site
from innet.deployment.propagation import PropagationModel, predict_link_ratios
from innet.deployment.toml_reader import read_deployment
from innet.placement.statistics import GUESS, CountedStatistics
from simulator.measurement import Measurement
from simulator.scenario import Quantity

HOUR_MS = 3_600_000
KINDS = {
    "collected": PushdownPolicy.NOTHING,
    "in the network": PushdownPolicy.PLANNED,
    "everything in the network": PushdownPolicy.EVERYTHING,
}
LOSSES = {"own links": None, "no loss": 1.0, "a fifth lost": 0.8}
WORLD = {
    "temperature": Quantity(mean=21.5, noise=1.5),
    "light": Quantity(mean=400.0, noise=150.0),
}
QUERIES = {
    "collect": "SELECT site, temp, light FROM lab",
    "filter 1 %": "SELECT site, temp FROM lab WHERE temp > 25",
    "filter 10 %": "SELECT site, temp FROM lab WHERE temp > 23.4",
    "filter 50 %": "SELECT site, temp FROM lab WHERE temp > 21.5",
    "aggregate": "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM lab [NOW]",
    "grouped": "SELECT band, MAX(temp) AS most FROM (SELECT light / 300 AS band, temp FROM lab) [NOW] GROUP BY band",
    "windowed": "SELECT AVG(temp) AS mean FROM lab [FROM NOW-9 MIN TO NOW SLIDE 10 MIN]",
    "aggregate, half an hour late": "SELECT AVG(temp) AS mean FROM lab [NOW] DELIVER WITHIN 30 MIN",
    "windowed by site": "SELECT site, AVG(temp) AS mean FROM lab [FROM NOW-9 MIN TO NOW SLIDE 10 MIN] GROUP BY site",
}
TWENTY = [
    f"SELECT {columns} FROM lab{where}"
    for columns in ("site, temp", "site, light", "temp, light", "site, temp, light")
    for where in ("", " WHERE temp > 22", " WHERE light > 300", " WHERE site < 30", " WHERE temp > 20 AND light < 600")
]
MIXED = [
    *(
        f"SELECT {aggregate} AS v FROM lab [{window}]"
        for aggregate in ("AVG(temp)", "MAX(light)", "STDEV(temp)")
        for window in ("NOW", "FROM NOW TO NOW SLIDE 10 MIN", "FROM NOW-9 MIN TO NOW SLIDE 10 MIN")
    ),
    *(f"SELECT {columns} FROM lab" for columns in ("site, temp", "site, light", "site, temp, light")),
    *(f"SELECT site, temp, light FROM lab WHERE temp > {least}" for least in range(18, 26)),
]
"""Aggregates first: each is worth a fold as long as no query reads the readings."""
CASES = {name: [text] for name, text in QUERIES.items()} | {"twenty queries": TWENTY, "twenty mixed": MIXED}
SCHEMA = """
lab: sensed (site:integer, temp:float {unit 'Cel', scale 2, sensor 'temperature'}, light:integer {sensor 'light'})
     every EVERY at sites 1 .. COUNT wait EVERY
"""
SENSORS = {
    "temperature": SensorSpec(-4_000, 12_380, 2, "Cel", 320.0, 0.55),
    "light": SensorSpec(0, 4_095, 0, "lx", 10.0, 0.1),
}


def random_network(motes, every):
    """Motes anywhere in a square, some ten of them within reach of each; the gateway in the middle."""
    side, chance = 22.0 * motes**0.5, Random(motes)
    places = {n: (chance.uniform(0, side), chance.uniform(0, side), 0.0) for n in range(1, motes + 1)}
    links = predict_link_ratios({0: (side / 2, side / 2, 0.0), **places}, PropagationModel(seed=motes))
    sites = {n: Site(n, at, "telosb", SENSORS, 31_320.0) for n, at in places.items()}
    schema = SCHEMA.replace("EVERY", every).replace("COUNT", str(motes))
    return Deployment(f"random {motes}", 1_000, {0: (side / 2, side / 2, 0.0)}, sites, links, Source(schema))


@dataclass(frozen=True)
class Ran:
    """The plan, and the work of the motes that followed it."""

    placed: NetworkPlan
    found: Measurement

    @property
    def hours(self):
        return self.found.rounds * self.found.round_ms / HOUR_MS

    @property
    def messages(self):
        return self.found.tally.attempts.total() / self.hours

    @property
    def joules(self):
        return sum(self.found.joules.values()) / self.hours

    def worst_days(self, deployment):
        return min(deployment.motes[n].battery / used * self.hours / 24 for n, used in self.found.joules.items())

    def off(self, statistics=None):
        """How far the prediction of a mote's energy is off, at most."""
        motes = self.placed.predict(statistics).motes
        return max(abs(motes[n].total * self.found.rounds / used - 1) for n, used in self.found.joules.items())

    def frames_a_slice(self):
        """How many frames a mote has handed over for each slice, at most, where there is nothing but one fold without groups."""
        placed = self.placed.placement.placed
        if len(placed) != 1 or len(self.placed.placement.folds) != 1 or placed[0].operator.keys:
            return None
        slices = placed[0].operator.slices
        ended = self.found.rounds * self.placed.problem.round.ticks * slices.edges / slices.period
        return max(self.found.tally.frames.values()) / ended


def ran(deployment, texts, moves, statistics, seed=1):
    """An hour, or three rounds if that is longer."""
    catalog = read_deployed_catalog(deployment)
    plans = [bind_text(text, catalog)[0] for text in texts]
    placed = plan_what_if(plans, deployment, catalog, statistics, moves)
    around = replace(scenario_around(deployment, None), world=WORLD)
    rounds = max(3, HOUR_MS // placed.agenda.period_ms)
    return Ran(placed, measure(placed, around, seed, rounds, lambda over: None))


def figures_of(deployment, texts, moves, statistics):
    """Measure on each kind of links; figures with goals are kept for all of them, the rest for the links as they are."""
    kept = []
    for links, ratio in LOSSES.items():
        there = deployment if ratio is None else replace(deployment, links=dict.fromkeys(deployment.links, ratio))
        run = ran(there, texts, moves, statistics)
        if ratio is None:
            kept += [
                ("messages", round(run.messages), "an hour"),
                ("bytes", round(run.found.tally.bytes.total() / run.hours), "an hour"),
                ("energy", round(run.joules, 3), "J an hour"),
                ("worst lifetime", round(run.worst_days(deployment), 1), "days"),
                ("readings heard of", round(min(run.found.covered.values(), default=1.0), 4), "share"),
            ]
        kept.append((f"prediction off at most, {links}", round(run.off(), 4), "share"))
        kept.append((f"guess off at most, {links}", round(run.off(GUESS), 4), "share"))
        if (frames := run.frames_a_slice()) is not None:
            kept.append((f"frames a hop and slice, {links}", round(frames, 3), "at most"))
        if ratio == 1.0:
            kept.append(("messages, no loss", round(run.messages), "an hour"))
    return kept


def main(full):
    networks = [read_deployment(record.ROOT / "examples/lab54/deployment.toml"), random_network(100, "30 sec")]
    networks += [random_network(1_000, "5 min")] if full else []
    kept = []
    for deployment in networks:
        before = ran(deployment, CASES["collect"], PushdownPolicy.NOTHING, GUESS, seed=2)
        statistics = CountedStatistics.of(before.found.sampled)
        for name, texts in CASES.items():
            for kind, moves in KINDS.items():
                case = f"{deployment.name}, {name}, {kind}"
                found = figures_of(deployment, texts, moves, statistics)
                kept += [(case, *figure) for figure in found]
                print(f"{case:<44}", *(f"{figure} {value:,}" for figure, value, _ in found), sep="  ", flush=True)
    record.keep_figures("network", "full" if full else "default", kept)


if __name__ == "__main__":
    main("--full" in sys.argv[1:])
