"""The shell on a running station: queries typed at the prompt end with Ctrl-C, submitted ones stay."""

import io
import time

import pytest

from basestation.cli import query
from basestation.rest.access import TokenScope
from basestation.shell.interpreter import Interpreter
from basestation.shell.station import StationSource
from moteloom.client import connect
from tests.client.conftest import served
from tests.docs.running_station import running_station


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with served(tmp_path_factory.mktemp("shell")) as running:
        yield running


class CtrlC(io.StringIO):
    """An output whose reader presses Ctrl-C after so many lines."""

    def __init__(self, lines):
        super().__init__()
        self._left = lines

    def write(self, text):
        super().write(text)
        self._left -= text.count("\n")
        if self._left <= 0:
            self._left = 1_000
            raise KeyboardInterrupt
        return len(text)


def shell_on(running, lines=1_000):
    out, err = CtrlC(lines), io.StringIO()
    source = StationSource(connect(running.url, running.token), "a station", lambda text: print(text, file=err))
    return Interpreter(source, out, err, width=60), out, err


def test_ctrl_c_stops_a_query_of_the_prompt(running):
    shell, out, err = shell_on(running, lines=6)
    shell.run("SELECT site, temp FROM field [NOW];")
    [number] = [line.split()[1] for line in err.getvalue().splitlines() if "runs; Ctrl-C stops it" in line]
    assert f"query {number} is stopped" in err.getvalue() and "field" in out.getvalue()
    assert connect(running.url, running.token).query(number).state == "stopped"


def test_submitted_query_is_watched_and_goes_on(running):
    shell, out, _ = shell_on(running)
    shell.run("\\submit SELECT site, temp FROM field [NOW]")
    number = out.getvalue().split()[1]
    watcher, seen, _ = shell_on(running, lines=4)
    watcher.run(f"\\watch {number}")
    assert "field" in seen.getvalue() and "of 2" in seen.getvalue()
    assert connect(running.url, running.token).query(number).state in ("deploying", "running")
    for command in ("pause", "resume", "stop"):
        shell.run(f"\\{command} {number}")
    states = [line.split()[1] for line in out.getvalue().splitlines()[1:]]
    assert states[0] == "paused" and states[-1] == "stopped" and not shell.has_failed


def test_list_of_several_owners_has_names_that_watch_takes(running):
    users = [connect(running.url, running.tokens.create(name, [TokenScope.SUBMIT])) for name in ("anna", "ben")]
    queries = [user.submit("SELECT site, temp FROM field [NOW]", name="warm") for user in users]
    shell, out, _ = shell_on(running)
    shell.run("\\l")
    listed = [line.split()[2] for line in out.getvalue().splitlines() if "warm:" in line]
    assert listed == ["anna.warm:", "ben.warm:"]
    shell.run(f"\\stop {listed[1].rstrip(':')}")
    assert [query.state for query in queries] in (["running", "stopped"], ["deploying", "stopped"])
    assert out.getvalue().splitlines()[-1].split()[1:3] == ["stopped", "ben.warm:"]
    queries[0].stop()


def test_list_says_which_query_of_two_has_its_number_only(running):
    """One of them has no owner, and nothing but its number tells them apart."""
    anna = connect(running.url, running.tokens.create("anna", [TokenScope.SUBMIT]))
    text = "SELECT site, temp FROM field [NOW]"
    anna.submit(text, name="cold")
    running.runner.call(lambda now_ms: running.network.durable.submit(text, now_ms, name="cold"))
    shell, out, err = shell_on(running)
    shell.run("\\l")
    listed = [line.partition(":")[0].split(maxsplit=2)[2] for line in out.getvalue().splitlines() if "cold" in line]
    assert listed == ["anna.cold", "cold (by number)"]
    shell.run("\\stop cold")
    assert "2 queries have the name `cold`" in err.getvalue()
    for each in connect(running.url, running.token).queries():
        if each.description["name"] == "cold":
            each.stop()


def test_refused_statement_shows_the_diagnostic_of_the_station(running):
    shell, _, err = shell_on(running)
    for text in ("SELECT tmep FROM field;", "\\stop 9999", "\\watch missing"):
        shell.run(text)
    assert "^^^^" in err.getvalue() and "there is no query 9999" in err.getvalue() and shell.has_failed


def test_describe_and_completion_use_the_extents_of_the_station(running):
    shell, out, _ = shell_on(running)
    shell.run("\\d field")
    assert out.getvalue().split()[:2] == ["column", "type"]
    assert "temp" in out.getvalue()


def test_plot_of_a_running_query_ends_with_ctrl_c(running):
    station = connect(running.url, running.token)
    query = station.submit("SELECT site, temp FROM field [NOW]")
    while len(query.current()) < 4:
        time.sleep(0.1)
    query.stop()
    shell, out, _ = shell_on(running)
    shell.run(f"\\plot {query.number}")
    assert [line.split()[:3] for line in out.getvalue().splitlines()] == [["site", "3", "temp"], ["site", "4", "temp"]]


def test_watched_revision_that_changes_no_row_says_so():
    revised = {"type": "window", "time": "t", "revision": 1, "coverage": {"tank": [2, 2]}, "added": [], "removed": []}
    assert query._line(revised) == "t revision 1  [tank 2 of 2]  the same rows"
    first = {"type": "window", "time": "t", "revision": 0, "coverage": {"tank": [2, 2]}, "rows": []}
    assert query._line(first) == "t  [tank 2 of 2]  no rows"


def test_correction_is_a_statement_of_the_station(running):
    shell, _, err = shell_on(running)
    for text in ("DELETE FROM field WHERE temp > 1000;", "REVISE field SET temp = 20 WHERE temp > 1000;"):
        shell.run(text)
    assert "delete on field is carried out" in err.getvalue() and "revise on field" in err.getvalue()
    assert not shell.has_failed
    shell.run("DELETE FROM feild;")
    assert "field" in err.getvalue() and shell.has_failed


def test_trial_of_the_prompt_shows_answers_and_ctrl_c_cancels_it(tmp_path):
    start = "moteloom run --simulate examples/roadbridge/night.scenario.toml --speed 60"
    with (
        running_station(start, tmp_path) as station,
        connect(station.url, data=station.folder / "moteloom-data") as client,
    ):
        out, err = CtrlC(5), io.StringIO()
        source = StationSource(client, "a station", lambda text: print(text, file=err))
        Interpreter(source, out, err, width=60).run("\\try 300d SELECT COUNT(*) AS n FROM road [NOW]")
        assert "job 1 simulates 300d; Ctrl-C cancels it" in err.getvalue() and "job 1 is cancelled" in err.getvalue()
        assert "road" in out.getvalue() and client.job(1).state == "cancelled"
