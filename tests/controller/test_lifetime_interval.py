"""LIFETIME becomes ACQUIRE EVERY: a plan bound again from its syntax tree equals one bound from text."""

import pytest

from basestation.controller.lifetime import with_interval
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema

CATALOG = read_schema(
    "road: sensed (site:integer, temp:float {scale 2}, vibration:integer) every 5 sec at sites 1, 2 wait 5 sec\n"
    "plan: stored (site:integer, name:string) from 'plan.csv'\n"
)
QUERIES = [
    "SELECT site, temp FROM road",
    "SELECT AVG(temp) FROM road [NOW]",  # its slide is the interval
    "SELECT AVG(temp) FROM road [FROM NOW-59 SEC TO NOW]",
    "SELECT site, MAX(temp) AS m FROM road [FROM NOW-9 TO NOW SLIDE 1 MIN] WHERE vibration > 3 GROUP BY site",
    "SELECT a.temp, b.name FROM road [NOW] AS a, plan [SCAN 10 MIN] AS b WHERE a.site = b.site",
    "SELECT t FROM (SELECT temp AS t FROM road WHERE site = 1) AS x",
    "ISTREAM(SELECT temp FROM road [FROM NOW-5 TO NOW SLIDE 10 SEC])",
]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("before", ["", " ACQUIRE EVERY 10 SEC"])
def test_interval_from_syntax_tree_equals_interval_from_text(text, before):
    [plan] = bind_text(f"{text}{before} LIFETIME 100 DAY", CATALOG)
    [expected] = bind_text(f"{text} ACQUIRE EVERY 45000 MS", CATALOG)
    found = with_interval(plan, 45, 1_000)
    assert (found.root, found.options, found.extensions) == (expected.root, expected.options, expected.extensions)
    assert plan.options.lifetime == 100 * 86_400
