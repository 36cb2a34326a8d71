"""Completion offers the extents of the catalog, and the columns of the FROM that the cursor is in."""

import pytest

from basestation.planner.catalog import read_schema
from basestation.planner.completion import complete

CATALOG = read_schema(
    """
road: sensed (site:integer, temp:float {scale 1, unit 'Cel'}) every 1 min at sites 1, 2
traffic: pushed (weight:integer) late drop
kinds: stored (name:string, most:integer) from 'kinds.csv'
""",
    "test",
)


def offered(text):
    before, _, after = text.partition("|")
    return complete(before + after, len(before), CATALOG)


def texts(text, kind):
    return [item.text for item in offered(text).items if item.kind == kind]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT | FROM road", ["index", "site", "temp", "tick"]),
        ("SELECT | FROM road [NOW]", ["site", "temp"]),
        ("SELECT te| FROM road", ["temp"]),
        ("SELECT t.| FROM road, traffic [FROM NOW-9 TO NOW SLIDE 1 ROW] t", ["weight"]),
        ("SELECT site FROM road WHERE temp > (SELECT | FROM kinds)", ["most", "name"]),
        ("SELECT x.| FROM (SELECT temp AS warm, site FROM road) x", ["site", "warm"]),
        ("SELECT | FROM RSTREAM(SELECT * FROM road [NOW] UNION ALL SELECT 1, 2 FROM kinds) [FROM NOW-1 TO NOW SLIDE 1 ROW]",
         ["site", "temp"]),
        ("SELECT |", ["index", "most", "name", "site", "temp", "tick", "weight"]),
        ("DELETE FROM kinds WHERE |", ["most", "name"]),
        ("SELECT temp FROM road JOIN kinds ON |", ["index", "most", "name", "site", "temp", "tick"]),
        ("SELECT | FROM nowhere", []),
    ],
)  # fmt: skip
def test_columns_are_those_of_the_from_around_the_cursor(text, columns):
    assert texts(text, "column") == columns


def test_extents_stand_with_their_kind_and_columns():
    found = offered("SELECT 1 FROM |").items
    assert ("road", "extent", "sensed (site, temp)") in [(item.text, item.kind, item.detail) for item in found]
    assert texts("SELECT 1 FROM tr|", "extent") == ["traffic"]


def test_column_has_its_type_and_unit():
    [item] = offered("SELECT te| FROM road").items
    assert (item.text, item.detail) == ("temp", "float, Cel")


def test_functions_begin_a_call_and_show_their_use():
    assert {item.text: item.detail for item in offered("SELECT QU| FROM road").items} == {
        "QUANTILE(": "QUANTILE(x, q) with q from 0 to 1"
    }
    assert texts("SELECT CAST(1 AS |", "type") == ["float", "integer", "string", "time"]


def test_json_has_the_start_and_each_word():
    assert offered("SELECT site FROM road WHE|").as_json() == {
        "start": 22, "completions": [{"text": "WHERE", "kind": "keyword", "detail": ""}],
    }  # fmt: skip
