"""Charts: blocks from the least to the greatest value, a line for each number of each group."""

import pytest

from basestation.shell.chart import Chart, sparkline

COLUMNS = [{"name": "site", "type": "integer"}, {"name": "mean", "type": "float"}]


def chart_of(*lines, columns=COLUMNS):
    chart = Chart()
    for line in ({"type": "schema", "columns": columns}, *lines):
        chart.add(line)
    return chart


def window(tick, **more):
    return {"type": "window", "tick": tick, "n": 1, "revision": 0, "coverage": {}} | more


@pytest.mark.parametrize(
    ("values", "blocks"),
    [([1], "▁"), ([1, 1, 1], "▁▁▁"), ([0, 7], "▁█"), ([-1, 0, 1], "▁▅█"), ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█")],
)
def test_blocks_go_from_the_least_to_the_greatest(values, blocks):
    assert sparkline(values, 8) == blocks


def test_more_values_than_columns_are_means_of_neighbours():
    assert sparkline([0, 0, 7, 7], 2) == "▁█"
    assert len(sparkline(list(range(1000)), 17)) == 17


def test_revision_replaces_the_rows_of_its_window():
    lines = (window(0, rows=[[3, 1.0]]), window(10, rows=[[3, 9.0]]),
             window(0, revision=1, removed=[[3, 1.0]], added=[[3, 5.0]]))  # fmt: skip
    assert chart_of(*lines).lines(40) == ["site 3 mean  5 ▁█ 9  last 9"]


def test_removed_tuple_is_drawn_no_more():
    tuples = [{"type": "tuple", "tick": 1, "weight": weight, "row": [3, 2.5]} for weight in (1, 1, -1)]
    assert chart_of(*tuples).lines(40) == ["site 3 mean  2.5 ▁ 2.5  last 2.5"]


def test_groups_are_strings_where_there_is_no_site():
    columns = [{"name": "kind", "type": "string"}, {"name": "n", "type": "integer"}]
    assert [line.split()[1] for line in chart_of(window(0, rows=[["a", 1], ["b", 2]]), columns=columns).lines(40)] == [
        "a",
        "b",
    ]


def test_only_so_many_groups_are_drawn():
    lines = chart_of(window(0, rows=[[site, 1.0] for site in range(30)])).lines(60)
    assert len(lines) == 21 and lines[-1] == "… and 10 more"


def test_nulls_and_strings_are_not_drawn():
    assert chart_of(window(0, rows=[[1, None]])).lines(40) == ["no numbers yet"]
