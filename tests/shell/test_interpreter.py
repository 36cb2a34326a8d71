"""The shell on recordings: statements and commands, answers on one stream and everything else on the other."""

import io

import pytest

from acquisition.errors import InputError
from basestation.replay.statements import read_catalog
from basestation.shell.interpreter import COMMANDS, HELP, Interpreter, is_complete, split_script
from basestation.shell.recordings import RecordingSource
from gateway.cli import main

SCHEMA = """
tank: sensed (site:integer, level:float {unit 'm'}) every 10 sec at sites 1, 2
kinds: stored (name:string) from 'kinds.csv'
"""
ROWS = [{"_tick": tick, "_site": site, "level": tick / 10 + site} for tick in range(0, 40, 10) for site in (1, 2)]


class Shell:
    def __init__(self, rows=ROWS):
        self.out, self.err = io.StringIO(), io.StringIO()
        catalog = read_catalog(SCHEMA)
        source = RecordingSource(catalog, {"tank": rows, "kinds": [{"name": "old"}]}, ".")
        self.interpreter = Interpreter(source, self.out, self.err, width=60)

    def run(self, *texts):
        for text in texts:
            self.interpreter.run(text)
        return self

    @property
    def lines(self):
        return self.out.getvalue().splitlines()


def test_windows_are_rows_with_time_and_coverage():
    shell = Shell().run("SELECT MAX(level) AS top FROM tank [FROM NOW-10 TO NOW SLIDE 20 SEC];")
    assert shell.lines == ["  time  top  coverage", "  0     2.0  tank 2 of 2", "  20    4.0  tank 4 of 4"]
    assert shell.err.getvalue() == "" and not shell.interpreter.has_failed


def test_tuples_of_a_stream_are_rows():
    assert Shell().run("SELECT site, level FROM tank WHERE level > 4").lines == [
        "  time  site  level  coverage", "  30       2    5.0",
    ]  # fmt: skip


def test_correction_is_kept_for_the_statements_after_it():
    shell = Shell().run(
        "REVISE tank SET level = 9.0 WHERE site = 2 AND tick = 0;",
        "SELECT SUM(level) AS s FROM tank [NOW] WHERE tick = 0",
    )
    assert "kept" in shell.err.getvalue()
    shell = Shell().run("DELETE FROM tank WHERE site = 2", "SELECT COUNT(*) AS n FROM tank.HISTORY")
    assert [line.split()[:2] for line in shell.lines[-1:]] == [["30", "4"]]


def test_revision_shows_what_it_removes_and_adds():
    late = [*ROWS[:2], {"_tick": 10, "_site": 1, "level": 1.0, "_arrival": 10}, *ROWS[4:],
            {"_tick": 10, "_site": 2, "level": 8.0, "_arrival": 31}]  # fmt: skip
    shell = Shell([row | {"_arrival": row.get("_arrival", row["_tick"])} for row in late])
    shell.run("SELECT MAX(level) AS top FROM tank [NOW]")
    assert [line for line in shell.lines if line[0] in "+-"] == ["- 10    1.0  tank 2 of 2", "+ 10    8.0  tank 2 of 2"]


def test_revision_that_changes_no_row_says_so():
    late = [*ROWS[:2], {"_tick": 10, "_site": 1, "level": 1.0, "_arrival": 10}, *ROWS[4:],
            {"_tick": 10, "_site": 2, "level": 0.5, "_arrival": 31}]  # fmt: skip
    shell = Shell([row | {"_arrival": row.get("_arrival", row["_tick"])} for row in late])
    shell.run("SELECT MAX(level) AS top FROM tank [NOW]")
    assert "  10  the same rows  tank 2 of 2" in shell.lines and "no rows" not in shell.out.getvalue()


def test_several_statements_run_in_their_order():
    shell = Shell().run("SELECT COUNT(*) AS a FROM tank.HISTORY; SELECT COUNT(*) AS b FROM kinds;")
    assert [line.split()[1] for line in shell.lines] == ["a", "8", "b", "1"]


def test_error_has_a_caret_in_the_text_as_it_was_typed():
    shell = Shell().run("SELECT site FROM tank;\nSELECT levle FROM tank;")
    assert len(shell.lines) == 9 and shell.interpreter.has_failed
    assert "line 2, column 8" in shell.err.getvalue() and "       ^^^^^" in shell.err.getvalue()
    assert "did you mean `level`?" in shell.err.getvalue()


def test_describe_lists_extents_and_columns():
    shell = Shell().run("\\d", "\\d tank", "\\d tnk")
    assert [line.split() for line in shell.lines] == [
        ["extent", "kind", "columns"], ["tank", "sensed", "site,", "level"], ["kinds", "stored", "name"],
        ["column", "type", "unit"], ["site", "integer"], ["level", "float", "m"],
    ]  # fmt: skip
    assert shell.err.getvalue() == "there is no extent `tnk`; did you mean `tank`?\n"


def test_expanded_rows_have_one_column_a_line():
    shell = Shell().run("\\x", "SELECT level AS deep FROM tank WHERE site = 1 AND tick = 0")
    assert shell.lines == [" [ 0 ]--------------------", "deep     | 1.0"]


def test_timing_follows_each_statement():
    shell = Shell().run("\\timing", "SELECT COUNT(*) FROM kinds")
    assert shell.err.getvalue().splitlines()[1].startswith("Time: ")
    assert "Time" not in Shell().run("\\timing", "\\timing", "SELECT COUNT(*) FROM kinds").err.getvalue()


def test_explain_is_a_command_and_a_statement():
    command, statement = Shell().run("\\explain SELECT level FROM tank"), Shell().run("EXPLAIN SELECT level FROM tank;")
    assert command.lines == statement.lines and "query 1: stream query" in command.lines


def test_plot_draws_a_line_for_each_site():
    lines = Shell().run("\\plot SELECT site, level FROM tank [NOW]").lines
    assert lines == ["site 1 level  1 ▁▃▆█ 4  last 4", "site 2 level  2 ▁▃▆█ 5  last 5"]


@pytest.mark.parametrize("command", ["l", "submit SELECT level FROM tank", "stop 1", "watch 1"])
def test_commands_of_stations_say_so_on_recordings(command):
    shell = Shell().run(f"\\{command}")
    assert shell.interpreter.has_failed and "needs a running station" in shell.err.getvalue()


@pytest.mark.parametrize(("text", "reason"), [
    ("\\exlpain SELECT 1", "there is no command `\\exlpain`; did you mean `explain`?"),
    ("\\plot", "`\\plot` needs a query"),
    ("\\i", "`\\i` needs the name of a file"),
    ("\\i nowhere.sneeql", "nowhere.sneeql: No such file or directory"),
    ("\\", "there is no command"),
    ("SELECT", "SN105"),
    ("'", "SN102"),
])  # fmt: skip
def test_bad_input_gets_a_reason_and_the_shell_goes_on(text, reason):
    shell = Shell().run(text)
    assert shell.err.getvalue().startswith(reason) and shell.interpreter.has_failed
    assert shell.run("SELECT COUNT(*) AS n FROM kinds").lines[-1].split()[1] == "1"


def test_wrong_data_is_reported_with_its_place(tmp_path):
    recording = tmp_path / "tank.csv"
    recording.write_text("_tick,_site,level\n0,1,2.5\n")
    shell = Shell(str(recording))
    recording.write_text("_tick,_site,level\n0,1,wet\n")
    shell.run("SELECT level FROM tank")
    assert shell.err.getvalue().startswith("SN5") and "row 1, column level" in shell.err.getvalue()


def test_stretch_without_data_is_a_note(tmp_path):
    recording = tmp_path / "tank.csv"
    recording.write_text("_tick,_site,level\n0,1,2.5\n10000000000,1,3.5\n")
    shell = Shell(str(recording)).run("SELECT COUNT(*) AS n FROM tank [FROM NOW TO NOW SLIDE 1 HOUR]")
    assert "windows from tick" in shell.err.getvalue() and "have the same rows" in shell.err.getvalue()


def test_stream_without_windows_has_no_note_about_windows(tmp_path):
    recording = tmp_path / "tank.csv"
    recording.write_text("_tick,_site,level\n0,1,2.5\n10000000000,1,3.5\n")
    shell = Shell(str(recording)).run("SELECT level FROM tank")
    assert len([line for line in shell.lines if ".5" in line]) == 2 and "windows" not in shell.err.getvalue()


def test_wrong_inputs_are_refused_before_the_first_statement():
    with pytest.raises(InputError, match="no extent `tnk`"):
        RecordingSource(read_catalog(SCHEMA), {"tnk": ROWS}, ".")


def test_file_is_run_line_by_line(tmp_path):
    script = tmp_path / "a.sneeql"
    script.write_text("-- all\nSELECT COUNT(*) AS n\nFROM kinds;\n\\d kinds\n\\q\n")
    shell = Shell().run(f"\\i {script}")
    assert [line.split()[0] for line in shell.lines] == ["time", "30", "column", "name"] and shell.interpreter.is_over


def test_text_cannot_control_the_terminal():
    source = RecordingSource(read_catalog(SCHEMA), {"kinds": [{"name": "\x1b[2J"}]}, ".")
    out = io.StringIO()
    Interpreter(source, out, io.StringIO()).run("SELECT name FROM kinds")
    assert "\x1b" not in out.getvalue() and "\\x1b[2J" in out.getvalue()


def test_help_has_every_command():
    assert [name for name in COMMANDS if f"\\{name}" not in HELP] == []
    assert Shell().run("\\?").err.getvalue() == HELP + "\n"


@pytest.mark.parametrize(("text", "complete"), [
    ("", True), ("\\d", True), ("SELECT 1 FROM a", False), ("SELECT 1 FROM a;", True), ("SELECT ';", False),
    ("SELECT ';'", False), ("SELECT 1 FROM a\n", True), ("SELECT a FROM b FOR (t = 1;", False), ("SELECT 1 -- ;", False),
    ("SELECT 1; -- done", True),
])  # fmt: skip
def test_statement_is_complete_at_its_semicolon(text, complete):
    assert is_complete(text) is complete


def test_script_is_split_into_statements_and_commands():
    script = "SELECT 1\nFROM a;\n\n\\d\nSELECT 2\n\nSELECT 3"
    assert [part.strip() for part in split_script(script)] == ["SELECT 1\nFROM a;", "\\d", "SELECT 2", "SELECT 3"]


def test_recording_with_times_of_its_own_is_read(tmp_path, capsys, monkeypatch):
    (tmp_path / "tank.csv").write_text(
        "when;level;place\n01.02.2026 08:00;2,5;1\n01.02.2026 08:01;3,5;1\n", encoding="utf-8"
    )
    (tmp_path / "schema").write_text("tank: sensed (site:integer, level:float) every 1 min at sites 1")
    given = ["shell", "--schema", f"{tmp_path}/schema", "--input", f"tank={tmp_path}/tank.csv"]
    written = [
        "--time-column",
        "when",
        "--time-format",
        "%d.%m.%Y %H:%M",
        "--site-column",
        "place",
        "--delimiter",
        ";",
        "--decimal",
        ",",
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT level FROM tank;\n"))
    assert main([*given, *written]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["2026-02-01T08:00:00Z", "2.5"], ["2026-02-01T08:01:00Z", "3.5"]]  # fmt: skip


def test_options_of_recordings_need_a_schema(capsys):
    assert main(["shell", "--time-column", "when"]) == 2
    assert "--time-column is about recordings and needs --schema" in capsys.readouterr().err
