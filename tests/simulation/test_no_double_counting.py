"""Whatever goes wrong on the way, a reading is in one partial at most that counts: a partial may be lost, never doubled.

Motes fold; acknowledgements are lost while parents start anew without their memory, links come and go so that parents change,
what goes by wire is doubled and late, clocks are wrong, and those who had them start anew. By the trace alone each reading of a fold may come home once, and the answers are those
of a replay of what came.
"""

import random
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from basestation.testbed.event_testbed import EventTestbed
from simulator.radio_medium import Bursts
from simulator.scenario import InjectedFault, ScenarioQuery, WireFaults, read_scenario
from tests.conftest import count_of
from tests.simulation.scenario_judge import FOLDER, judge, run_scenario

SECONDS = 600
JUMPS_MS = -86_400_000, -60_000, -7_000, 5_000, 12_000, 25_000, 60_000, 86_400_000
QUERIES = (
    "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM hall [FROM NOW-20 TO NOW SLIDE 30 SEC]",
    "SELECT SUM(temp) AS total FROM hall [NOW]",
    "SELECT supply, COUNT(*) AS n FROM hall [FROM NOW-50 TO NOW SLIDE 60 SEC] WHERE temp > 20 GROUP BY supply",
    "SELECT MAX(temp) AS most FROM hall [FROM NOW-50 TO NOW SLIDE 20 SEC] WHERE supply > 2900",
)
PARENTS = {3: 1, 5: 2, 4: 2, 6: 3, 7: 4, 8: 5, 1: 0, 2: 0}
"""The parents at the beginning; another choice does no harm."""


def forgetful(rng, name):
    """A child does not hear its parent for a while, and the parent is started anew meanwhile, once or twice."""
    child = rng.choice(sorted(PARENTS))
    above, at = PARENTS[child] or rng.choice((1, 2)), rng.randrange(60_000, 500_000)
    lasts = rng.choice((5_000, 20_000, 60_000, 150_000))
    deaf = InjectedFault(f"{name} deaf", "links_change", at, at + lasts, links=((above, child, 0.0),))
    whens = [at + rng.randrange(lasts) for _ in range(rng.choice((1, 1, 2)))]
    return [deaf, *(InjectedFault(f"{name} {n}", "reboots", when, None, (above,)) for n, when in enumerate(whens))]


def wavering(rng, name, deployment):
    """Some links are better or worse for a while: parents change, there and back."""
    at = rng.randrange(500_000)
    links = [
        (*link, rng.choice((0.0, 0.3, 1.0))) for link in rng.sample(sorted(deployment.links), rng.choice((1, 2, 4)))
    ]
    return [InjectedFault(name, "links_change", at, at + rng.randrange(10_000, 200_000), links=tuple(links))]


def away(rng, name):
    at = rng.randrange(500_000)
    what = rng.choice(("cut", "cut", "base_away"))
    motes = () if what == "base_away" else (rng.choice(sorted(PARENTS)),)
    return [InjectedFault(name, what, at, at + rng.randrange(5_000, 90_000), motes)]


def mistimed(rng, name):
    """A clock is wrong, and its mote is started anew before that is noticed, or after, or not at all."""
    mote, at = (rng.choice(sorted(PARENTS)),), rng.randrange(500_000)
    wrong = InjectedFault(f"{name} wrong", "clock_jumps", at, None, mote, by_ms=rng.choice(JUMPS_MS))
    whens = [at + rng.choice((3_000, 20_000, 90_000)) + rng.randrange(20_000) for _ in range(rng.choice((0, 1, 1, 2)))]
    return [wrong, *(InjectedFault(f"{name} {n}", "reboots", when, None, mote) for n, when in enumerate(whens))]


def case(rng):
    """A scenario, and how its motes work."""
    scenario = read_scenario(FOLDER / "filtering.toml")
    faults = [fault for n in range(rng.randint(1, 4)) for fault in forgetful(rng, f"forgets {n}")]
    faults += [fault for n in range(rng.randint(0, 2)) for fault in wavering(rng, f"wavers {n}", scenario.deployment)]
    faults += [fault for n in range(rng.randint(0, 1)) for fault in away(rng, f"away {n}")]
    faults += [fault for n in range(rng.randint(0, 2)) for fault in mistimed(rng, f"mistimed {n}")]
    texts = rng.sample(QUERIES, rng.choice((1, 2)))
    queries = tuple(ScenarioQuery(f"{n}", text, n * rng.choice((0, 200_000)), None) for n, text in enumerate(texts))
    wire = WireFaults(rng.choice((0, 0.3)), rng.choice((0, 0.3)), rng.choice((5_000, 20_000)), 0)
    bursts = rng.choice((None, None, Bursts(0.1, 0.3, 0.0)))
    wrong = {
        "faults": tuple(faults),
        "wire": wire,
        "ppm": rng.choice((0, 100)),
        "delivery": rng.choice((1.0, 0.8, 0.6)),
        "bursts": bursts,
    }
    return replace(scenario, queries=queries, **wrong), rng.random() < 0.3


@pytest.mark.promise("no-double-count")
@pytest.mark.parametrize("number", range(count_of(5, 80)))
def test_whatever_goes_wrong_each_reading_counts_once_at_most(number, tally, run_seed):
    rng = random.Random(f"{run_seed}:counts twice:{number}")
    scenario, agenda = case(rng)
    bed = run_scenario(
        scenario, SECONDS, rng.randrange(1_000), partial(EventTestbed, agenda=agenda, pushdown="everything")
    )
    home = Counter(
        (e["table"], reading) for e in bed.trace.of("merged") for reading in e["readings"].split(",") if reading
    )
    assert home and max(home.values()) == 1, [reading for reading, times in home.items() if times > 1][:5]
    dropped = Counter(e["why"] for e in bed.trace.of("dropped"))
    tally(
        "partials that came home, and those that might have been copies",
        {"came": len(bed.trace.of("merged")), **dropped},
    )
    # A fold that began later leaves out what was before its first slice.
    assert sum(judge(bed, asked.name) for asked in scenario.queries if not asked.at_ms) > 0
