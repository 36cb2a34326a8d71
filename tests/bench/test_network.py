"""Network measurements report the runs made, and their tables show missed goals."""

import pytest

from basestation.planner.pushdown_policy import PushdownPolicy
from bench import network, network_table
from innet.placement.statistics import GUESS, CountedStatistics

MEAN = [network.QUERIES["aggregate"]]


@pytest.fixture(scope="module")
def small():
    return network.random_network(12, "30 sec")


@pytest.mark.promise("sampled-once")
def test_folding_in_the_network_saves_messages_and_energy(small):
    collected = network.ran(small, MEAN, PushdownPolicy.NOTHING, GUESS)
    folded = network.ran(small, MEAN, PushdownPolicy.EVERYTHING, CountedStatistics.of(collected.found.sampled))
    assert folded.messages < collected.messages and folded.frames_a_slice() == 1
    assert collected.frames_a_slice() is None
    assert folded.off() < 0.1 and collected.off() < 0.1
    assert 0 < folded.joules < collected.joules and 0 < folded.worst_days(small) < 10_000


def rows(**changed):
    """Return the rows of one query, and of the twenty."""
    figures = {"messages": 100, "bytes": 1_000, "energy": 2, "worst lifetime": 300, "readings heard of": 1}
    figures |= {f"{kind} off at most, {links}": 0.05 for kind in ("prediction", "guess") for links in network.LOSSES}
    figures |= {f"frames a hop and slice, {links}": 1 for links in network.LOSSES} | changed
    return [
        {"when": "now", "case": f"office, {query}, {kind}", "figure": figure, "value": str(value)}
        for query in ("collect", "twenty queries") for kind in network.KINDS for figure, value in figures.items()
    ]  # fmt: skip


def test_tables_show_the_measured_figures():
    told = network_table.lines(rows())
    assert "| office | collect | 100 → 100 | 1,000 → 1,000 | 2.0 → 2.0 | 300 → 300 |" in told
    assert "| office | collect | 5.0% | 10% | 5.0% | 20% | 5.0% | 5.0% | 5.0% | 5.0% |" in told
    assert not any("missed" in line for line in told) and network_table.lines([]) == []


@pytest.mark.promise("sampled-once")
@pytest.mark.parametrize(
    "changed", [{"prediction off at most, no loss": 0.11}, {"prediction off at most, a fifth lost": 0.3},
                {"frames a hop and slice, a fifth lost": 1.01}],
)  # fmt: skip
def test_tables_show_missed_goals(changed):
    assert sum("missed" in line for line in network_table.lines(rows(**changed))) == 2


def test_twenty_queries_dearer_than_one_for_all_miss_the_goal():
    dear = [
        row | {"value": "121"} if "twenty" in row["case"] and row["figure"] == "messages" else row for row in rows()
    ]
    [line] = [line for line in network_table.lines(dear) if "missed" in line]
    assert "twenty overlapping queries take 1.21 times the messages" in line
