"""Answers: the sum of updates, with revisions and retractions, as rows, tables and HTML."""

import pytest

from moteloom.client import Answer, Update

COLUMNS = [{"name": "site", "type": "integer"}, {"name": "level", "type": "float", "scale": 2}]
TIME = "2026-11-19T08:00:00Z"


def update(**line):
    return Update(
        {"number": 1, "tick": 0, "time": TIME, "n": 1, "coverage": {"a": [1, 2], "b": None}, "revision": 0} | line, "e"
    )


def answer(*lines, columns=COLUMNS):
    return Answer(columns, [update(**line) for line in lines])


def test_revision_replaces_rows_of_its_window():
    found = answer(
        {"type": "window", "rows": [[1, 2.5], [2, 3.5]]},
        {"type": "window", "revision": 1, "removed": [[1, 2.5]], "added": [[1, 9.5]], "coverage": {"a": [2, 2]}},
    )
    assert sorted(row.values for row in found.rows) == [(1, 9.5), (2, 3.5)]
    assert {row.used_and_due for row in found.rows} == {(2, 2)}


def test_retracted_tuple_is_gone_and_equal_ones_stay():
    line = {"type": "tuple", "row": [1, 2.5]}
    assert len(answer({"weight": 1} | line, {"weight": 1} | line, {"weight": -1} | line)) == 1


def test_windows_of_one_tick_and_loop_are_apart():
    found = answer(
        {"type": "window", "n": 1, "t": 5, "rows": [[1, 1.0]]}, {"type": "window", "n": 2, "t": 6, "rows": [[2, 2.0]]}
    )
    assert len(found) == 2


def test_marks_and_ends_are_no_rows():
    found = answer({"type": "epoch"}, {"type": "mark", "value": 3}, {"type": "ended", "code": "SN511", "message": "x"})
    assert len(found) == 0 and found.to_arrow().num_rows == 0 and "0 rows" in found._repr_html_()


def test_table_has_types_and_nulls():
    table = answer({"type": "window", "rows": [[1, None]], "coverage": {"b": None}}).to_arrow()
    assert table.to_pylist()[0] | {"_time": None} == {
        "_time": None,
        "_used": None,
        "_due": None,
        "site": 1,
        "level": None,
    }
    assert [str(kind) for kind in table.schema.types] == ["timestamp[ms, tz=UTC]", "int64", "int64", "int64", "double"]


@pytest.mark.parametrize("kind", ["integer", "float", "string", "time"])
def test_every_type_has_a_column(kind):
    value = "<b>" if kind == "string" else 3
    found = answer({"type": "window", "rows": [[value]]}, columns=[{"name": "x", "type": kind}])
    assert found.to_arrow()["x"].to_pylist() == [value] and "<b>" not in found._repr_html_()


def test_columns_of_one_name_get_numbers():
    columns = [{"name": "a", "type": "integer"}] * 3
    assert list(answer({"type": "window", "rows": [[1, 2, 3]]}, columns=columns).to_dicts()[0])[3:] == [
        "a",
        "a_2",
        "a_3",
    ]
