"""Aggregates from slices where each group is in few of many slices: groups that come, go and stay away."""

from tests.agreement.compare import replayed

SCHEMA = "r: sensed (v:integer) every 1 sec at sites 1"
MANY = 300


def test_a_group_that_lost_its_only_tuple_is_gone_from_every_window():
    readings = [{"_tick": tick, "_site": 1, "v": tick} for tick in range(MANY)]
    query = "SELECT v, COUNT(*) AS n FROM r [FROM NOW-99 TO NOW SLIDE 1 SEC] GROUP BY v"
    told = replayed(SCHEMA, {"r": readings}, [query, ("DELETE FROM r WHERE tick = 150", MANY - 1)])
    current = told.result.current(1)
    assert len(current) == MANY
    for (tick, _), rows in current.items():
        left = [(v, 1) for v in range(max(0, tick - 99), tick + 1) if v != 150]
        assert sorted(rows) == left
