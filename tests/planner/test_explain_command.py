"""The command `moteloom explain`: its output, exit codes and input errors."""

import json
from itertools import pairwise

import pytest

from basestation.cli import explain as verb
from gateway.cli import parser_of
from tests.docs.pages import ROOT

QUERY = "SELECT temp FROM road [NOW] WHERE temp > 3"


@pytest.fixture
def call(tmp_path, capsys):
    """Run the command: (exit code, standard output, standard error)."""
    schema = tmp_path / "schema.sneeql"
    schema.write_text("road: sensed (site:integer, temp:integer) every 1 min at sites 1, 2")

    def called(*arguments, schema=schema):
        code = verb.run(parser_of("explain", verb).parse_args(["--schema", str(schema), *map(str, arguments)]))
        explained = capsys.readouterr()
        return code, explained.out, explained.err

    return called


def test_explain_prints_every_level(call):
    code, out, err = call(QUERY)
    assert code == 0 and err == "" and out.startswith("query 1: window query\n")
    code, out, err = call("-o", "json", f"{QUERY}; {QUERY}")
    assert code == 0 and [json.loads(line)["query"] for line in out.splitlines()] == [1, 2]


def test_wrong_query_prints_diagnostic_as_text_or_json(call):
    code, out, err = call("SELECT tmep FROM road")
    assert code == 2 and out == "" and err.startswith("SN202")
    code, out, err = call("-o", "json", "SELECT tmep FROM road")
    assert code == 2 and json.loads(out)["code"] == "SN202" and err == ""


def test_unreadable_file_is_bad_input(call, tmp_path):
    gone = tmp_path / "gone.sneeql"
    for arguments, schema in (((QUERY,), {"schema": gone}), (("-f", gone), {})):
        code, out, err = call(*arguments, **schema)
        assert code == 3 and out == "" and err == f"SN501: {gone}: cannot be read: No such file or directory\n"
        code, out, err = call("-o", "json", *arguments, **schema)
        assert code == 3 and err == ""
        assert json.loads(out) == {
            "type": "error", "kind": "input", "code": "SN501", "file": str(gone), "row": None, "column": None,
            "message": "cannot be read: No such file or directory", "expected": [], "help": None,
        }  # fmt: skip
    (tmp_path / "latin.sneeql").write_bytes(b"SELECT '\xe9' FROM road")
    assert call("-f", tmp_path / "latin.sneeql")[0] == 3


def on_motes(capsys, deployment, query):
    """The explanation of the motes with `-c`, as JSON."""
    code = verb.run(parser_of("explain", verb).parse_args(["-c", str(deployment), "-o", "json", query]))
    out, err = capsys.readouterr()
    motes = json.loads(out)["motes"]
    assert (code, err) == (2 if "refused" in (motes or ()) else 0, "")
    return motes


@pytest.mark.promise("explain")
def test_deployment_adds_explanation_of_motes(capsys):
    office = ROOT / "examples/lab54/deployment.toml"
    [some, few] = (on_motes(capsys, office, f"SELECT temp FROM lab WHERE {w}") for w in ("temp > 20", "temp = 20"))
    for motes in (some, few):
        assert [each["mote"] for each in motes["energy"]] == list(range(1, 55)) and motes["unreached"] == []
        depth = {each["mote"]: each["level"] for each in motes["energy"]} | {0: 0}
        assert all(each["level"] == depth[each["parent"]] + 1 for each in motes["energy"])
        assert motes["worst"] == min(motes["energy"], key=lambda each: each["lifetime_days"])["mote"]
        assert 0 < motes["delivered_ms"] <= motes["round_ms"] == 30_000
    # A condition that holds more rarely is cheaper at every level, and for every mote.
    for what, figures in (("levels", ("messages", "bytes")), ("energy", ("joules",))):
        for more, less in zip(some[what], few[what], strict=True):
            assert all(more[figure] > less[figure] for figure in figures)


@pytest.mark.promise("explain")
def test_longer_deliver_within_shares_frames(capsys):
    office, query = ROOT / "examples/lab54/deployment.toml", "SELECT temp FROM lab DELIVER WITHIN {} SEC"
    explained = [on_motes(capsys, office, query.format(seconds)) for seconds in (30, 60, 300)]
    for sooner, later in pairwise(explained):
        assert sooner["round_ms"] < later["round_ms"]
        assert sum(e["joules"] for e in sooner["energy"]) > sum(e["joules"] for e in later["energy"])
    assert all(t["delivered_ms"] <= s * 1_000 for t, s in zip(explained, (30, 60, 300), strict=True))
    assert "arrives" in on_motes(capsys, office, query.format(1))["refused"]


def test_condition_without_sites_samples_nothing(capsys, tmp_path):
    arguments = ["-c", str(ROOT / "examples/roadbridge/deployment.toml"), "SELECT temp FROM road WHERE site = 9"]
    assert verb.run(parser_of("explain", verb).parse_args(arguments)) == 0
    explained = "no mote samples for it: its conditions hold at no site"
    assert f"on the motes of roadbridge\n  {explained}\n" in capsys.readouterr().out
    drawing = tmp_path / "map.svg"
    assert verb.run(parser_of("explain", verb).parse_args([*arguments, "--map", str(drawing)])) != 0
    assert explained in capsys.readouterr().err and not drawing.exists()


def test_empty_recording_gives_no_statistics(capsys, tmp_path):
    (tmp_path / "none.csv").write_text("_tick,site,temp,vibration\n")
    query = "SELECT site, temp FROM road WHERE vibration > 20"
    arguments = ["-c", str(ROOT / "examples/roadbridge/deployment.toml"), "-o", "json", query]
    explained = []
    for readings in ([], ["--readings", f"road={tmp_path / 'none.csv'}"]):
        assert verb.run(parser_of("explain", verb).parse_args([*readings, *arguments])) == 0
        explained.append(json.loads(capsys.readouterr().out.splitlines()[0])["motes"])
    assert explained[0]["levels"] == explained[1]["levels"] and explained[0]["energy"] == explained[1]["energy"]


def test_pushed_extent_needs_no_motes(capsys):
    assert on_motes(capsys, ROOT / "examples/roadbridge/deployment.toml", "SELECT weight FROM traffic") is None


def test_unreadable_deployment_is_bad_input(capsys, tmp_path):
    (tmp_path / "bad.toml").write_text("name = [")
    for name, code in (("bad.toml", "SN701"), ("gone.toml", "SN501")):
        arguments = ["-c", str(tmp_path / name), "-o", "json", QUERY]
        assert verb.run(parser_of("explain", verb).parse_args(arguments)) == 3
        assert json.loads(capsys.readouterr().out)["code"] == code


@pytest.mark.promise("explain")
def test_analyze_with_readings_counts_rows_of_operators(capsys):
    bridge = ROOT / "examples/roadbridge"
    readings = f"road={bridge / 'recording/road.csv'}"
    query = "SELECT site, MAX(temp) FROM road [FROM NOW-9 MIN TO NOW SLIDE 10 MIN] WHERE temp < 0 GROUP BY site"
    arguments = ["--schema", str(bridge / "schema.sneeql"), "--analyze", "--readings", readings, "-o", "json", query]
    assert verb.run(parser_of("explain", verb).parse_args(arguments)) == 0
    operators = {o["operator"]: o["measured"] for o in json.loads(capsys.readouterr().out)["physical"]}
    select, acquire = operators["select road.temp<0"], operators["acquire road"]
    assert acquire["rows_out"] == select["rows_in"] == 5_703 and select["rows_out"] == 1_988
    assert operators["slices of MAX(road.temp) by filter, road.site"]["inserted"] == 1_988
    assert operators["windows of slices"] is None  # a stage of the query block


def test_readings_with_schema_need_analyze(capsys):
    schema = str(ROOT / "examples/roadbridge/schema.sneeql")
    assert verb.run(parser_of("explain", verb).parse_args(["--schema", schema, "--readings", "road=x.csv", QUERY])) == 2
    assert "--readings need the motes of a deployment (-c) or --analyze" in capsys.readouterr().err
