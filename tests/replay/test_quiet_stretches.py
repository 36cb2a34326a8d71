"""A replay skips the answers of long stretches without data: the others are equal to those of a replay that skips none."""

import json
import random
import re
from functools import partial

import numpy as np
import pytest

from basestation.cli import replay as verb
from basestation.execution import thresholds
from basestation.execution.ingest import intake
from basestation.execution.plan_checks import StartBeforeRecordError
from basestation.replay import driver, quiet_stretches, recorded_stream
from basestation.replay.driver import SKIP_FROM, NotExecutableError, Replay
from basestation.replay.inputs import read_recording
from basestation.replay.recorded_ticks import RecordedTicks, find_gaps
from basestation.replay.result import Result
from basestation.replay.statements import read_catalog, read_statements
from gateway.cli import parser_of
from gateway.diagnostics import DiagnosticError
from tests.conftest import count_of
from tests.execution.past_query_generators import HistoryMaker
from tests.oracles.generate import CaseMaker

LEAST = 5
SCHEMA = """
p: pushed (v:integer) late revise by 9 sec
q: pushed (v:integer) wait 3 sec late append
r: sensed (site:integer, v:integer) every 2 sec at sites 1, 2 late revise by 7 sec
s: sensed (site:integer, time:integer, v:integer) every 2 sec at sites 1, 2 late revise by 7 sec
t: stored (v:integer)
"""


def run(schema, inputs, texts, skip_from, at_once=65_536):
    """(result, skipped answers, in the order of the clock) of a replay."""
    catalog = read_catalog(schema)
    statements = read_statements(texts, catalog)
    recording = read_recording(catalog, inputs, statements)
    replay = Replay(recording, statements, begin=recording.begin(), skip_from=skip_from, at_once=at_once)
    result, skipped = Result(replay.queries), []
    for updates in replay.updates():
        skipped += replay.skipped
        replay.skipped.clear()
        result.add(updates)
    result.finish(replay.until, replay.ledger())
    return result, skipped


def check(schema, inputs, texts, at_once=65_536, least=LEAST):
    """Compare a replay that skips with one that does not; return how many answers were skipped."""
    whole, none = run(schema, inputs, texts, None)
    found, skipped = run(schema, inputs, texts, least, at_once)
    assert not none and found.ledger == whole.ledger and found.errors == whole.errors
    for query in whole.columns:
        spans = [each for each in skipped if each.query == query]
        numbers = [(kind, at) for kind in (False, True) for at, span in enumerate(spans) if span.tuples is kind]
        inside = [[] for _ in spans]
        shown, last, before = [], {}, {}  # the last windows, each by its number among those of its tick
        for each in whole.history(query):
            kind = hasattr(each, "weight")
            at = next((i for k, i in numbers if k is kind and spans[i].first <= each.tick <= spans[i].last), None)
            if at is None:
                shown.append(each)
                last[getattr(each, "n", 1)] = each
            else:
                before.setdefault(at, {**last})
                inside[at].append(each)
        assert found.history(query) == shown
        for at, (span, answers) in enumerate(zip(spans, inside, strict=True)):
            assert (answers[0].tick, answers[-1].tick, len(answers)) == (span.first, span.last, span.count)
            for answer in answers:
                if hasattr(answer, "added"):
                    assert (answer.revision, answer.removed, answer.added) == (0, [], before[at][answer.n].added)
    return sum(each.count for each in skipped)


def move(inputs, places, rng):
    """The inputs with a stretch without data at each of some ticks: all that comes or is stamped later moves."""
    gaps = {place: rng.choice([60, 97, 150]) for place in places}
    shift = lambda tick: tick + sum(gap for place, gap in gaps.items() if tick >= place)  # noqa: E731
    every = lambda row: {  # noqa: E731
        name: shift(value) if name in ("_tick", "_arrival") else value for name, value in row.items()
    }
    return {
        name: [(shift(tick), rows) for tick, rows in given] if name == "kinds" else [every(row) for row in given]
        for name, given in inputs.items()
    }


class QuietMaker(CaseMaker):
    """Cases in which late tuples are revised for a short time, so that short stretches can be skipped."""

    def schema(self):
        lines = super().schema().replace("late revise by 1 min", "late revise by 9 sec").splitlines()
        return "".join(
            f"{line}\n" if "late" in line or "stored" in line else f"{line} late revise by 5 sec\n" for line in lines
        )


class QuietHistoryMaker(QuietMaker, HistoryMaker):
    """The same with scans of histories in most places, which name ticks."""

    def query(self):
        self.taken = set()
        return self.scanning() if self.chance(0.8) else self.one_off()


CLAUSE = re.compile(r"( (?:FOR \d+ SEC|ACQUIRE EVERY \d+ SEC|DELIVER WITHIN \d+ SEC))?$")


def begin_later(text, dice):
    """The query, some with SINCE and some with FOR."""
    if "WindowIs" in text or dice.random() < 0.6:
        return text
    since, clause = dice.choice(["", f" SINCE {dice.randint(0, 90)}"]), CLAUSE.search(text).group()
    ends = clause if clause or dice.random() < 0.5 else f" FOR {dice.randint(1, 200)} SEC"
    return f"{text.removesuffix(clause)}{since}{ends}"


@pytest.fixture(autouse=True)
def narrow_gaps(monkeypatch):
    """Short gaps count as gaps, and tuples are kept for a short time."""
    monkeypatch.setattr(intake, "KEPT_MS", 15_000)
    monkeypatch.setattr(intake, "KEPT_LONGER_MS", 25_000)
    monkeypatch.setattr(recorded_stream, "RecordedTicks", partial(RecordedTicks, least_gap=5))


def test_any_query_answers_as_without_skipping(rng):
    checked, skipped, least = 0, 0, count_of(25, 1_000)
    for number in range(10 * least):
        if number >= least and checked > 12 and skipped:  # in some runs no query of the first ones skips
            break
        seed = rng.getrandbits(64)
        dice = random.Random(seed)
        make = dice.choice([QuietMaker, QuietHistoryMaker])(seed)
        schema, inputs = make.schema(), make.inputs()
        places = sorted(dice.sample(range(1, 14), dice.choice([1, 1, 2])))
        try:
            text = begin_later(make.query(), dice)
            skipped += check(schema, move(inputs, places, dice), [text], dice.choice([1, 7, 65_536])) > 0
            checked += 1
        except (DiagnosticError, NotExecutableError, StartBeforeRecordError):
            continue
    assert checked > 12 and skipped


INPUTS = {
    "p": [
        {"_arrival": t, "_tick": t - 3 * (t % 5 == 0), "v": t % 4} for t in (*range(5, 20), *range(300, 311), 700, 701)
    ],
    "q": [{"_arrival": t, "v": t % 3} for t in (1, 8, 9, 299, 305, 690, 1_000)],
    "r": [
        {"_tick": t, "_site": s, "v": t % 7} for t in (0, 2, 4, 16, 300, 304, 702) for s in (1, 2) if t % 3 or s == 1
    ],
    "t": [(0, [{"v": 1}, {"v": 2}]), (305, [{"v": 2}])],
}
INPUTS["s"] = INPUTS["r"]
"""Data with three stretches without any; the first tuples behind each are late."""


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v FROM p",
        "SELECT site, v FROM r WHERE v > 1",
        "SELECT SUM(v) AS s, COUNT(*) AS n FROM p [FROM NOW-4 TO NOW SLIDE 3 SEC]",
        "SELECT site, AVG(v) AS a FROM r [FROM NOW-9 TO NOW SLIDE 5 SEC] GROUP BY site",
        "SELECT v FROM q [FROM NOW-3 TO NOW-1 SLIDE 2 SEC]",
        "SELECT SUM(v) AS s FROM p [FROM NOW-2 TO NOW SLIDE 2 ROWS]",
        "SELECT COUNT(*) AS n FROM p [UNBOUNDED SLIDE 5 SEC]",
        "SELECT COUNT(*) AS n FROM r [UNBOUNDED SLIDE 5 SEC]",
        "SELECT site, MAX(v) AS m FROM r [UNBOUNDED] WHERE site > 1 GROUP BY site",
        "SELECT COUNT(*) AS n FROM (SELECT v FROM r WHERE v > 3) [UNBOUNDED SLIDE 3 SEC]",
        "ISTREAM(SELECT v FROM p [FROM NOW-4 TO NOW SLIDE 1 SEC])",
        "DSTREAM(SELECT site, v FROM r [NOW])",
        "RSTREAM(SELECT v, COUNT(*) AS n FROM p [FROM NOW-4 TO NOW SLIDE 3 SEC] GROUP BY v)",
        "SELECT MAX(m) AS m FROM ISTREAM(SELECT MAX(v) AS m FROM p [FROM NOW-4 TO NOW SLIDE 2 SEC]) [FROM NOW-8 TO NOW SLIDE 4 SEC]",
        "SELECT p.v, r.site FROM p [FROM NOW-5 TO NOW SLIDE 2 SEC], r [FROM NOW-6 TO NOW SLIDE 3 SEC] WHERE p.v = r.v",
        "SELECT p.v FROM p [FROM NOW-5 TO NOW SLIDE 2 SEC], t [SCAN 3 SEC] WHERE p.v = t.v",
        "SELECT v FROM t [SCAN 7 SEC]",
        "RSTREAM(SELECT COUNT(*) AS n FROM p [FROM NOW-4 TO NOW SLIDE 1 SEC])",
        "RSTREAM(SELECT v FROM t [SCAN 7 SEC])",
        "RSTREAM(SELECT COUNT(*) AS n, MAX(v) AS m FROM r [FROM NOW-4 TO NOW SLIDE 4 SEC])",
        "RSTREAM(SELECT v, COUNT(*) AS n FROM p.HISTORY [SCAN 5 SEC] GROUP BY v)",
        "RSTREAM(SELECT p.v, t.v AS w FROM p [FROM NOW TO NOW SLIDE 1 ROW], t [SCAN 3 SEC])",
        "RSTREAM(SELECT COUNT(*) AS n FROM p [UNBOUNDED SLIDE 5 SEC])",
        "RSTREAM(SELECT COUNT(*) AS n FROM p [FROM NOW-4 TO NOW SLIDE 3 SEC]) FOR 600 SEC",
        "SELECT MAX(n) AS m FROM RSTREAM(SELECT COUNT(*) AS n FROM p [FROM NOW-4 TO NOW SLIDE 2 SEC]) [FROM NOW-8 TO NOW SLIDE 4 SEC]",
        "ISTREAM(SELECT m, COUNT(*) AS n FROM (SELECT n * 2 AS m FROM RSTREAM(SELECT COUNT(*) AS n FROM r [NOW]) WHERE n < 2) "
        "[FROM NOW-8 TO NOW SLIDE 4 SEC] GROUP BY m)",
        "SELECT COUNT(*) AS n FROM r [FROM NOW-4 TO NOW SLIDE 3 SEC] DELIVER WITHIN 1 SEC",
        "SELECT v FROM r UNION ALL SELECT v FROM s",
        "SELECT tick, v FROM r WHERE tick > 400",
        "SELECT x.t, x.v FROM (SELECT tick AS t, v FROM p WHERE tick % 3 > 0) [FROM NOW-9 TO NOW SLIDE 5 SEC] AS x",
        "SELECT time, MAX(v) AS m FROM s [FROM NOW-9 TO NOW SLIDE 5 SEC] GROUP BY time",
        "SELECT a.time, b.v FROM s [NOW] AS a, s [FROM NOW-6 TO NOW SLIDE 2 SEC] AS b WHERE a.time = b.time + 2",
        "SELECT MIN(x.t) AS t FROM (SELECT tick AS t, n FROM ISTREAM(SELECT COUNT(*) AS n FROM p [FROM NOW-4 TO NOW SLIDE 1 SEC])) "
        "[FROM NOW-19 TO NOW SLIDE 4 SEC] AS x",
        "SELECT MAX(t) AS t FROM (SELECT tick AS t FROM p UNION ALL SELECT tick FROM r) [FROM NOW-9 TO NOW SLIDE 3 SEC] AS x",
        "SELECT COUNT(*) AS n FROM p.HISTORY AS h [SCAN 5 SEC]",
        "SELECT tick, index, v, _arrival FROM q.HISTORY [SCAN 6 SEC] WHERE tick < 305",
        "SELECT time, _arrival, v FROM s.HISTORY [SCAN 4 SEC] WHERE _arrival - time >= 0",
        "SELECT p.v, h.tick FROM p [FROM NOW-5 TO NOW SLIDE 2 SEC], p.HISTORY AS h [SCAN 3 SEC] WHERE p.v = h.v",
        "ISTREAM(SELECT v, COUNT(*) AS n FROM p.HISTORY [SCAN 5 SEC] GROUP BY v)",
        "SELECT SUM(v) AS s FROM p [FROM NOW-4 TO NOW SLIDE 1 SEC] FOR 500 SEC",
        "SELECT SUM(v) AS s FROM p [FROM NOW-4 TO NOW SLIDE 1 SEC] FOR 301 SEC",
        "SELECT COUNT(*) AS n FROM r [UNBOUNDED SLIDE 2 SEC] SINCE 150 FOR 400 SEC",
        "SELECT site, v FROM r SINCE 310",
        "ISTREAM(SELECT v FROM p [FROM NOW-9 TO NOW SLIDE 3 SEC]) SINCE 301 FOR 450 SEC",
    ],
)
def test_query_skips_quiet_stretches_and_answers_the_same(text):
    found = check(SCHEMA, INPUTS, [text])
    assert (found > 0) == ("2 ROWS" not in text and text != "SELECT v FROM p")


@pytest.mark.parametrize(
    "text",
    [
        "ISTREAM(SELECT COUNT(*) AS n FROM r [UNBOUNDED SLIDE 5 SEC])",
        "SELECT MAX(n) AS n FROM ISTREAM(SELECT COUNT(*) AS n FROM r [UNBOUNDED SLIDE 10 SEC]) [FROM NOW-1 TO NOW SLIDE 2 SEC]",
        "SELECT v FROM r UNION ALL ISTREAM(SELECT COUNT(*) AS v FROM r [UNBOUNDED SLIDE 3 SEC])",
        "SELECT COUNT(*) AS n FROM r [FROM NOW-2 TO NOW SLIDE 2 ROWS]",
        "SELECT n FROM RSTREAM(SELECT COUNT(*) AS n FROM p [FROM NOW-4 TO NOW SLIDE 1 SEC]) WHERE n > 9",
        "SELECT MAX(n) AS m FROM RSTREAM(SELECT COUNT(*) AS n FROM p [FROM NOW-4 TO NOW SLIDE 2 SEC]) [FROM NOW-8 TO NOW SLIDE 3 SEC]",
        "SELECT SUM(v) AS s FROM p FOR (t = ST; t < 900; t += 2) { WindowIs(p, 1, t); }",
        "SELECT COUNT(*) AS n FROM p [FROM NOW-1 TO NOW SLIDE 1 ROW], r [NOW] DELIVER WITHIN 1 SEC",
        ("SELECT SUM(v) AS s FROM p [FROM NOW-4 TO NOW SLIDE 1 SEC] SINCE 300", 310),
    ],
)
def test_query_that_depends_on_elapsed_time_is_not_skipped(text):
    assert check(SCHEMA, INPUTS, [text]) == 0


def test_windows_of_several_rows_of_a_tick_differ_at_each_scan():
    """Two rows of one tick make two windows, and both are combined with each scan: ISTREAM gives tuples in the stretch."""
    inputs = {"p": [{"_tick": tick, "v": v} for tick in (1, 400) for v in (1, 2)], "t": [(0, [{"v": 1}, {"v": 2}])]}
    text = "ISTREAM(SELECT p.v FROM p [FROM NOW TO NOW SLIDE 1 ROW], t [SCAN 3 SEC] WHERE p.v = t.v)"
    result, skipped = run(SCHEMA, inputs, [text], LEAST)
    assert not skipped and len(result.history(1)) > 200


@pytest.mark.parametrize("late", ["late revise by 50 sec", "late revise by 1 sec ahead 50 sec"])
def test_tuple_across_a_stretch_stays_as_late_or_early_as_it_was(late):
    rows = [(0, 0), (5, 300), (300, 300), (301, 4), (302, 302)]  # (arrival, tick)
    inputs = {"p": [{"_arrival": arrival, "_tick": tick, "v": 1} for arrival, tick in rows]}
    text = "SELECT COUNT(*) AS n FROM p [FROM NOW-3 TO NOW SLIDE 1 SEC]"
    assert check(f"p: pushed (v:integer) {late}", inputs, [text]) > 0


def test_copy_of_forgotten_reading_is_judged_the_same(monkeypatch):
    monkeypatch.setattr(intake, "KEPT_LONGER_MS", 400_000)
    monkeypatch.setattr(thresholds, "PRUNE_AFTER_TUPLES", (1, 1))
    ticks = [*((tick, tick) for tick in (*range(30), *range(2_000, 2_100))), (2_100, 27), (2_101, 2_101)]
    inputs = {"r": [{"_arrival": arrival, "_tick": tick, "_site": 1, "v": arrival % 7} for arrival, tick in ticks]}
    schema = "r: sensed (site:integer, v:integer) every 1 sec at sites 1 late append"
    assert check(schema, inputs, ["SELECT COUNT(*) AS n FROM r [FROM NOW-3 TO NOW SLIDE 1 SEC]"]) > 0
    result, _ = run(schema, inputs, ["SELECT v FROM r"], LEAST)
    assert result.ledger["r"]["accepted"] == len(ticks)


@pytest.mark.parametrize("late", ["late append", "late drop"])
def test_extent_without_horizon_skips(late):
    inputs = {"p": [{"_arrival": 0, "v": 1}, {"_arrival": 400_000, "v": 2}]}
    assert (
        check(f"p: pushed (v:integer) {late}", inputs, ["SELECT SUM(v) AS s FROM p [FROM NOW-59 TO NOW SLIDE 1 MIN]"])
        > 0
    )


def test_few_answers_are_given_and_many_steps_are_not_computed(monkeypatch):
    inputs = {"r": [{"_tick": tick, "_site": 1, "v": 1} for tick in (0, 60, 1_800)]}
    schema, text = (
        "r: sensed (site:integer, v:integer) every 1 sec at sites 1 late revise by 7 sec",
        "SELECT COUNT(*) AS n FROM r [FROM NOW-9 TO NOW SLIDE 1 MIN]",
    )
    assert check(schema, inputs, [text], least=60) == 0
    assert check(schema, inputs, ["SELECT v FROM r"], least=60) > 60
    monkeypatch.setattr(quiet_stretches, "MANY_STEPS", 10)
    assert check(schema, inputs, [text], least=60) > 0


def test_several_queries_and_a_later_one_skip_together():
    texts = [
        "SELECT SUM(v) AS s FROM p [FROM NOW-4 TO NOW SLIDE 2 SEC]",
        "SELECT v FROM r [FROM NOW-4 TO NOW SLIDE 4 SEC]",
        ("SELECT v FROM p [FROM NOW-30 TO NOW SLIDE 4 SEC]", 310),
    ]
    assert check(SCHEMA, INPUTS, texts) > 0
    assert check(SCHEMA, INPUTS, [*texts, "SELECT COUNT(*) AS n FROM p.history"]) > 0
    late = "SELECT h.tick, h.v FROM p.history AS h WHERE h.tick = (SELECT MAX(tick) FROM p.history) ORDER BY h.tick LIMIT 3"
    assert check(SCHEMA, INPUTS, [*texts, (late, 650)]) > 0
    assert check(SCHEMA, INPUTS, [*texts, ("REVISE p SET v = 9 WHERE tick = 301", 400)]) == 0


def test_two_readings_10_billion_ticks_apart_take_few_windows():
    inputs = {"p": [{"_tick": 0, "v": 1}, {"_tick": 10**10, "v": 2}]}
    text = "SELECT SUM(v) AS s FROM p [FROM NOW-3 TO NOW SLIDE 1 SEC]"
    result, [skipped] = run("p: pushed (v:integer)", inputs, [text], SKIP_FROM)
    windows = result.windows()
    assert len(windows) < 100 and len(windows) + skipped.count == 10**10 + 1
    assert [(each.tick, each.added) for each in windows if each.added != [(None,)]] == [
        *((tick, [(1,)]) for tick in range(4)),
        (10**10, [(2,)]),
    ]


def test_coverage_since_start_counts_due_in_10_billion_ticks():
    inputs = {"r": [{"_tick": tick, "_site": 1 + tick % 4 // 2, "v": 1} for tick in (0, 2, 10**10)]}
    text = "SELECT COUNT(*) AS n FROM r [UNBOUNDED]"
    result, [skipped] = run("r: sensed (site:integer, v:integer) every 2 sec at sites 1, 2", inputs, [text], SKIP_FROM)
    last = result.windows()[-1]
    assert (last.tick, last.added, last.coverage) == (10**10, [(3,)], {"r": [3, 2 * (5 * 10**9 + 1)]})
    assert len(result.windows()) + skipped.count == 5 * 10**9 + 1


def test_recorded_ticks_keep_wide_gaps_in_any_order(rng):
    ticks = [rng.randrange(10_000) // 300 * 300 for _ in range(40)]
    found = RecordedTicks(least_gap=250)
    for at in range(0, 40, 7):
        found.add(np.array(ticks[at : at + 7]))
    assert [low for low, _ in found.intervals()] == [high for _, high in found.intervals()] == sorted(set(ticks))
    assert find_gaps([(5, 9), (7, 8), (20, 30)], 0, 40) == [(0, 5), (9, 20), (30, 40)]
    assert find_gaps([(5, 9), (50, 60)], 6, 40) == [(9, 40)]


def test_recorded_ticks_stay_few():
    found = RecordedTicks(least_gap=1)
    for begin in range(0, 300_000, 1_000):
        found.add(np.arange(begin, begin + 1_000) * 10)
    found.add(np.array([10_000_000]))
    assert found.intervals() == [(0, 2_999_990), (10_000_000, 10_000_000)]


@pytest.fixture
def command(tmp_path, capsys):
    """command(*arguments): (standard output, standard error) of a replay of two readings far apart."""
    (tmp_path / "schema").write_text("p: pushed (v:integer)\n")
    (tmp_path / "p.csv").write_text("_tick,v\n0,1\n4000000,2\n")

    def ask(*arguments):
        given = ["--schema", f"{tmp_path}/schema", "--input", f"p={tmp_path}/p.csv", *arguments]
        assert verb.run(parser_of("replay", verb).parse_args(given)) == 0
        return capsys.readouterr()

    return ask


def test_command_sums_skipped_windows_up(command):
    rows = "SELECT v FROM p [FROM NOW-3 TO NOW SLIDE 1 MIN]"
    assert "\n66,663 windows without rows, from 240 to 3999960\n" in command(rows, "--until", "4000019").out
    total = "SELECT SUM(v) AS s FROM p [FROM NOW-3 TO NOW SLIDE 1 MIN]"
    [line] = [line for line in command(total).out.splitlines() if "same rows" in line]
    assert line == "66,659 windows with the same rows, from 420 to 3999900; --all shows them"
    [skipped] = [json.loads(line) for line in command(total, "-o", "json").out.splitlines() if '"skipped"' in line]
    times = {"from_time": "1970-01-01T00:07:00Z", "to_time": "1970-02-16T07:05:00Z"}
    assert skipped == {"type": "skipped", "query": 1, "from": 420, "to": 3999900, **times, "count": 66659}
    printed = command(total, "-o", "csv")
    assert "query 1: 66,659 windows from tick 420 to 3999900 have the same rows; --all prints them\n" in printed.err
    assert len(printed.out.splitlines()) + 66659 == len(command(total, "-o", "csv", "--all").out.splitlines()) == 66668
    assert "same rows" not in command(rows.replace("v FROM", "v + 1 FROM"), "-o", "json", "--all").err
    printed = command(total, "-o", "csv", "--time", "utc")
    span = "1970-01-01T00:07:00Z to 1970-02-16T07:05:00Z"
    assert f"query 1: 66,659 windows from {span} have the same rows; --all prints them\n" in printed.err


def test_command_sums_skipped_tuples_up(command):
    text = "RSTREAM(SELECT COUNT(*) AS n FROM p [FROM NOW-3 TO NOW SLIDE 1 MIN])"
    shown = command(text)
    [line] = [line for line in shown.out.splitlines() if "same rows" in line]
    assert line == "66,659 tuples of windows with the same rows, from 420 to 3999900; --all shows them"
    assert shown.out.splitlines()[-1].split() == ["3999960", "66667", "0"]  # the index counts those left out
    lines = [json.loads(line) for line in command(text, "-o", "json").out.splitlines() if '"skipped"' in line]
    assert [(line["count"], line.get("tuples")) for line in lines] == [
        (66_659, None),
        (66_659, True),
    ]  # epochs and tuples
    printed = "query 1: 66,659 tuples of windows from tick 420 to 3999900 have the same rows; --all prints them\n"
    assert printed in command(text, "-o", "csv").err


def test_long_computation_is_announced_with_a_remedy(command, monkeypatch):
    monkeypatch.setattr(driver, "MANY_STEPS", 2)
    text = "SELECT n FROM RSTREAM(SELECT COUNT(*) AS n FROM p [FROM NOW-3 TO NOW SLIDE 1 MIN])"
    announced = "66,666 windows or epochs without data are computed one by one, which takes long"
    assert (
        f"{announced}: a query depends on time that passes; --from and --until can leave them out\n"
        in command(text).err
    )
    assert "one by one" not in command(text, "--until", "60").err
    assert "one by one" not in command("SELECT COUNT(*) AS n FROM p [FROM NOW-3 TO NOW SLIDE 1 MIN]").err
