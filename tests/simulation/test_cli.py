"""moteloom sim run: what it prints and writes, and how it says what is wrong."""

import csv
import json
import math
import os
import re
from statistics import mean, stdev

import pytest

from basestation.cli import sim
from basestation.testbed.trials import _summary, student_t
from gateway.cli import parser_of
from tests.docs.pages import ROOT
from tests.simulation.scenario_judge import FOLDER

MEASURED = re.compile(r"mote=(\d+) produced sampling=\d+ tick=(\d+) values=\([^,]+, ([^)]+)\)")
"""(mote, tick, value) of the second of two measured quantities."""


def moteloom_sim(*arguments):
    return sim.run(parser_of("sim", sim).parse_args(["run", *map(str, arguments)]))


def test_one_seed_is_a_table_and_a_folder(tmp_path, capsys):
    assert moteloom_sim(FOLDER / "calm.toml", "--for", "2min", "--out", tmp_path) == 0
    out, err = capsys.readouterr()
    assert out.startswith("calm, seed 1\n")
    assert "now: coverage" in out
    assert err == ""  # no progress bar without a terminal
    folder = tmp_path / "seed-1"
    assert sorted(file.name for file in folder.iterdir()) == ["answers.jsonl", "ledger.json", "motes.csv", "trace.txt"]
    answers = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    assert [line["type"] for line in answers[:2]] == ["schema", "schema"]
    windows = [line for line in answers if line["type"] == "window" and line["query"] == 1]
    assert [w["tick"] for w in windows] == list(range(windows[0]["tick"], windows[0]["tick"] + 10 * len(windows), 10))
    told = json.loads((folder / "ledger.json").read_text())
    trace = (folder / "trace.txt").read_text()
    assert told["figures"]["readings produced"] == trace.count(" produced ")
    assert list(told["readings"]["hall"]) == [str(n) for n in range(1, 9)]
    assert sum(of["delivered"] for of in told["readings"]["hall"].values()) == told["figures"]["readings received"] > 0
    assert told["merged, unattributed"] == {}
    with (folder / "motes.csv").open() as file:
        motes = list(csv.DictReader(file))
    assert [row["mote"] for row in motes] == [str(n) for n in range(1, 9)]
    assert sum(int(row["frames"]) for row in motes) == told["figures"]["frames"]
    sent = [line for line in trace.splitlines() if " sent " in line and " mote=0 " not in line]
    assert len(sent) == told["figures"]["frames"]


def test_query_that_is_never_submitted_is_named(capsys):
    assert moteloom_sim(ROOT / "examples/lab54/calm.scenario.toml", "--for", "30s") == 0
    assert "mean: never submitted" in capsys.readouterr().out
    assert moteloom_sim(FOLDER / "calm.toml", "--for", "30s") == 0
    assert "never submitted" not in capsys.readouterr().out


@pytest.mark.promise("deterministic")
def test_the_same_seed_writes_the_same_bytes(tmp_path, capsys):
    for name in ("a", "b"):
        assert (
            moteloom_sim(FOLDER / "loses_forty_percent_in_bursts.toml", "--for", "1min", "--out", tmp_path / name) == 0
        )
    for file in (tmp_path / "a" / "seed-1").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / "seed-1" / file.name).read_bytes()


def test_several_seeds_have_means_and_intervals(capsys):
    assert moteloom_sim(FOLDER / "calm.toml", "--for", "1min", "--seeds", "3..5", "-o", "json") == 0
    *runs, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert [run["seed"] for run in runs] == [3, 4, 5]
    frames = [run["figures"]["frames"] for run in runs]
    told = summary["figures"]["frames"]
    assert told["mean"] == pytest.approx(mean(frames))
    assert told["margin"] == pytest.approx(4.303 * stdev(frames) / math.sqrt(3))
    assert moteloom_sim(FOLDER / "calm.toml", "--for", "1min", "--seeds", "3..5", "-o", "csv") == 0
    header, *rows = csv.reader(capsys.readouterr().out.splitlines())
    assert [int(row[header.index("frames")]) for row in rows] == frames


@pytest.mark.promise("deterministic")
def test_an_interval_is_missed_as_rarely_as_it_says(rng):
    """Of many means of five numbers with mean 0, one in twenty is farther from 0 than its margin."""
    missed = 0
    for _ in range(2_000):
        found = _summary([rng.gauss(0, 1) for _ in range(5)])
        missed += abs(found.mean) > found.margin
    assert 0.03 < missed / 2_000 < 0.07


def test_student_s_t_goes_on_behind_its_table():
    assert student_t(1) == 12.706
    assert abs(student_t(31) - 2.0395) < 0.005
    assert abs(student_t(10**6) - 1.96) < 0.001


@pytest.mark.promise("bad-files")
@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("mean = 20.0", "maen = 20.0", ["SN702: unknown key `maen` in `world.temperature`", "did you mean `mean`?"]),
        ('period = "1 hour"', 'period = "1 our"', ["SN704: `period`: expected a span of time"]),
        ("[world.supply]", "[world.suply]", ["SN706: no mote has a sensor `suply`"]),
        (
            "text =",
            "txt =",
            ["SN703: a query has either a `text` or a `file`", "SN702: unknown key `txt` in `queries.now`"],
        ),
        (
            "[queries.now]",
            '[faults.a]\nwhat = "dyes"\nat = "1 sec"\n[queries.now]',
            ["SN706: unknown fault `dyes`"],
        ),
        (
            "[queries.now]",
            '[faults.a]\nwhat = "dies"\nmote = 77\nat = "1 sec"\n[queries.now]',
            ["SN706: there is no mote 77"],
        ),
        (
            "[queries.now]",
            '[faults.a]\nwhat = "reboots"\nmote = [1, 0]\nat = "1 sec"\n[queries.now]',
            ["SN706: 0 is a gateway, and `reboots` is a fault of motes"],
        ),
        (
            "[queries.now]",
            '[faults.a]\nwhat = "cut"\nmote = 0\nat = "2 sec"\nuntil = "2s"\n[queries.now]',
            ["SN704: expected an `until` later than `at`"],
        ),
        (
            "[queries.now]",
            '[queries.now]\nat = "1 min"\nuntil = "30 sec"',
            ["SN704: expected an `until` later than `at`"],
        ),
        (
            "[queries.now]",
            "[wire]\ndelayed = 0.5\n[queries.now]",
            ["SN703: `wire` has `delayed` but no `delay`"],
        ),
        ("[queries.now]", '[faults.a]\nwhat = "clock_jumps"\nmote = 1\nat = "1 sec"\n[queries.now]', ["needs `by`"]),
        (
            "[queries.now]",
            "[radio]\nbursts = { begin = 0.7, end = 0.7, left = 0 }\n[queries.now]",
            ["SN704", "add up to"],
        ),
        ("[world.supply]", "[world.supply", ["SN701: invalid TOML"]),
        (
            "[queries.now]",
            '[faults.a]\nwhat = "dies"\nmote = 1\nat = "1 sec"\nuntil = "2 sec"\n[queries.now]',
            ["SN702: unknown key `until` in `faults.a`"],
        ),
        (
            "[queries.now]",
            '[faults.a]\nwhat = "base_away"\nmote = 1\nat = "1 sec"\n[queries.now]',
            ["SN702: unknown key `mote` in `faults.a`"],
        ),
        ("mean = 2950.0", 'noise = 1.0\nfile = "hall.csv"\ncolumn = "supply"', ["SN705: a quantity is a formula or"]),
        ("mean = 2950.0", 'hold = "1 min"', ["SN702: unknown key `hold` in `world.supply`"]),
    ],
)
def test_scenario_fault_is_shown_with_its_place(tmp_path, capsys, right, wrong, said):
    text = (FOLDER / "calm.toml").read_text().replace('"hall.toml"', f'"{FOLDER / "hall.toml"}"')
    (tmp_path / "wrong.toml").write_text(text.replace(right, wrong))
    assert moteloom_sim(tmp_path / "wrong.toml", "--for", "1min") == 3
    err = capsys.readouterr().err
    assert "wrong.toml:" in err and "^" in err
    for part in said:
        assert part in err


def test_nothing_runs_if_a_query_is_refused(tmp_path, capsys):
    text = (FOLDER / "calm.toml").read_text().replace('"hall.toml"', f'"{FOLDER / "hall.toml"}"')
    (tmp_path / "asks.toml").write_text(text + '\n[queries.strange]\ntext = "SELECT heat FROM hall [NOW]"\n')
    assert moteloom_sim(tmp_path / "asks.toml", "--for", "1min", "--out", tmp_path / "out") == 2
    out, err = capsys.readouterr()
    assert out == "" and not (tmp_path / "out").exists()
    assert (
        "query `strange` was refused" in err
        and f"asks.toml:{text.count(chr(10)) + 3}:16" in err
        and err.count("^^^^\n") == 1
    )


@pytest.mark.promise("explain")
def test_errors_are_json_where_answers_are(tmp_path, capsys):
    text = (FOLDER / "calm.toml").read_text().replace('"hall.toml"', f'"{FOLDER / "hall.toml"}"')
    (tmp_path / "asks.toml").write_text(text + '\n[queries.strange]\ntext = "SELECT heat FROM hall [NOW]"\n')
    (tmp_path / "wrong.toml").write_text(text.replace("[world.supply]", "[world.supply"))
    for name, code, expected in (("asks", 2, "SN202"), ("wrong", 3, "SN701"), ("none", 3, "SN501")):
        assert moteloom_sim(tmp_path / f"{name}.toml", "--for", "1min", "-o", "json") == code
        *others, error = map(json.loads, capsys.readouterr().out.splitlines())
        assert (error["type"], error["code"]) == ("error", expected)
        assert others == []
        assert error.get("query") == ("strange" if name == "asks" else None)
    (tmp_path / "fast.toml").write_text(text + "\n[clocks]\nppm = 20\n")
    assert moteloom_sim(tmp_path / "fast.toml", "--for", "1min", "--swept", "-o", "json") == 2
    out, err = capsys.readouterr()
    error = json.loads(out)
    assert (err, error["type"], error["code"], error["message"]) == (
        "", "error", "SN515", "cannot be swept: clocks have an error",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"),
    [(19131.0, "19,131"), (19131.4, "19,131"), (231.75, "231.8"), (0.5, "0.5"), (math.inf, "endless")],
)
def test_people_read_numbers_in_one_form(value, shown):
    assert sim._readable(value) == shown


def test_missing_scenario_file_is_reported(tmp_path, capsys):
    gone = tmp_path / "none.toml"
    assert moteloom_sim(gone, "--for", "1min") == 3
    assert capsys.readouterr().err == f"SN501: {gone}: cannot be read: No such file or directory\n"


def test_folder_that_cannot_be_made_is_reported(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert moteloom_sim(FOLDER / "calm.toml", "--for", "1min", "--out", tmp_path / "file") == 3
    assert (
        capsys.readouterr().err
        == f"SN501: {tmp_path / 'file' / 'seed-1'}: cannot be written: Not a directory; unfinished files end in .part\n"
    )


@pytest.mark.promise("bad-files")
@pytest.mark.parametrize("name", ["trace.txt", "answers.jsonl", "motes.csv", "ledger.json"])
def test_full_disk_is_reported_with_its_file(tmp_path, capsys, name):
    (tmp_path / "seed-1").mkdir()
    (tmp_path / "seed-1" / name).write_text("of an earlier run")
    (tmp_path / "seed-1" / f"{name}.part").symlink_to("/dev/full")
    assert moteloom_sim(FOLDER / "calm.toml", "--for", "1min", "--out", tmp_path) == 3
    assert capsys.readouterr().err == (
        f"SN501: {tmp_path}: cannot be written: No space left on device; unfinished files end in .part\n"
    )
    assert all(file.suffix == ".part" for file in (tmp_path / "seed-1").iterdir())


@pytest.mark.promise("bad-files")
def test_a_run_that_ends_early_leaves_no_bar_behind(tmp_path, monkeypatch):
    """The message after the bar begins a line of its own."""
    (tmp_path / "seed-1").mkdir()
    (tmp_path / "seed-1" / "motes.csv.part").symlink_to("/dev/full")
    terminal, end = os.openpty()
    with os.fdopen(end, "w") as screen:
        monkeypatch.setattr("sys.stderr", screen)
        assert moteloom_sim(FOLDER / "calm.toml", "--for", "1min", "--out", tmp_path) == 3
        screen.flush()
        shown = ""
        while "SN501" not in shown:  # a terminal passes on what was written in its own time
            shown += os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert re.search(r"\[#*\.+] +\d+%.*\r +\rSN501: ", shown)


@pytest.mark.promise("bad-files")
def test_sensor_without_world_entry_measures_0_and_can_fail(tmp_path, capsys):
    text = (FOLDER / "calm.toml").read_text().replace('"hall.toml"', f'"{FOLDER / "hall.toml"}"')
    fault = '[faults.broken]\nwhat = "sensor_fails"\nmote = 3\nsensor = "supply"\nat = "25 sec"\n'
    (tmp_path / "bare.toml").write_text(text.replace("[world.supply]\nmean = 2950.0", fault))
    assert moteloom_sim(tmp_path / "bare.toml", "--for", "1min", "--out", tmp_path) == 0
    trace = (tmp_path / "seed-1" / "trace.txt").read_text()
    supply = {(int(mote), int(tick)): value for mote, tick, value in MEASURED.findall(trace)}
    assert {mote for mote, _ in supply} == set(range(1, 9)) and max(tick for _, tick in supply) == 50
    assert all(value == ("None" if mote == 3 and tick >= 30 else "0") for (mote, tick), value in supply.items())


def test_before_the_first_reading_none_is_received(capsys):
    assert moteloom_sim(FOLDER / "calm.toml", "--for", "1s", "-o", "json") == 0
    run, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert (run["figures"]["readings received"], run["figures"]["now: answers"]) == (0, 0)


@pytest.mark.promise("ledger")
def test_merged_readings_are_counted_apart_from_delivered(capsys):
    assert moteloom_sim(ROOT / "examples/lab54/day.scenario.toml", "--for", "30min", "--swept", "-o", "json") == 0
    assert moteloom_sim(FOLDER / "calm.toml", "--for", "2min", "-o", "json") == 0
    folded, _, collected, _ = map(json.loads, capsys.readouterr().out.splitlines())
    produced, received, merged = (folded["figures"][f"readings {what}"] for what in ("produced", "received", "merged"))
    assert received == 0 and 0.8 * produced < merged <= produced
    produced, received, merged = (collected["figures"][f"readings {w}"] for w in ("produced", "received", "merged"))
    assert merged == 0 and 0.8 * produced < received <= produced


def test_sweep_ends_with_a_whole_round(capsys):
    found = []
    for seconds in (300, 309):
        assert moteloom_sim(FOLDER / "calm.toml", "--for", f"{seconds}s", "--swept", "-o", "json") == 0
        run, _ = map(json.loads, capsys.readouterr().out.splitlines())
        found.append((run["figures"]["joules"], run["figures"]["worst lifetime in days"]))
    assert found[0] == found[1] and found[0][1] > 0


@pytest.mark.parametrize(
    ("text", "ms"),
    [("90s", 90_000), ("30min", 1_800_000), ("24h", 86_400_000), ("1 m", 60_000), ("5MS", 5), ("2 days", 172_800_000)],
)
def test_spans_as_people_write_them(text, ms):
    assert sim.parse_span(text) == ms


@pytest.mark.parametrize("arguments", [["--for", "0s"], ["--for", "3 rows"], ["--for", "1h", "--seeds", "5..3"]])
def test_senseless_options_are_misuse(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        moteloom_sim(FOLDER / "calm.toml", *arguments)
    assert left.value.code == 2


def test_swept_and_by_agenda_write_the_same_kinds_of_files(tmp_path, capsys):
    for name, way in (("swept", ["--swept"]), ("by agenda", [])):
        assert moteloom_sim(FOLDER / "calm.toml", "--for", "3min", *way, "--out", tmp_path / name) == 0
        out = capsys.readouterr().out
        assert "now: coverage" in out
        folder = tmp_path / name / "seed-1"
        assert " produced " in (folder / "trace.txt").read_text()
        told = json.loads((folder / "ledger.json").read_text())
        assert told["figures"]["readings received"] >= 0.9 * told["figures"]["readings produced"] > 100
        delivered = sum(of["delivered"] for of in told["readings"]["hall"].values())
        assert delivered >= told["figures"]["readings received"]


def test_sweep_that_is_impossible_states_the_reason(capsys):
    assert moteloom_sim(FOLDER / "parent_dies_mid_epoch.toml", "--for", "1min", "--swept") == 2
    assert "cannot be swept: the scenario injects faults" in capsys.readouterr().err
