"""How far windows depend on tuples and on windows before them, and which reading is the last one."""

import random

import pytest

from basestation.history.archive_views import describe_extent
from basestation.history.window_reach import find_lead, find_reach
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_statements
from tests.history.in_spark import archive, compiled, named_views

SCHEMA = "a: pushed (v:integer)\nb: pushed (v:integer)\nt: stored (v:integer)\nlab: sensed (v:integer) every 2 sec at sites 1, 2\n"
WINDOW = "SELECT v FROM a [FROM NOW-9 TO NOW-2 SLIDE 5 SEC]"


@pytest.mark.parametrize(
    ("text", "reach", "lead"),
    [
        (WINDOW, (2, 9), 0),
        ("SELECT a.v FROM a [FROM NOW-3 TO NOW SLIDE 5 SEC], b [FROM NOW-7 TO NOW-1 SLIDE 5 SEC]", (0, 7), 0),
        ("SELECT a.v FROM a [FROM NOW-3 TO NOW SLIDE 5 SEC], b [FROM NOW-7 TO NOW-1 SLIDE 4 SEC]", (0, 12), 5),
        ("SELECT a.v FROM a [FROM NOW-3 TO NOW SLIDE 2 SEC], t [SCAN 8 SEC]", (0, 11), 8),
        (f"SELECT v FROM RSTREAM({WINDOW}) [FROM NOW-4 TO NOW SLIDE 3 SEC]", (2, 13), 4),
        (f"SELECT v FROM ISTREAM({WINDOW}) [FROM NOW-4 TO NOW SLIDE 3 SEC]", (2, 18), 9),
        (f"ISTREAM({WINDOW})", (2, 14), 5),
        (f"SELECT v FROM (SELECT v FROM DSTREAM({WINDOW}) WHERE v > 0) [FROM NOW-4 TO NOW SLIDE 3 SEC]", (2, 18), 9),
    ],
)
def test_windows_depend_on_tuples_so_far(text, reach, lead):
    [given] = read_statements([text], read_schema(SCHEMA))
    assert (find_reach(given.plan.root), find_lead(given.plan.root)) == (reach, lead)


@pytest.mark.promise("history-is-live")
def test_reading_stamped_too_far_ahead_is_not_the_last_one(tmp_path):
    """A mote whose clock is wrong sends readings of a day to come; one of its files has such readings alone."""
    catalog = read_schema(SCHEMA)
    rows = [{"_tick": at, "_site": 1, "v": at} for at in range(0, 40, 2)]
    rows += [{"_tick": tick, "_site": 2, "_arrival": 20, "v": 0} for tick in (22, 24, 60, 86_400 * 9)]
    archive(read_recording(catalog, {"lab": rows}), tmp_path, random.Random(1))
    extent = catalog.extents["lab"]
    assert describe_extent(tmp_path, "lab").last == 86_400 * 9
    assert describe_extent(tmp_path, "lab", ahead=extent.ahead).last == 38
    assert describe_extent(tmp_path, "lab", ahead=40).last == 60


def test_statement_of_windows_reads_no_reading():
    """A statement has the parts that it needs: those of a time grid need no file."""
    catalog = read_schema("p: pushed (v:integer)")
    [given] = read_statements(["SELECT v FROM p [FROM NOW TO NOW SLIDE 1 SEC]"], catalog)
    query = compiled(given, named_views(catalog, {}), 10)
    assert "e_p" in query.text and "e_p" not in query.windows and "sequence(0L, 10L, 1L)" in query.windows
