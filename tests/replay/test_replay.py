"""The Python function `replay`: its example, every form of input end to end, and no leaks."""

import doctest
import gc

import numpy as np
import pyarrow as pa
import pytest

import basestation.replay
from basestation.replay import DiagnosticError, InputError, NotExecutableError, replay
from tests.oracles.generate import case

SCHEMA = "road: sensed (site:integer, temp:integer, c:float {scale 1}) every 1 min at sites 1, 2\nkinds: stored (temp:integer)"
COLUMNS = {"_tick": [0, 0, 60, 60], "_site": [1, 2, 1, 2], "temp": [20, 21, 22, None], "c": [0.1, 0.2, 0.3, None]}


def test_docstring_example_runs():
    assert doctest.testmod(basestation.replay).failed == 0


def test_all_input_forms_give_equal_answers(tmp_path):
    (tmp_path / "road.csv").write_text("_tick,_site,temp,c\n0,1,20,0.1\n0,2,21,0.2\n60,1,22,0.3\n60,2,,\n")
    rows = [dict(zip(COLUMNS, line, strict=True)) for line in zip(*COLUMNS.values(), strict=True)]
    arrays = {name: np.array(values, object) for name, values in COLUMNS.items()}
    for road in (rows, COLUMNS, arrays, pa.table(COLUMNS), tmp_path / "road.csv"):
        result = replay(SCHEMA, {"road": road}, ["SELECT SUM(c) AS total FROM road [NOW]", "SELECT temp, c FROM road"])
        # Sums of multiples are turned into a double once.
        assert result.current(1) == {(0, 1): [(0.3,)], (60, 1): [(0.3,)]}
        assert [t.row for t in result.tuples(2)] == [(20, 0.1), (21, 0.2), (22, 0.3), (None, None)]
        assert result.to_arrow(2)["c"].to_pylist() == [0.1, 0.2, 0.3, None]
        assert [c.type for c in result.columns[2]] == ["integer", "float"] and result.ledger["road"]["accepted"] == 4


def test_replay_with_versions_statements_late_tuples():
    rows = [{"_tick": 0, "_site": 1, "temp": 20}, {"_tick": 0, "_site": 2, "_arrival": 200, "temp": 20}]
    kinds = [(0, [{"temp": 20}]), (200, [{"temp": 21}])]
    queries = ["SELECT COUNT(*) AS n FROM road [NOW], kinds [SCAN 1 MIN] WHERE road.temp = kinds.temp"]
    result = replay(SCHEMA, {"road": rows, "kinds": kinds}, [*queries, ("DELETE FROM road WHERE site = 1", 100)])
    first = [(w.revision, w.added, w.coverage) for w in result.windows() if w.tick == 0]
    assert [revision for revision, _, _ in first] == list(range(len(first))) and len(first) == 3
    assert first[0][1:] == ([(1,)], {"road": [1, 2]}) and result.current()[0, 1] == [(1,)] and result.until == 200


def test_replay_errors():
    with pytest.raises(DiagnosticError):
        replay(SCHEMA, {}, "SELECT tmep FROM road")
    with pytest.raises(DiagnosticError):
        replay("road: sensd (a:integer)", {}, "SELECT a FROM road")
    with pytest.raises(NotExecutableError):
        replay(SCHEMA, {}, "EXPLAIN SELECT temp FROM road")
    with pytest.raises(InputError, match="road, row 1, column temp: expected an integer, found `warm`"):
        replay(SCHEMA, {"road": [{"_tick": 0, "_site": 1, "temp": "warm"}]}, "SELECT temp FROM road")


def test_many_replays_leak_no_memory():
    def many():
        for seed in range(30):
            made = case(seed)
            try:
                replay(made.schema, made.inputs, made.queries)
            except DiagnosticError:
                pass
        gc.collect()
        return len(gc.get_objects())

    many()
    before = many()
    assert many() <= before + 50
