"""Lifetimes of simulated motes come from the steady state, and agree with those that explain predicts."""

import json

import pytest

from basestation.cli import explain, sim
from gateway.cli import parser_of
from tests.simulation.scenario_judge import FOLDER

DAY_S = 86_400


def run(verb, name, *arguments):
    return verb.run(parser_of(name, verb).parse_args([*map(str, arguments)]))


def simulate(capsys, scenario, *arguments):
    """The figures and notes of one run."""
    assert run(sim, "sim", "run", scenario, *arguments, "-o", "json") == 0
    first, _ = map(json.loads, capsys.readouterr().out.splitlines())
    return first["figures"], " ".join(first["notes"])


def scenario(tmp_path, query="SELECT AVG(temp) FROM hall [NOW]", more=""):
    path = tmp_path / "some.toml"
    path.write_text(f"""deployment = "{FOLDER / "hall.toml"}"
[world.temperature]
mean = 20.0
[queries.mean]
text = "{query}"
{more}""")
    return path


@pytest.mark.promise("lifetimes-agree")
def test_explain_and_simulation_agree_on_lifetimes(tmp_path, capsys):
    figures, notes = simulate(capsys, scenario(tmp_path), "--for", "20min")
    assert run(explain, "explain", "-c", FOLDER / "hall.toml", "-o", "json", "SELECT AVG(temp) FROM hall [NOW]") == 0
    motes = json.loads(capsys.readouterr().out.splitlines()[0])["motes"]
    explained = min(each["lifetime_days"] for each in motes["energy"])
    assert figures["predicted lifetime in days"] == pytest.approx(explained, rel=0.001)
    assert figures["worst lifetime in days"] == pytest.approx(explained, rel=0.05)
    assert "hold for the steady state" in notes and "no control traffic" in notes


@pytest.mark.promise("lifetimes-agree")
def test_lifetime_does_not_depend_on_the_simulated_time(tmp_path, capsys):
    """The set-up counts in both, and its share of the energy differs."""
    short, long = (simulate(capsys, scenario(tmp_path), "--for", span)[0] for span in ("6min", "15min"))
    assert short["worst lifetime in days"] == pytest.approx(long["worst lifetime in days"], rel=0.05)
    assert short["joules of the set-up"] == long["joules of the set-up"] > 0.2 * short["joules"]
    assert long["hours of steady state"] == pytest.approx(short["hours of steady state"] + 9 / 60)


def test_lifetime_is_unknown_soon_after_a_change(tmp_path, capsys):
    later = '[queries.later]\ntext = "SELECT site, temp FROM hall"\nat = "10 min"\n'
    figures, notes = simulate(capsys, scenario(tmp_path, more=later), "--for", "12min")
    assert figures["worst lifetime in days"] is None
    assert "lifetimes are unknown" in notes and "20 are needed" in notes and "--for" in notes
    assert run(sim, "sim", "run", scenario(tmp_path, more=later), "--for", "12min") == 0
    out = capsys.readouterr().out
    assert [line.split()[-1] for line in out.splitlines() if "worst lifetime" in line] == ["-"]


def test_always_on_motes_say_so(tmp_path, capsys):
    figures, notes = simulate(capsys, scenario(tmp_path), "--for", "2min", "--always-on")
    assert 1 < figures["worst lifetime in days"] < 10 and figures["predicted lifetime in days"] is None
    assert "always listen" in notes and "explain" in notes


def test_battery_that_was_empty_counts_as_it_was(tmp_path, capsys):
    """The battery of mote 5 lasts for minutes; the others changed their parents because of that, and have no lifetime yet."""
    assert run(sim, "sim", "run", FOLDER / "battery_of_the_worst_dies.toml", "--for", "10min", "--out", tmp_path,
               "--always-on") == 0  # fmt: skip
    figures = json.loads((tmp_path / "seed-1" / "ledger.json").read_text())["figures"]
    died = [line.split() for line in (tmp_path / "seed-1" / "trace.txt").read_text().splitlines() if " died " in line]
    assert figures["motes that died"] == len(died) >= 1
    assert figures["worst lifetime in days"] == pytest.approx(float(died[0][0]) / 1_000 / DAY_S)
