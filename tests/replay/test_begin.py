"""A replay begins at its data: a dated recording answers as the same recording at tick 0, in the same memory."""

import csv
import io
import tracemalloc

import pytest

from basestation.cli import replay as verb
from basestation.replay.driver import Replay
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_catalog, read_statements
from gateway.cli import parser_of

SCHEMA = "road: sensed (site:integer, temp:integer) every 1 min at sites 1, 2\nhits: pushed (v:integer)\n"
DATED = 1_767_225_600
"""The second in which 2026 begins, a whole number of days."""


@pytest.fixture
def ask(tmp_path, capsys):
    """ask(shift, query, *arguments): what the command prints as CSV for a recording that begins at `shift`."""
    (tmp_path / "schema").write_text(SCHEMA)

    found = []

    def answer(shift, query, *arguments, code=0):
        rows = [(shift + 60 * i, site, 7 * i % 11) for i in range(30) for site in (1, 2)]
        (tmp_path / "road.csv").write_text("_tick,_site,temp\n" + "".join(f"{t},{s},{v}\n" for t, s, v in rows))
        hits = "".join(f"{shift + 13 * i},{i}\n" for i in range(100))
        (tmp_path / "hits.csv").write_text(f"_arrival,v\n{hits}")
        inputs = [part for name in ("road", "hits") for part in ("--input", f"{name}={tmp_path}/{name}.csv")]
        given = ["--schema", f"{tmp_path}/schema", *inputs, "-o", "csv", *arguments, query]
        assert verb.run(parser_of("replay", verb).parse_args(given)) == code
        printed = capsys.readouterr()
        found[:] = [printed.err]
        rows = list(csv.DictReader(io.StringIO(printed.out)))
        return [{name: value for name, value in row.items() if name != "_time"} for row in rows]

    answer.errors = lambda: found[0]
    return answer


def moved(rows, shift):
    return [row | {"_tick": str(int(row["_tick"]) + shift)} for row in rows]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT site, temp FROM road WHERE temp > 5",
        "SELECT site, AVG(temp) AS a FROM road [FROM NOW-4 MIN TO NOW SLIDE 5 MIN] GROUP BY site",
        "SELECT COUNT(*) AS n FROM hits [FROM NOW-1 MIN TO NOW SLIDE 30 SEC]",
        "SELECT h.v FROM hits [FROM NOW-1 MIN TO NOW SLIDE 1 MIN] h, road [NOW] r WHERE r.temp = h.v",
        "SELECT MAX(temp) AS m FROM road [UNBOUNDED SLIDE 10 MIN]",
        "DSTREAM(SELECT temp FROM road [NOW])",
        "SELECT SUM(v) AS s FROM hits [FROM NOW-4 TO NOW SLIDE 5 ROWS]",
    ],
)
def test_dated_recording_answers_as_one_at_tick_0(ask, query):
    at_zero = ask(0, query)
    assert at_zero and ask(DATED, query) == moved(at_zero, DATED)


def test_windows_that_reach_before_the_data_are_named(ask):
    note = "query 1: windows before tick {} reach back before the data\n"
    ask(660, "SELECT AVG(temp) AS a FROM road [FROM NOW-9 MIN TO NOW SLIDE 5 MIN]")
    assert note.format(1200) in ask.errors()
    ask(660, "SELECT AVG(temp) AS a FROM road [FROM NOW-4 MIN TO NOW SLIDE 5 MIN]")
    assert "reach back" not in ask.errors()
    ask(DATED, "SELECT AVG(temp) AS a FROM road [FROM NOW-9 MIN TO NOW SLIDE 5 MIN]", "--time", "utc")
    assert "query 1: windows before 2026-01-01T00:09:00Z reach back" in ask.errors()


def test_from_and_until_take_ticks_and_times(ask):
    query = "SELECT temp FROM road [NOW]"
    assert [row["_tick"] for row in ask(600, query, "--from", "720", "--until", "800")] == ["720"] * 2 + ["780"] * 2
    between = ask(DATED, query, "--from", "2026-01-01T00:10:00Z", "--until", "2026-01-01T01:11:00+01:00")
    assert {int(row["_tick"]) - DATED for row in between} == {600, 660}
    assert ask(600, query, "--from", "0") == ask(600, query)
    assert ask(600, query, "--until", "30") == []


@pytest.mark.parametrize("wrong", ["noon", "2026-13-01", "-5", "+5 rows"])
def test_wrong_time_is_refused(ask, wrong):
    with pytest.raises(SystemExit) as left:
        ask(0, "SELECT temp FROM road", f"--from={wrong}")
    assert left.value.code == 2


def test_time_without_zone_needs_the_option(ask):
    query = "SELECT temp FROM road [NOW]"
    ask(DATED, query, "--from", "2026-01-01T00:10:00", code=2)
    assert "`2026-01-01T00:10:00` has no zone" in ask.errors()
    answers = ask(DATED, query, "--from", "2026-01-01T01:10:00", "--until=2026-01-01T01:11", "--zone", "Europe/Berlin")
    assert {int(row["_tick"]) - DATED for row in answers} == {600, 660}


def test_offsets_count_from_either_end(ask):
    def ticks(*arguments):
        return sorted({int(row["_tick"]) for row in ask(600, "SELECT temp FROM road [NOW]", *arguments)})

    assert ticks("--from=+2min", "--until", "+200s") == [720, 780]
    assert ticks("--from", "-15min") == ticks("--from=-15min")
    assert ticks("--from=-15min") == [
        1440,
        1500,
        1560,
        1620,
        1680,
        1740,
        1800,
        1860,
        1920,
        1980,
        2040,
        2100,
        2160,
        2220,
        2280,
        2340,
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--from", "700", "--until", "650"), "--from is tick 700, after the last clock tick 650"),
        (("--from", "9999"), "--from is tick 9999, after the last clock tick 2340"),
        (("--ask", "2341"), "--ask is tick 2341, expected a tick of the replay: 600 to 2340"),
        (("--from", "700", "--ask", "699"), "--ask is tick 699, expected a tick of the replay: 700 to 2340"),
    ],
)
def test_time_outside_the_replay_is_refused(ask, arguments, words):
    assert ask(600, "SELECT COUNT(*) AS n FROM road.HISTORY", *arguments, code=2) == []
    assert words in ask.errors()


def peak_of(shift):
    catalog = read_catalog(SCHEMA)
    rows = [{"_tick": shift + 60 * i, "_site": site, "temp": i} for i in range(1_500) for site in (1, 2)]
    statements = read_statements(["SELECT AVG(temp) FROM road [FROM NOW-9 MIN TO NOW SLIDE 10 MIN]"], catalog)
    recording = read_recording(catalog, {"road": rows}, statements)
    tracemalloc.start()
    count = sum(
        len(update)
        for updates in Replay(recording, statements, begin=recording.begin()).updates()
        for update in updates
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return count, peak


def test_dated_recording_takes_memory_of_one_at_tick_0():
    peak_of(0)  # what is imported at first use is not counted
    (count, least), (dated_count, peak) = peak_of(0), peak_of(DATED)
    assert dated_count == count and peak < 1.2 * least


def test_recording_begins_at_first_delivery_or_tick():
    catalog = read_catalog(SCHEMA + "kinds: stored (n:integer)\n")
    hits = [{"_arrival": 9, "_tick": 12, "v": 1}, {"_arrival": 7, "v": 2}]
    road = [{"_tick": 60, "_site": 1, "temp": 1, "_arrival": 65}]
    assert read_recording(catalog, {"hits": hits, "road": road, "kinds": [{"n": 1}]}).begin() == 7
    assert read_recording(catalog, {"road": road}).begin() == 60
    assert read_recording(catalog, {"kinds": [(30, [{"n": 1}])]}).begin() == 30
    assert read_recording(catalog, {}).begin() == 0
    assert read_recording(catalog, {"hits": [{"_arrival": 5, "_tick": -3, "v": 1}]}).begin() == 0


def test_one_off_query_is_asked_at_end_or_at_given_time(ask):
    query = "SELECT COUNT(*) AS n FROM road.HISTORY"
    [row] = ask(DATED, query)
    assert (int(row["_tick"]) - DATED, row["n"]) == (1740, "60")
    [row] = ask(DATED, query, "--ask", str(DATED + 600))
    assert (int(row["_tick"]) - DATED, row["n"]) == (600, "22")
    [row] = ask(DATED, query, "--ask", "2026-01-01T00:00:00Z")
    assert (int(row["_tick"]) - DATED, row["n"]) == (0, "2")
