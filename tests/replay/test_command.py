"""The command `moteloom replay`: exit codes and places of errors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from basestation.cli import replay as verb
from gateway.cli import parser_of

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = """\
road: sensed (site:integer, temp:integer) every 1 min at sites 1, 2
hits: pushed (v:integer)
kinds: stored (temp:integer, name:string) from 'kinds.csv'
"""
ROAD = "_tick,_site,temp\n0,1,20\n0,2,21\n60,1,22\n60,2,23\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "schema.sneeql").write_text(SCHEMA)
    (tmp_path / "road.csv").write_text(ROAD)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path


def call(folder, *arguments):
    """Run the command; the exit code."""
    given = ["--schema", str(folder / "schema.sneeql"), *arguments]
    return verb.run(parser_of("replay", verb).parse_args(given))


def road(folder, query, *arguments):
    return call(folder, "--input", f"road={folder}/road.csv", *arguments, query)


def error_line(capsys):
    (line,) = capsys.readouterr().out.splitlines()
    return json.loads(line)


# --- what was received -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("SELECT temp FROM road [NOW]", ["road: 4 received, 4 accepted"]),
        ("SELECT v FROM hits", ["hits: nothing received", "road: 4 received, 4 accepted"]),
    ],
)
def test_only_extents_that_queries_read_can_lack_tuples(query, lines, folder, capsys):
    assert road(folder, query) == 0
    assert sorted(line for line in capsys.readouterr().err.splitlines() if "received" in line) == lines


# --- refused ---------------------------------------------------------------------------------------------------------


def test_wrong_query_exits_with_diagnostic(folder, capsys):
    assert road(folder, "SELECT tmep FROM road", "-o", "json") == 2
    assert error_line(capsys)["code"] == "SN202"
    assert road(folder, "SELECT tmep FROM road") == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "^^^^" in printed.err


def test_wrong_schema_exits_with_diagnostic(folder, capsys):
    (folder / "schema.sneeql").write_text("road: sensed (temp:integer) at sites 1")
    assert call(folder, "SELECT temp FROM road", "-o", "json") == 2
    assert error_line(capsys)["code"] == "SN425"


@pytest.mark.parametrize("bad", [["--input", "road"], ["--until", "-1"], ["--until", "noon"], ["-o", "xml"], []])
def test_wrong_arguments_print_usage(folder, bad):
    with pytest.raises(SystemExit) as left:
        call(folder, *bad, *(["SELECT temp FROM road"] if bad else []))
    assert left.value.code == 2


# --- bad input -------------------------------------------------------------------------------------------------------


def test_bad_input_names_file_row_and_column(folder, capsys):
    (folder / "road.csv").write_text(ROAD.replace("22", "warm"))
    assert road(folder, "SELECT temp FROM road") == 3
    assert (
        capsys.readouterr().err == f"SN506: {folder}/road.csv, row 3, column temp: expected an integer, found `warm`\n"
    )
    assert road(folder, "SELECT temp FROM road", "-o", "json") == 3
    assert error_line(capsys) == {
        "type": "error", "kind": "input", "code": "SN506", "file": f"{folder}/road.csv", "row": 3, "column": "temp",
        "message": "expected an integer, found `warm`", "expected": [], "help": None,
    }  # fmt: skip


def test_misspelt_name_gets_suggestion(folder, capsys):
    (folder / "road.csv").write_text(ROAD.replace("temp", "tmep"))
    assert road(folder, "SELECT temp FROM road") == 3
    assert capsys.readouterr().err.endswith("unknown column `tmep`; did you mean `temp`?\n")
    assert call(folder, "--input", f"raod={folder}/road.csv", "SELECT temp FROM road") == 3
    assert capsys.readouterr().err == "SN510: there is no extent `raod`; did you mean `road`?\n"


def test_missing_file_is_bad_input(folder, capsys):
    assert call(folder, "--input", "road=gone.csv", "SELECT temp FROM road") == 3
    assert capsys.readouterr().err == "SN501: gone.csv: cannot be read: No such file or directory\n"
    assert call(folder, "SELECT name FROM kinds", "-o", "json") == 3  # `from` is read beside the schema
    assert error_line(capsys)["file"] == str(folder / "kinds.csv")
    assert call(folder, "-f", "gone.sneeql", "-o", "json") == 3
    assert error_line(capsys)["code"] == "SN501"
    (folder / "schema.sneeql").unlink()
    assert call(folder, "SELECT temp FROM road") == 3


@pytest.mark.parametrize(
    "given, message",
    [
        (["road=R", "road=R"], "a second input for `road`"),
        (["road@60=R"], "`road` is sensed; only a stored extent has versions"),
        (["kinds=K", "kinds@0=K"], "two versions of `kinds` at tick 0"),
    ],
)
def test_second_input_of_stream_is_error(folder, capsys, given, message):
    (folder / "kinds.csv").write_text("temp,name\n")
    files = [g.replace("=R", f"={folder}/road.csv").replace("=K", f"={folder}/kinds.csv") for g in given]
    assert call(folder, *(part for file in files for part in ("--input", file)), "SELECT name FROM kinds") == 3
    assert message in capsys.readouterr().err


def test_delivery_before_tick_0_is_error(folder, capsys):
    (folder / "hits.csv").write_text("_arrival,v\n0,1\n-1,2\n")
    assert call(folder, "--input", f"hits={folder}/hits.csv", "SELECT v FROM hits") == 3
    assert f"{folder}/hits.csv, row 2: delivered at tick -1" in capsys.readouterr().err


def test_text_of_errors_is_bounded_and_controls_no_terminal(folder, capsys):
    assert road(folder, "; ".join(f"SELECT wrong{n} FROM road" for n in range(25))) == 2
    errors = capsys.readouterr().err
    assert errors.count("SN202") == 20 and errors.endswith("5 more errors; `-o json` prints all\n")
    assert road(folder, 'SELECT temp FROM "\x1b[2J"') == 2
    assert call(folder, "--input", "road=\x1b[2Jgone.csv", "SELECT temp FROM road") == 3
    errors = capsys.readouterr().err
    assert "\x1b" not in errors and "\\x1b[2Jgone.csv: cannot be read" in errors


# --- answered --------------------------------------------------------------------------------------------------------


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_json_output_of_windows(folder, capsys):
    assert road(folder, "SELECT MAX(temp) AS hottest FROM road [NOW]", "-o", "json") == 0
    schema, first, second, end = lines(capsys)
    assert schema == {
        "type": "schema", "query": 1, "kind": "window", "columns": [{"name": "hottest", "type": "integer"}],
    }  # fmt: skip
    assert first["rows"] == [[21]] and second["rows"] == [[23]] and second["coverage"] == {"road": [2, 2]}
    assert (end["type"], end["until"], end["ledger"]["road"]["accepted"]) == ("end", 60, 4)


def test_until_cuts_recording(folder, capsys):
    assert road(folder, "SELECT temp FROM road", "-o", "json", "--until", "30") == 0
    found = lines(capsys)
    assert [line["row"] for line in found if line["type"] == "tuple"] == [[20], [21]]
    assert found[-1]["until"] == 30 and found[-1]["ledger"]["road"]["received"] == 2


def test_table_versions_from_input_and_schema(folder, capsys):
    (folder / "kinds.csv").write_text("temp,name\n20,cold\n")
    query = "SELECT name FROM road [NOW], kinds [SCAN 1 MIN] WHERE road.temp = kinds.temp"
    assert road(folder, query, "-o", "json") == 0
    assert [line["rows"] for line in lines(capsys)[1:-1]] == [[["cold"]], []]
    (folder / "later.csv").write_text('temp,name\n22,\n23,""\n')
    versions = ["--input", f"kinds={folder}/kinds.csv", "--input", f"kinds@60={folder}/later.csv"]
    assert road(folder, query, "-o", "json", *versions) == 0
    assert [sorted(line["rows"], key=str) for line in lines(capsys)[1:-1]] == [[["cold"]], [[""], [None]]]


def test_statements_run_in_one_pass_correction_at_end(folder, capsys):
    (folder / "all.sneeql").write_text(
        "SELECT MAX(temp) FROM road [NOW];\nREVISE road SET temp = 99 WHERE temp = 20;\nSELECT site FROM road;\n"
    )
    assert call(folder, "--input", f"road={folder}/road.csv", "-o", "json", "-f", str(folder / "all.sneeql")) == 0
    found = lines(capsys)
    assert {line["query"] for line in found[:-1]} == {1, 3}
    (revised,) = [line for line in found if line.get("revision") == 1]
    assert (revised["tick"], revised["removed"], revised["added"]) == (0, [[21]], [[99]])


def test_csv_and_table_output(folder, capsys):
    assert road(folder, "SELECT site, temp FROM road WHERE temp > 21", "-o", "csv") == 0
    assert capsys.readouterr().out.splitlines() == [
        "_query,_tick,_n,_index,_revision,_weight,_used,_due,site,temp", "1,60,,3,,1,,,1,22", "1,60,,4,,1,,,2,23",
    ]  # fmt: skip
    assert road(folder, "SELECT site, temp FROM road WHERE temp > 21") == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1:] == ["     60       3     1    22", "     60       4     2    23"]
    assert "road: 4 received, 4 accepted" in printed.err


def test_at_sites_all_takes_recorded_sites(folder, capsys):
    (folder / "schema.sneeql").write_text(SCHEMA.replace("sites 1, 2", "sites all"))
    assert road(folder, "SELECT temp FROM road [NOW]", "-o", "json") == 0
    assert [line["coverage"] for line in lines(capsys)[1:-1]] == [{"road": [2, 2]}] * 2


def test_not_executable_error_points_at_query(folder, capsys):
    assert road(folder, "SELECT temp FROM road;\nEXPLAIN SELECT temp FROM road", "-o", "json") == 4
    error = error_line(capsys)
    assert (error["kind"], error["code"], error["line"]) == ("later", "SN601", 2)


def test_failed_queries_are_bounded(folder, capsys):
    twice = "SELECT temp FROM kinds WHERE temp > (SELECT temp FROM kinds)"
    (folder / "kinds.csv").write_text("temp,name\n1,a\n2,b\n")
    arguments = [";\n".join([twice] * 25)]
    assert call(folder, *arguments) == 3
    err = capsys.readouterr().err
    assert err.count("SN511: ") == 20 and "\n5 more queries failed; `-o json` prints all\n" in err
    assert call(folder, "-o", "json", *arguments) == 3
    assert capsys.readouterr().out.count('"code": "SN511"') == 25


MAIN = """
import sys
from importlib.metadata import EntryPoint
import gateway.cli

gateway.cli.entry_points = lambda group: [EntryPoint("replay", "basestation.cli.replay", group)]
sys.exit(gateway.cli.main())
"""


def test_closed_pipe_ends_quietly(folder):
    (folder / "road.csv").write_text("_tick,_site,temp\n" + "".join(f"{60 * i},1,{i}\n" for i in range(20_000)))
    arguments = ["replay", "--schema", f"{folder}/schema.sneeql", "--input", f"road={folder}/road.csv", "-o", "json"]
    command = [sys.executable, "-c", MAIN, *arguments, "SELECT temp FROM road"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141
