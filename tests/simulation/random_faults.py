"""Mishaps: what may go wrong in a scenario, by chance."""

from simulator.radio_medium import Bursts
from simulator.scenario import InjectedFault, WireFaults

LOSSY = {"delivery": 0.6, "bursts": Bursts(0.1, 0.3, 0.0)}
JUMPS_MS = (-86_400_000, -7_000, 5_000, 86_400_000)


def mishaps(rng, scenario, seconds):
    """Random replacements for fields of a Scenario: up to three faults, a wire that doubles, delays and damages, loss, drift."""
    wire = WireFaults(rng.choice((0, 0.3)), rng.choice((0, 0.3)), 20_000, rng.choice((0, 0, 0.05)))
    radio = rng.choice(({}, {"delivery": 0.9}, LOSSY))
    faults = tuple(_fault(rng, scenario.deployment, seconds, f"{n}") for n in range(rng.randint(0, 3)))
    return {"faults": faults, "wire": wire, "ppm": rng.choice((0, 0, 100)), **radio}


def _fault(rng, deployment, seconds, name):
    what = rng.choice(("dies", "hangs", "reboots", "cut", "clock_jumps", "links_change"))
    at = rng.randrange(1_000 * seconds)
    until = rng.choice((None, at + rng.randrange(1_000, 40_000)))
    motes = (rng.choice(sorted(deployment.motes)),)
    if what == "links_change":
        links = [(*link, rng.choice((0.0, 0.5, 1.0))) for link in rng.sample(sorted(deployment.links), 2)]
        return InjectedFault(name, what, at, until, links=tuple(links))
    if what == "clock_jumps":
        return InjectedFault(name, what, at, None, motes, by_ms=rng.choice(JUMPS_MS))
    return InjectedFault(name, what, at, until if what == "cut" else None, motes)
