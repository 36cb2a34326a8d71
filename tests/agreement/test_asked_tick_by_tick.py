"""One-off questions at every clock tick, beside queries that run, over readings that come late and are corrected.

The engine that ends each clock tick, the one that ends only those in which a question is asked, and the oracle say the same.
"""

import pytest

from basestation.execution.graph import OperatorGraph
from basestation.replay.driver import Replay
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_catalog, read_statements
from tests.agreement.compare import agree

SCHEMA = """
road: sensed (site:integer, temp:integer) every 2 sec at sites 1, 2 wait 1 sec late revise by 20 sec
hits: pushed (v:integer) wait 1 sec late revise by 20 sec
"""
ONE_OFF = (
    "SELECT tick, index, site, temp FROM road.HISTORY",
    "SELECT COUNT(*) AS n, MAX(tick) AS t, SUM(temp) AS s FROM road.HISTORY",
    "SELECT r.site, r.tick, r.temp FROM road.HISTORY AS r "
    "WHERE r.tick * 9 + r.site IN (SELECT MAX(tick) * 9 + site FROM road.HISTORY GROUP BY site) ORDER BY r.site",
    "RSTREAM(SELECT tick, temp FROM road.HISTORY WHERE site = 1)",
    "SELECT tick, index, v FROM hits.HISTORY",
    "SELECT a.tick, b.v FROM road.HISTORY AS a, hits.HISTORY AS b WHERE a.tick = b.tick",
)
RUNNING = (
    "SELECT AVG(temp) AS m FROM road [FROM NOW-3 SEC TO NOW SLIDE 2 SEC]",
    "SELECT AVG(temp) AS m, COUNT(*) AS n FROM road [FROM NOW-2 TO NOW SLIDE 2 ROWS]",
    "SELECT MAX(x.t) AS newest FROM (SELECT tick AS t, temp FROM road) [FROM NOW-2 TO NOW SLIDE 2 ROWS] AS x",
    "SELECT tick, site, temp FROM road",
    "RSTREAM(SELECT site, temp FROM road [NOW])",
)


def record(rng):
    """Readings of 24 s, some of them missing, late, or corrected, and tuples of `hits`."""
    road = []
    for tick in range(0, 24, 2):
        for site in (1, 2):
            if rng.random() < 0.8:
                late = rng.choice((0, 0, 0, 1, 2, 5))
                road.append({"_tick": tick, "_site": site, "_arrival": tick + late, "temp": rng.randint(0, 5)})
            if rng.random() < 0.1:
                arrival = tick + rng.randint(0, 8)
                row = {"_tick": tick, "_site": site, "_arrival": arrival, "temp": rng.randint(0, 5), "_replaces": 0}
                road.append(row)
    hits = [
        {"_tick": tick, "_arrival": tick + rng.choice((0, 0, 1, 3)), "v": rng.randint(0, 5)}
        for tick in rng.choices(range(24), k=9)
    ]
    return {name: sorted(rows, key=lambda row: row["_arrival"]) for name, rows in (("road", road), ("hits", hits))}


@pytest.mark.promise("oracle")
def test_questions_at_every_tick_agree_with_oracle(rng, counts):
    for _ in range(counts(4, 100)):
        inputs = record(rng)
        asked = [(rng.choice(ONE_OFF), clock) for clock in range(0, 30, rng.choice((1, 2, 3)))]
        running = [(text, 0) for text in RUNNING if rng.random() < 0.4]
        outcome = agree(SCHEMA, inputs, [*asked, *running], until=32)
        assert outcome.verdict == "agree", outcome.report


@pytest.mark.parametrize("ask", [1_998, 1_000, 0])
def test_question_takes_few_steps_before_and_after_it(monkeypatch, ask):
    """A step for each clock tick would take minutes for a day of readings."""
    catalog, steps = read_catalog(SCHEMA), []
    step = OperatorGraph.step
    monkeypatch.setattr(OperatorGraph, "step", lambda self, tick: steps.append(tick) or step(self, tick))
    rows = [{"_tick": 2 * at, "_site": site, "temp": at} for at in range(1_000) for site in (1, 2)]
    statements = read_statements(["SELECT COUNT(*) AS n, MAX(tick) AS t FROM road.HISTORY"], catalog)
    recording = read_recording(catalog, {"road": rows}, statements)
    [update] = [update for updates in Replay(recording, statements, ask=ask).updates() for update in updates]
    assert update.tick.tolist() == [ask]
    assert len(steps) < 20
