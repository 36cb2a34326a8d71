"""In the network against collecting everything: messages, bytes and energy of an hour, by swept simulations.

    python -m bench.network [--full]

The office of the examples, and random networks of 100 and, with --full, 1,000 motes; links as they are. Each query is
run twice: every reading that it needs is collected, or what the planner chose runs on the motes; so are twenty that
overlap, together. A message is one attempt to hand a frame over. Perfect links are every link that there is, without
loss: another, flatter network. Prediction is the planner's cost model, measured the simulator's account.
"""

import sys
from dataclasses import replace
from random import Random

from acquisition.schedule import Schedule
from acquisition.scheduling import NOTHING, share
from basestation.planner.bind import bind_text
from basestation.planner.deployed import read_deployed
from basestation.planner.lower import collected
from basestation.planner.rewrite import rewrite
from basestation.planner.split import raw_of, split
from basestation.queries import Query
from bench import record
from gateway.source import Source
from innet.costs.hardware import TRIES, hardware
from innet.costs.model import Network
from innet.deployment import Deployment, SensorSpec, Site
from innet.deployment.description import read_deployment
from innet.deployment.propagation import Radio, ratios
from innet.payload import Duty, Orders
from innet.payload.sizes import sizes
from innet.placement.expected import Round
from innet.placement.place import Choice, World, place, predicted
from innet.placement.timing import agenda_of
from innet.program.compile import compile_programs
from innet.routing.choose import choose_tree
from simulator.build import channel_of, kinds_of, sensors_of
from simulator.scenario import Quantity, Scenario, Wire
from simulator.standing import Standing
from simulator.sweep.layout import CannotSweep
from simulator.sweep.record import count
from simulator.sweep.run import Sweep
from simulator.tally import Tally

HOUR_S = 3_600
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
    "windowed by site": "SELECT site, AVG(temp) AS mean FROM lab [FROM NOW-9 MIN TO NOW SLIDE 10 MIN] GROUP BY site",
}
TWENTY = [
    f"SELECT {columns} FROM lab{where}"
    for columns in ("site, temp", "site, light", "temp, light", "site, temp, light")
    for where in ("", " WHERE temp > 22", " WHERE light > 300", " WHERE site < 30", " WHERE temp > 20 AND light < 600")
]
CASES = {name: [text] for name, text in QUERIES.items()} | {"twenty queries": TWENTY}
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
    links = ratios({0: (side / 2, side / 2, 0.0), **places}, Radio(seed=motes))
    sites = {n: Site(n, at, "telosb", SENSORS, 31_320.0) for n, at in places.items()}
    schema = SCHEMA.replace("EVERY", every).replace("COUNT", str(motes))
    return Deployment(f"random {motes}", 1_000, {0: (side / 2, side / 2, 0.0)}, sites, links, Source(schema))


def planned(deployment, texts, inside):
    """What each mote is to have, the planner's prediction for a round, and the round's length in ticks."""
    catalog = read_deployed(deployment)
    raw, delivered, choices, needs = raw_of(deployment, catalog), [], [], []
    for number, text in enumerate(texts, 1):
        [plan] = bind_text(text, catalog)
        better, _ = rewrite(plan)
        found = split(plan, better.root, raw)
        delivered += found.readings if inside else collected(better.root)
        choices += [Choice(feed.fold, feed.instead) for feed in found.feeds] if inside else []
        needs += Query(number, text, plan, collected(better.root)).needs
    scheduled = share(needs, catalog, NOTHING, 0)
    tree = choose_tree(deployment.topology, deployment.gateways)
    sites = {extent.name: tuple(s for s in extent.sites if s in tree.parent) for extent in catalog}
    kinds, batteries = kinds_of(deployment), {n: site.battery for n, site in deployment.motes.items()}
    [extent] = [extent for extent in catalog if extent.name == "lab"]
    samples = {
        (site, a.name): (spec.sample_ms, spec.sample_ma)
        for site in sites["lab"]
        for a in extent.schema
        if (spec := deployment.motes[site].sensors.get(a.sensor or a.name))
    }
    schedules = {n: each for n, each in scheduled.schedules.items() if n in tree.parent}
    network = Network(tree, deployment.topology, kinds, batteries, TRIES)
    world = World(network, sites, schedules, sizes(), Round(1, extent.interval), 1_000, samples)
    placement, _ = place(delivered, choices, world)
    agenda = agenda_of(placement, world)
    programs = {}
    for program in compile_programs(placement.placed, schedules.values(), {n: k.processor for n, k in kinds.items()}):
        programs.setdefault(program.site, []).append(program)
    standing = {
        n: Standing(
            schedules.get(n, Schedule(n, 1, ())),
            Orders(tuple(programs.get(n, ())), tree.parent[n], Duty.of(agenda.sites[n], agenda.period_ms)),
            1_000,
        )
        for n in tree.parent
    }
    return standing, predicted(placement, world), agenda.period


def simulated(deployment, standing, rounds):
    """What motes did in so many rounds: counts, joules of each, and the share of readings that arrived or were merged."""
    scenario = Scenario("", Source(""), deployment, 0, 1, WORLD, 1.0, None, Wire(), 0, (), ())
    sensors, kinds = sensors_of(scenario, 1), hardware_of(deployment, standing)
    sweep = Sweep(standing, {n: sensors[n] for n in standing}, kinds, channel_of(scenario, 1), 0)
    tally, came = Tally(), 0
    for first in range(0, rounds, 60):
        swept = sweep.advance(min(60, rounds - first))
        count(swept, sweep.layout, tally)
        came += sum(len(arrived.rows) for arrived in swept.arrived) + sum(len(merged.rows) for merged in swept.merged)
    joules = dict(zip(sweep.layout.number.tolist(), sweep.spent(rounds * sweep.layout.round_us).tolist(), strict=True))
    return tally, joules, came / max(1, tally.produced.total() - sweep.held)


def hardware_of(deployment, standing):
    return {n: hardware(deployment.motes[n].hardware) for n in standing}


def figures_of(deployment, texts, inside):
    standing, prediction, period = planned(deployment, texts, inside)
    rounds = HOUR_S // period
    tally, joules, came = simulated(deployment, standing, rounds)
    worst = max(joules, key=joules.get)
    days = deployment.motes[worst].battery / joules[worst] / 24
    off = max(abs(prediction.motes[n].total * rounds / joules[n] - 1) for n in joules)
    return {
        "messages": (tally.attempts.total(), "an hour"),
        "bytes": (tally.bytes.total(), "an hour"),
        "energy": (round(sum(joules.values()), 3), "J an hour"),
        "worst lifetime": (round(days, 1), "days"),
        "readings accounted for": (round(came, 4), "share"),
        "prediction of energy off by at most": (round(off, 3), "share"),
    }


def main(full):
    networks = [read_deployment(record.ROOT / "examples/lab54/deployment.toml"), random_network(100, "30 sec")]
    networks += [random_network(1_000, "5 min")] if full else []
    kept = []
    for deployment in networks:
        lossless = replace(deployment, links=dict.fromkeys(deployment.links, 1.0))
        for name, texts in CASES.items():
            for kind, inside in (("collected", False), ("in the network", True)):
                case = f"{deployment.name}, {name}, {kind}"
                try:
                    found = figures_of(deployment, texts, inside)
                    calm = figures_of(lossless, texts, inside)["messages"]
                except CannotSweep as why:
                    print(f"{case:<44}  not measured: {why}", flush=True)
                    continue
                kept += [(case, figure, *told) for figure, told in found.items()]
                kept.append((case, "messages over perfect links", *calm))
                print(f"{case:<44}", *(f"{figure} {told[0]:,}" for figure, told in found.items()), sep="  ", flush=True)
    record.keep_figures("network", "full" if full else "default", kept)


if __name__ == "__main__":
    main("--full" in sys.argv[1:])
