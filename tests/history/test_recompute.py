"""`moteloom history recompute`: the differences are those between two replays, of what had arrived and of all."""

import random
import shlex
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from basestation.archive.layout import extent_folder
from basestation.history.answer import prepare
from basestation.history.differences import CHANGE, _cancel_roundings, compare_answers, no_differences
from basestation.history.late_arrivals import LateArrivals, find_late_arrivals, list_runs
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_statements
from basestation.station.history_question import read_question
from basestation.station.recomputation import plan_recomputation
from gateway.cli import main
from tests.docs.pages import DOCS, blocks
from tests.history.in_spark import archive, corrections_of, engine_answers

WAIT = 5
CATALOG_TEXT = (
    f"road: sensed (site:integer, temp:integer, gust:float {{scale 1}}) every 10 sec at sites 1..3 wait {WAIT} sec "
    "late revise by 100 sec\n"
    "heat: pushed (v:float, name:string) wait 20 sec late revise by 1 hour\n"
    "hall: stored (site:integer, room:string)"
)
CATALOG = read_schema(CATALOG_TEXT)
HALL = [{"site": 1, "room": "north"}, {"site": 2, "room": None}]
WINDOWS = (
    "SELECT site, COUNT(*) AS n, SUM(temp) AS s FROM road [FROM NOW-25 SEC TO NOW-5 SEC SLIDE 10 SEC] GROUP BY site"
)
QUERIES = (
    WINDOWS,
    "SELECT COUNT(*) AS n, AVG(gust) AS g FROM road [FROM NOW-30 SEC TO NOW SLIDE 20 SEC] HAVING COUNT(*) > 2",
    "SELECT a.site, b.temp FROM road [NOW] a, road [FROM NOW-20 SEC TO NOW-10 SEC SLIDE 10 SEC] b WHERE a.temp = b.temp",
    "SELECT a.site, b.temp FROM road [NOW] a, road [FROM NOW-10 SEC TO NOW SLIDE 60 SEC] b WHERE a.site = b.site",
    "SELECT r.temp, t.room FROM road [NOW] r, hall [SCAN 60 SEC] t WHERE r.site = t.site",
    "SELECT name, COUNT(*) AS n, SUM(v) AS s FROM heat [FROM NOW-30 SEC TO NOW SLIDE 10 SEC] GROUP BY name",
    "SELECT temp FROM road WHERE temp > 1",
    "SELECT MAX(temp) AS m, COUNT(*) AS n FROM road [UNBOUNDED SLIDE 30 SEC]",
    "ISTREAM(SELECT site, temp FROM road [FROM NOW-20 SEC TO NOW SLIDE 10 SEC])",
    "SELECT COUNT(*) AS n FROM road FOR (t = ST; t < ST + 200; t += 20) { WindowIs(road, t - 15, t); }",
)
REVISION = "REVISE road SET temp = 9 WHERE temp = 3"


def recorded(rng, epochs=30):
    """Readings of which some are missing and some late."""
    rows = [
        {"_tick": tick, "_site": site, "_arrival": tick + rng.choice((0, 0, 0, 1, 4, 30, 90, 170)), "temp": rng.randrange(5),
         "gust": rng.randrange(30) / 10}
        for tick in range(0, 10 * epochs, 10) for site in (1, 2, 3) if rng.random() < 0.9
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row["_arrival"], row["_tick"]))


def heats(rng, epochs=30):
    """Pushed tuples, some of them late, some equal."""
    rows = [
        {"_tick": tick, "_arrival": tick + rng.choice((0, 0, 3, 60, 200)), "v": rng.choice((0.25, 0.5, 1.5, None)), "name": rng.choice(("a", None))}
        for tick in range(0, 10 * epochs, 5)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row["_arrival"], row["_tick"]))


def answered(rows, statements, until):
    """By (tick, number) of a window, or tick of a tuple, the bag of its rows, from a replay of rows and statements up to a tick."""
    recording = read_recording(CATALOG, rows | {"hall": HALL})
    given = read_statements(statements, CATALOG)
    current = engine_answers(recording, given, until).current(given[0].number)
    if isinstance(current, dict):
        return {key: Counter(of) for key, of in current.items()}
    found = {}
    for tick, _, row in current:
        found.setdefault((tick, 1), Counter())[row] += 1
    return found


def last_arrival(rows):
    return max(row["_arrival"] for of in rows.values() for row in of)


def expected_changes(query, rows, since, corrected_at):
    """(tick, number, change, row) of each row that windows answered by `since` have now and had not, or the reverse."""
    known = {name: [row for row in of if row["_arrival"] <= since] for name, of in rows.items()}
    last, wait = last_arrival(rows), 20 if "heat" in query else WAIT
    then = answered(known, [(query, 0), *([(REVISION, corrected_at)] if corrected_at <= since else [])], since)
    now = answered(rows, [(query, 0), (REVISION, corrected_at)], last)
    found = Counter()
    for key in then.keys() | now.keys():
        tick, n, *_ = key
        if tick <= since - wait:
            a, b = (of.get(key, Counter()) for of in (then, now))
            found.update({(tick, n, "removed", row): count for row, count in (a - b).items()})
            found.update({(tick, n, "added", row): count for row, count in (b - a).items()})
    return found


def types_of(table):
    return [(field.name, field.type) for field in table.schema]


def found_changes(table):
    names = [name for name in table.column_names if name not in ("_tick", "_n", "_t", CHANGE)]
    return Counter(
        (row["_tick"], row.get("_n", 1), row[CHANGE], tuple(row[name] for name in names)) for row in table.to_pylist()
    )


@pytest.mark.spark
@pytest.mark.timeout(1_800)
@pytest.mark.promise("history-is-live", "late-readings")
def test_differences_are_those_of_two_replays(spark, tmp_path, rng, counts, tally):
    kinds = Counter()
    for run in range(counts(1, 5)):
        root, rows, corrected_at = (
            tmp_path / str(run),
            {"road": recorded(rng), "heat": heats(rng)},
            rng.randrange(100, 400),
        )
        recording = read_recording(CATALOG, rows | {"hall": HALL})
        statements = read_statements([(WINDOWS, 0), (REVISION, corrected_at)], CATALOG)
        last, tables = last_arrival(rows), recording.versions
        archive(recording, root, rng, corrections_of(recording, statements, last))
        for query in (WINDOWS, *rng.sample(QUERIES[1:], counts(2, len(QUERIES) - 1))):
            since = rng.randrange(*((100, 250) if query is WINDOWS else (60, last)))  # the first one has late rows
            asked = read_question(root, CATALOG, tables, query, begin=0, until=last)
            made = plan_recomputation(asked, since)
            found = Counter()
            if not made.is_empty:
                table = compare_answers(spark, root, asked.plan, tables, made.question.span, since)
                found = found_changes(table)
                none = no_differences(asked.plan, prepare(asked.plan, tables, asked.span))
                assert types_of(none) == types_of(table), query
            assert found == expected_changes(query, rows, since, corrected_at), (run, query, since, corrected_at)
            kinds["with differences" if found else "without"] += 1
    tally("recomputations", kinds)
    assert kinds["with differences"]


def one_late(folder):
    """Of twenty epochs, the reading of site 2 at tick 50 arrives at tick 170."""
    rows = [
        {"_tick": tick, "_site": site, "_arrival": tick, "temp": site, "gust": 0.5}
        for tick in range(0, 200, 10)
        for site in (1, 2)
    ]
    rows[11] |= {"_arrival": 170}
    assert (rows[11]["_tick"], rows[11]["_site"]) == (50, 2)
    archive(read_recording(CATALOG, {"road": sorted(rows, key=lambda row: row["_arrival"])}), folder, random.Random(1))


def test_late_arrivals_are_counted_by_extent(tmp_path):
    one_late(tmp_path)
    road = CATALOG.extents["road"]
    assert find_late_arrivals(tmp_path, road, 100, (0, 95)) == LateArrivals(0, 0, -1, (), 1), (
        "it lies beyond the horizon"
    )
    road = replace(road, horizon=120)
    late = LateArrivals(1, 50, 50, ("1970-01-01",))
    assert find_late_arrivals(tmp_path, road, 100, (0, 95)) == late
    assert find_late_arrivals(tmp_path, road, 170, (0, 165)) is None
    assert find_late_arrivals(tmp_path, road, 100, (0, 49)) is None
    assert find_late_arrivals(tmp_path, road, 100, (51, 95)) is None
    for file in extent_folder(tmp_path, "road").rglob("*.parquet"):  # no statistics say which row groups to read
        pq.write_table(pq.read_table(file, partitioning=None), file, write_statistics=False)
    assert find_late_arrivals(tmp_path, road, 100, (0, 95)) == late


def test_table_without_differences_has_the_types_of_the_query(tmp_path):
    one_late(tmp_path)
    text = "SELECT site, gust, AVG(temp) AS mean FROM road [NOW] GROUP BY site, gust"
    loops = " ".join(f"FOR (t = ST; t < ST + 60; t += 20) {{ WindowIs({name}, t - 15, t); }}" for name in "ab")
    expected = {
        text: ["int64", "int64", "string", "int64", "double", "double"],
        f"SELECT a.site FROM road AS a, road AS b {loops}": ["int64", "int64", "list<item: int64>", "string", "int64"],
    }
    for query, kinds in expected.items():
        asked = read_question(tmp_path, CATALOG, {"hall": [(0, {})]}, query, begin=0, until=100)
        found = no_differences(asked.plan, prepare(asked.plan, asked.tables, asked.span))
        assert [str(field.type) for field in found.schema] == kinds, (query, found.schema)


def test_runs_of_days_are_joined():
    assert list_runs(["2026-10-31", "2026-11-01", "2026-11-02", "2026-11-04"]) == "2026-10-31 to 2026-11-02, 2026-11-04"


@pytest.mark.parametrize(
    ("query", "span"),
    [
        (WINDOWS, (55, 75)),
        ("SELECT r.site, t.room FROM road [NOW] r, hall [SCAN 60 SEC] t WHERE r.site = t.site", (0, 110)),
        ("SELECT a.site, b.temp FROM road [NOW] a, road [FROM NOW-10 SEC TO NOW SLIDE 60 SEC] b", (0, 120)),
        ("SELECT site, temp FROM road WHERE temp > 1", (0, 145)),
        ("SELECT MAX(temp) AS m FROM road [UNBOUNDED SLIDE 30 SEC]", (0, 145)),
        ("ISTREAM(SELECT temp FROM road [FROM NOW-20 SEC TO NOW SLIDE 10 SEC])", (0, 145)),
        (f"{WINDOWS} FOR 90 SEC", (0, 145)),
    ],
    ids=("windows", "table", "two slides", "stream", "landmark", "converter", "for"),
)
def test_only_windows_that_may_hold_late_arrivals_are_computed(tmp_path, query, span):
    """The reading of tick 50 is in the windows at 55 to 75; the last window that was answered by tick 150 is at 145."""
    one_late(tmp_path)
    catalog = read_schema(CATALOG_TEXT.replace("by 100 sec", "by 1 hour"))
    made = plan_recomputation(read_question(tmp_path, catalog, {"hall": [(0, {})]}, query), 150)
    assert (made.question.span.start, made.question.span.until) == span


@pytest.mark.parametrize(("begin", "until", "rows"), [(75, 200, 1), (76, 200, 0), (0, 55, 1), (0, 54, 0)])
def test_late_rows_that_no_window_holds_are_not_counted(tmp_path, begin, until, rows):
    """The reading of tick 50 is in the windows at 55 to 75."""
    one_late(tmp_path)
    catalog = read_schema(CATALOG_TEXT.replace("by 100 sec", "by 1 hour"))
    asked = read_question(tmp_path, catalog, {"hall": [(0, {})]}, WINDOWS, begin=begin, until=until)
    made = plan_recomputation(asked, 150)
    assert [each.rows for each in made.late.values()] == [1] * rows and made.is_empty == (rows == 0)
    stream = read_question(tmp_path, catalog, {"hall": [(0, {})]}, "SELECT temp FROM road", begin=60)
    assert plan_recomputation(stream, 150).late["road"].rows == 1, "of a stream all are counted"


def history(folder, *arguments):
    (folder / "schema.sneeql").write_text(
        f"road: sensed (site:integer, temp:integer, gust:float {{scale 1}}) every 10 sec at sites 1..3 wait {WAIT} sec\n"
    )
    return main(["history", "--data", str(folder), "--schema", str(folder / "schema.sneeql"), *arguments])


@pytest.mark.spark
@pytest.mark.promise("history-is-live", "pages-are-true")
def test_command_prints_what_a_late_reading_changed(spark, tmp_path, monkeypatch, capsys):
    @contextmanager
    def open_spark(args):
        yield spark

    monkeypatch.setattr("basestation.cli.history_recompute.open_spark", open_spark)
    one_late(tmp_path)
    [example] = blocks(DOCS / "history.md", "text")
    command, _, shown = example.text.strip().partition("\n")
    given = shlex.split(command)[3:]
    assert history(tmp_path, *given) == 0
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert [lines[0], *said.out.splitlines(), lines[-1].partition(", after")[0]] == shown.splitlines()
    assert history(tmp_path, *given, "-o", "csv") == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[:2] == ["_time,_tick,_change,site,n", "1970-01-01T00:00:50Z,50,removed,2,1"]
    (tmp_path / "query.sneeql").write_text(given[1])
    assert history(tmp_path, given[0], "-f", str(tmp_path / "query.sneeql"), *given[2:], "-o", "csv") == 0
    assert capsys.readouterr().out == printed


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize(("arguments", "code", "says"), [
    (["recompute", WINDOWS], 2, "expected `moteloom history recompute QUERY --since TIME`"),
    (["recompute", "--since", "100"], 2, "expected `moteloom history recompute QUERY --since TIME`"),
    (["recompute", WINDOWS, "-f", "query", "--since", "100"], 2, "or -f FILE in place of the query"),
    (["recompute", "-f", "no such file", "--since", "100"], 3, "no such file"),
    (["recompute", WINDOWS, "--since", "100", "--plot", "x.svg"], 2, "prints differences"),
    (["recompute", WINDOWS, "--since", "100", "-o", "parquet"], 2, "--out FILE"),
    (["recompute", "SELECT COUNT(*) FROM road.HISTORY", "--since", "100"], 2, "one-off"),
    (["recompute", WINDOWS, "--since", "2"], 2, "no window from tick 0 on was answered by tick 2"),
    (["recompute", "SELECT tmep FROM road [NOW]", "--since", "100"], 2, "did you mean `temp`"),
    (["ls", "--since", "-30d"], 2, "--since is of `recompute`"),
    ([WINDOWS, "--since", "100"], 2, "--since is of `recompute`"),
    ([], 2, "expected one query, or -f FILE"),
    (["ls", "-f", "query"], 2, "expected one query, or -f FILE"),
])  # fmt: skip
def test_recompute_says_what_it_expects_before_spark_starts(tmp_path, monkeypatch, capsys, arguments, code, says):
    def start(*_, **__):
        raise AssertionError("Spark was started")

    monkeypatch.setattr("basestation.archive.spark.session.start_session", start)
    one_late(tmp_path)
    assert history(tmp_path, *arguments) == code
    said = capsys.readouterr()
    assert says in said.err and not said.out


@pytest.mark.parametrize(
    ("until", "says"),
    [
        (180, "0 rows of windows up to 1970-01-01T00:02:55Z differ"),
        (49, "0 rows of windows up to 1970-01-01T00:00:44Z differ"),
    ],
)
def test_no_difference_is_an_empty_answer(tmp_path, monkeypatch, capsys, until, says):
    """Which replaces the file of an earlier one."""
    monkeypatch.setattr("basestation.archive.spark.session.start_session", None)
    one_late(tmp_path)
    (tmp_path / "out.csv").write_text("of yesterday")
    arguments = "recompute", WINDOWS, "--since", str(until), "-o", "csv", "--out", str(tmp_path / "out.csv")
    assert history(tmp_path, *arguments, "--to", str(until)) == 0
    assert (tmp_path / "out.csv").read_text() == "_time,_tick,_change,site,n,s\n"
    assert says in capsys.readouterr().err


@pytest.mark.promise("bad-files")
def test_recompute_names_a_file_that_is_left_out(tmp_path, capsys):
    one_late(tmp_path)
    rows = [{"_tick": 86_400, "_site": 1, "temp": 1, "gust": 0.5}]
    archive(read_recording(CATALOG, {"road": rows}), tmp_path, random.Random(1))
    [file] = extent_folder(tmp_path, "road").glob("date=1970-01-02/*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    arguments = ("recompute", WINDOWS, "--since", "180")
    assert history(tmp_path, *arguments) == 3
    assert str(file) in capsys.readouterr().err
    assert history(tmp_path, *arguments, "--skip-damaged") == 0
    assert f"left out {file}" in capsys.readouterr().err


def test_rows_that_differ_in_last_digits_are_left_out():
    class Query:
        columns, inexact = ("_tick", "site", "mean"), frozenset(["mean"])

    def row(change, site, mean):
        return {"_tick": 10, CHANGE: change, "site": site, "mean": mean}

    rows = [row("removed", 1, 0.3), row("added", 1, 0.1 + 0.2), row("removed", 2, 0.3), row("added", 2, 0.31),
            row("added", 3, 0.3), row("removed", 4, None), row("added", 4, 0.5)]  # fmt: skip
    assert _cancel_roundings(rows, Query) == rows[2:]
