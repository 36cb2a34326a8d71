"""Help for people who come from another SQL: functions under other names, clocks, aliases, LIMIT."""

import pytest

from basestation.planner.functions import OTHER_NAMES
from basestation.replay.statements import read_catalog, read_statements
from gateway.diagnostics import DiagnosticError

CATALOG = read_catalog("road: sensed (site:integer, temp:integer) every 1 min at sites 1, 2")


def helps(query):
    with pytest.raises(DiagnosticError) as caught:
        read_statements([query], CATALOG)
    return [diagnostic.help for diagnostic in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT MEAN(temp) FROM road [NOW]", "it is called AVG here: AVG(x)"),
        (
            "SELECT percentile(temp, 0.9) FROM road [NOW]",
            "it is called QUANTILE here: QUANTILE(x, q) with q from 0 to 1",
        ),
        ("SELECT NOW() FROM road", "`tick` is the time of a tuple"),
        ("SELECT HOUR(tick) FROM road", "`tick / 3600 % 24` is the hour in UTC"),
        ("SELECT EXTRACT(tick) FROM road", "SLIDE 1 DAY makes windows of days"),
        ("SELECT AVGG(temp) FROM road [NOW]", "did you mean `AVG`?"),
        ("SELECT temp FROM road [NOW] LIMIT 5", "FROM extent.HISTORY … ORDER BY … LIMIT …"),
        ("SELECT temp FROM road [NOW] ORDER BY temp", "sort or cut where it is shown"),
    ],
)
def test_help_says_what_to_write_instead(query, words):
    assert any(help and words in help for help in helps(query))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT temp * 2 AS d FROM road WHERE d > 5",
        "SELECT site, AVG(temp) AS d FROM road [NOW] GROUP BY site HAVING d > 3",
        "SELECT site, temp AS d FROM road [NOW] GROUP BY d",
    ],
)
def test_alias_in_another_clause_is_explained(query):
    assert "`d` is an alias of SELECT, which this clause cannot see: write the expression itself" in helps(query)


def test_every_other_name_leads_to_a_function_that_exists():
    for name in OTHER_NAMES:
        [help] = {help for help in helps(f"SELECT {name}(temp) FROM road [NOW]") if help}
        assert help.startswith(f"it is called {OTHER_NAMES[name]} here: {OTHER_NAMES[name]}(")


def test_hour_of_the_day_is_what_the_help_says():
    from basestation.replay import replay

    rows = [{"_tick": tick, "_site": 1, "temp": 0} for tick in (0, 3600, 86_400 + 7_260)]
    result = replay(
        "road: sensed (temp:integer) every 1 min at sites 1",
        {"road": rows},
        "SELECT tick / 3600 % 24 AS h, tick / 60 % 60 AS m, tick / 86400 AS d FROM road",
    )
    assert [tuple.row for tuple in result.tuples()] == [(0, 0, 0), (1, 0, 0), (2, 1, 1)]
