"""Aggregates from slices: groups that come and go, each in few of many slices, and tuples that are undone."""

import pytest

from tests.agreement.compare import replayed

SCHEMA = "r: sensed (v:integer) every 1 sec at sites 1"
MANY = 300


def test_group_without_tuples_leaves_every_window():
    readings = [{"_tick": tick, "_site": 1, "v": tick} for tick in range(MANY)]
    query = "SELECT v, COUNT(*) AS n FROM r [FROM NOW-99 TO NOW SLIDE 1 SEC] GROUP BY v"
    told = replayed(SCHEMA, {"r": readings}, [query, ("DELETE FROM r WHERE tick = 150", MANY - 1)])
    current = told.result.current(1)
    assert len(current) == MANY
    for (tick, _), rows in current.items():
        left = [(v, 1) for v in range(max(0, tick - 99), tick + 1) if v != 150]
        assert sorted(rows) == left


@pytest.mark.promise("exact-aggregates")
def test_undo_leaves_aggregates_with_shared_counts():
    readings = [{"_tick": tick, "_site": 1, "v": tick % 2} for tick in range(25)]
    query = (
        "SELECT v, COUNT(*) AS n, AVG(v) AS mean, SUM(v) AS total FROM r [FROM NOW-9 TO NOW SLIDE 10 SEC] GROUP BY v"
    )
    told = replayed(SCHEMA, {"r": readings}, [query, ("DELETE FROM r WHERE tick = 15", 22)])
    assert sorted(told.result.current(1)[20, 1]) == [(0, 5, 0.0, 0), (1, 4, 1.0, 4)]
