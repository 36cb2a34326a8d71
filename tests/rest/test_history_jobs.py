"""Questions of history over REST: a job of Spark beside the station, its formats, its end, and the Spark that is kept."""

import io
import json
import os
import random
import time
from urllib.parse import unquote_plus

import pyarrow as pa
import pytest

from acquisition.errors import InputError
from basestation.archive.spark import java, session
from basestation.archive.spark.session import SparkFailedError
from basestation.cli.run import JOB_MODULES
from basestation.history.answer_lines import write_differences, write_lines
from basestation.jobs.process import JobReport, Order
from basestation.jobs.table import JobLimits, JobState, JobTable
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_statements
from basestation.rest.access import TokenScope
from basestation.rest.wire import restore_plus
from basestation.shell.answer_table import AnswerTable
from basestation.station import history_job
from basestation.station.assembly import read_spark_settings
from gateway.source import Source
from gateway.toml import ConfigError, read_toml
from innet.deployment.history_table import HistorySettings, read_history_table
from tests.history.in_spark import archive
from tests.rest.running_station import HEADERS, KEPT_S, RunningStation
from tests.rest.test_access import bearer
from tests.rest.test_jobs import state_of, wait_for_end
from tests.station.small_network import CATALOG

MEANS = "SELECT site, AVG(temp) AS mean FROM field [NOW] GROUP BY site"
ROWS = [{"_tick": tick, "_site": site, "temp": site + tick / 100} for tick in range(0, 100, 10) for site in (3, 4)]


LATE_ROWS = [row | ({"_arrival": 95} if (row["_tick"], row["_site"]) == (20, 4) else {}) for row in ROWS]
"""The reading of site 4 at tick 20 comes at tick 95."""


def write_archive(folder, rows=ROWS):
    archive(read_recording(CATALOG, {"field": rows}), folder, random.Random(1))


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    folder = tmp_path_factory.mktemp("station")
    write_archive(folder, LATE_ROWS)
    with RunningStation(folder) as running:
        yield running


def ask(station, text=MEANS, **more):
    return station.ask("POST", "/v1/history", content=text, **more)


def end_of(station, number):
    return wait_for_end(lambda: station.get(f"/v1/jobs/{number}").json())


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.promise("history-is-live", "access")
def test_history_job_answers_in_each_format(station, need):
    need("java")
    anna, ben = (bearer(station.tokens.create(name, [TokenScope.SUBMIT])) for name in ("anna", "ben"))
    made = station.ask("POST", "/v1/history?from=20&to=+30s", content=MEANS, headers=anna)
    assert made.json()["request"]["to"] == "+30s"
    assert (made.status_code, made.json()["kind"], made.json()["owner"]) == (202, "history", "anna")
    number = made.json()["number"]
    seen = set()

    def look():
        job = station.get(f"/v1/jobs/{number}", headers=anna).json()
        seen.add(job["doing"])
        return job

    job = wait_for_end(look)
    assert (job["state"], job["problem"], job["notes"]) == ("done", None, [])
    assert "starting Spark, which takes some 7 s" in seen
    lines = station.get(f"/v1/jobs/{number}/results", headers=anna).text.splitlines()
    schema, *windows = [json.loads(line) for line in lines]
    assert [column["name"] for column in schema["columns"]] == ["site", "mean"]
    assert [(each["type"], each["time"], sorted(each["rows"])) for each in windows] == [
        ("window", "1970-01-01T00:00:20Z", [[3, 3.2], [4, 4.2]]),
        ("window", "1970-01-01T00:00:30Z", [[3, 3.3], [4, 4.3]]),
    ]
    text = station.get(f"/v1/jobs/{number}/results.csv", headers=anna).text
    assert text.splitlines()[:2] == ["_time,_tick,site,mean", "1970-01-01T00:00:20Z,20,3,3.2"]
    table = pa.ipc.open_stream(station.get(f"/v1/jobs/{number}/results.arrow", headers=anna).content).read_all()
    assert [row["mean"] for row in table.to_pylist()] == [3.2, 4.2, 3.3, 4.3]
    for suffix in ("", ".csv", ".arrow"):
        assert station.get(f"/v1/jobs/{number}/results{suffix}", headers=ben).status_code == 404
    assert station.ask("DELETE", f"/v1/jobs/{number}", headers=anna).status_code == 204
    assert station.get(f"/v1/jobs/{number}/results.csv", headers=anna).status_code == 404


RECOMPUTE = "/v1/history/recompute?since=90&from=0&to=%2B90s"


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.promise("history-is-live", "late-readings", "access")
def test_recompute_job_answers_what_a_late_reading_changed(station, need):
    need("java")
    anna, ben = (bearer(station.tokens.create(name, [TokenScope.SUBMIT])) for name in ("anna", "ben"))
    made = station.ask("POST", RECOMPUTE, content=MEANS, headers=anna | {"idempotency-key": "once"})
    assert (made.status_code, made.json()["kind"], made.json()["owner"]) == (202, "history", "anna")
    assert made.json()["request"] == {"text": MEANS, "from": "0", "to": "+90s", "since": "90", "skip_damaged": False}
    number = made.json()["number"]
    again = station.ask("POST", RECOMPUTE, content=MEANS, headers=anna | {"idempotency-key": "once"})
    assert again.json()["number"] == number
    assert station.get(f"/v1/jobs/{number}", headers=ben).status_code == 404
    assert station.ask("POST", f"/v1/jobs/{number}/cancel", headers=ben).status_code == 404
    job = end_of(station, number)
    assert (job["state"], job["problem"]) == ("done", None)
    assert job["notes"] == [
        "1 row of `field` came late, after 1970-01-01T00:01:30Z, of 1970-01-01",
        "1 row of windows up to 1970-01-01T00:01:25Z differ",
    ]
    schema, line = map(json.loads, station.get(f"/v1/jobs/{number}/results", headers=anna).text.splitlines())
    assert [column["name"] for column in schema["columns"]] == ["site", "mean"]
    assert line == {"type": "window", "query": 1, "tick": 20, "n": 1, "time": "1970-01-01T00:00:20Z", "revision": 1,
                    "coverage": {}, "removed": [], "added": [[4, 4.2]]}  # fmt: skip
    text = station.get(f"/v1/jobs/{number}/results.csv", headers=anna).text
    assert text.splitlines() == ["_time,_tick,_change,site,mean", "1970-01-01T00:00:20Z,20,added,4,4.2"]
    arrow = station.get(f"/v1/jobs/{number}/results.arrow", headers=anna).content
    assert pa.ipc.open_stream(arrow).read_all().column("_change").to_pylist() == ["added"]


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_is_kept_for_the_next_job_and_stopped_when_idle(station, need):
    need("java")
    first = end_of(station, ask(station).json()["number"])
    assert first["state"] == "done"
    worker, _ = station.jobs._idle["history"]
    wrong = ask(station, params={"from": "5000"}).json()["number"]
    assert end_of(station, wrong)["problem"]["code"] == "no-answer"
    second = ask(station, "SELECT COUNT(*) AS n FROM field [NOW]").json()["number"]
    assert end_of(station, second)["state"] == "done"
    assert station.jobs._idle["history"][0] is worker and worker.process.poll() is None
    children = children_of(worker.process.pid)
    assert len(children) == 1, "Java"
    assert os.getpriority(os.PRIO_PROCESS, children[0]) == min(19, os.nice(0) + 19)
    end = time.monotonic() + KEPT_S + 30
    while station.jobs.has_process("history") or any(is_alive(each) for each in children):
        assert time.monotonic() < end, "Spark stays"
        time.sleep(0.1)
    assert worker.process.poll() is not None


def test_recompute_job_is_cancelled_by_its_owner(station, need):
    need("java")
    anna = bearer(station.tokens.create("anna again", [TokenScope.SUBMIT]))
    waiting = station.ask("POST", RECOMPUTE, content=MEANS, headers=anna).json()["number"]
    cancelled = station.ask("POST", f"/v1/jobs/{waiting}/cancel", headers=anna).json()
    assert (cancelled["number"], cancelled["state"]) == (waiting, "cancelled")


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize(("text", "query", "code", "says"), [
    (MEANS, "", "bad-request", "since"),
    (MEANS, "?since=soon", "bad-request", "`since`"),
    (MEANS, "?since=20&from=soon", "bad-request", "`from`"),
    ("SELECT COUNT(*) FROM field.HISTORY", "?since=20", "no-answer", "a one-off query has one answer"),
    ("SELECT tmep FROM field [NOW]", "?since=20", "SN202", "tmep"),
])  # fmt: skip
def test_wrong_recompute_is_refused_before_a_process_starts(station, text, query, code, says):
    before = station.get("/v1/jobs").json()
    refused = station.ask("POST", f"/v1/history/recompute{query}", content=text)
    assert (refused.status_code, refused.json()["code"]) == (422, code) and says in str(refused.json()), refused.json()
    assert station.get("/v1/jobs").json() == before


@pytest.mark.promise("access")
def test_recompute_needs_the_scope_of_questions(station):
    reader = bearer(station.tokens.create("reader", [TokenScope.READ]))
    refused = station.ask("POST", "/v1/history/recompute?since=20", content=MEANS, headers=reader)
    assert (refused.status_code, refused.json()["code"]) == (403, "lesser-scope")


def test_recompute_without_late_arrivals_starts_no_spark(tmp_path, monkeypatch, capsys):
    def start(*_, **__):
        raise AssertionError("Spark was started")

    monkeypatch.setattr(history_job, "start_session", start)
    write_archive(tmp_path)
    order = Order({"result_bytes": 1}, order_history(tmp_path, MEANS, since=80), tmp_path / "1.jsonl")
    lines = io.StringIO()
    history_job.HistoryJobs().carry_out(order, lines, JobReport(io.StringIO()))
    assert [json.loads(line)["type"] for line in lines.getvalue().splitlines()] == ["schema"]
    notes = [line["note"] for line in map(json.loads, capsys.readouterr().err.splitlines()) if "note" in line]
    assert notes == ["0 rows of windows up to 1970-01-01T00:01:15Z differ"]
    assert (tmp_path / "1.csv").read_text() == "_time,_tick,_change,site,mean\n"


@pytest.mark.parametrize(("text", "table", "expected"), [
    (MEANS, {"_tick": [20, 20, 30], "_n": [1, 1, 1], "_change": ["removed", "added", "added"], "site": [3, 3, 4], "mean": [1.5, None, 2.5]},
     [{"tick": 20, "n": 1, "removed": [[3, 1.5]], "added": [[3, None]]}, {"tick": 30, "n": 1, "removed": [], "added": [[4, 2.5]]}]),
    ("SELECT site FROM field", {"_tick": [20, 20], "_change": ["added", "removed"], "site": [3, 4]},
     [{"tick": 20, "weight": -1, "row": [4]}, {"tick": 20, "weight": 1, "row": [3]}]),
])  # fmt: skip
def test_lines_of_differences_are_those_of_revisions(text, table, expected):
    file = io.StringIO()
    [given] = read_statements([text], CATALOG)
    write_differences(pa.table(table), given.plan, file)
    _, *lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [{key: line[key] for key in of} for line, of in zip(lines, expected, strict=True)] == expected
    shown = AnswerTable()
    printed = [text for each in map(json.loads, file.getvalue().splitlines()) for text in shown.lines(each)]
    assert printed[1].startswith("- 1970-01-01T00:00:20Z")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(each) for each in file.read().split()]


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_lines_of_history_are_those_of_replay():
    """So `moteloom job results` prints them, and the client reads them. Answers of a stream have a line each."""
    for text, table, expected in (
        (MEANS, {"_tick": [20, 20, 30], "_n": [1, 1, 1], "site": [3, 4, 3], "mean": [3.2, None, 3.3]}, [[[3, 3.2], [4, None]], [[3, 3.3]]]),
        ("SELECT site FROM field", {"_tick": [20, 30], "site": [3, 4]}, [[3], [4]]),
    ):  # fmt: skip
        file = io.StringIO()
        [given] = read_statements([text], CATALOG)
        write_lines(pa.table(table), given.plan, file)
        schema, *lines = [json.loads(line) for line in file.getvalue().splitlines()]
        assert [line.get("rows", line.get("row")) for line in lines] == expected
        shown = AnswerTable()
        printed = [line for each in (schema, *lines) for line in shown.lines(each)]
        assert "1970-01-01T00:00:20Z" in printed[1] and printed[1].split()[1] == "3"


def test_wrong_question_is_refused_before_a_process_starts(station):
    before = station.get("/v1/jobs").json()
    for more, code in (
        ({"text": "SELECT tmep FROM field [NOW]"}, "SN202"),
        ({"text": "DELETE FROM field WHERE temp = 1"}, "SN601"),
        ({"params": {"from": "soon"}}, "bad-request"),
        ({"params": {"to": "5 parrots"}}, "bad-request"),
    ):
        refused = ask(station, **more)
        assert (refused.status_code, refused.json()["code"]) == (422, code), more
    for body in ({"text": MEANS, "rows": {}}, {}):
        refused = station.ask("POST", "/v1/history", json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "bad-request"), body
    assert station.get("/v1/jobs").json() == before


@pytest.mark.parametrize(("moment", "expected"), [
    ("+2h", "+2h"), ("%2B2h", "+2h"), ("-7d", "-7d"), ("2026-11-18+08:00", "2026-11-18 08:00"),
    ("2026-11-18T08:00:00+01:00", "2026-11-18T08:00:00+01:00"), ("2026-11-18+08:00+01:00", "2026-11-18 08:00+01:00"),
])  # fmt: skip
def test_plus_of_a_moment_in_an_url_is_a_plus(station, monkeypatch, moment, expected):
    monkeypatch.setattr(session, "_available_mb", lambda: 300)
    monkeypatch.setattr(station.jobs, "has_process", lambda kind: False)
    assert restore_plus(unquote_plus(moment)) == expected
    refused = station.ask("POST", f"/v1/history?from={moment}", content=MEANS)
    assert (refused.status_code, refused.json()["code"]) == (503, "spark-unavailable"), "it is a moment"


@pytest.mark.promise("errors-point")
def test_history_is_refused_where_java_or_memory_is_missing(station, monkeypatch, tmp_path):
    monkeypatch.setattr(session, "_available_mb", lambda: 300)
    monkeypatch.setattr(session, "find_java", lambda: tmp_path)
    refused = ask(station)
    assert (refused.status_code, refused.json()["code"]) == (503, "spark-unavailable")
    assert "Spark needs 900 MB of free memory, and 300 MB are available" in refused.json()["title"]
    monkeypatch.setattr(session, "find_java", lambda: java.find_java({"PATH": ""}, tmp_path))
    refused = ask(station)
    assert (refused.status_code, refused.json()["code"]) == (503, "spark-unavailable")
    assert "sudo apt install openjdk-17-jre-headless" in refused.json()["title"]


def test_trial_has_no_csv(station):
    made = station.ask("POST", "/v1/trials", json={"text": MEANS, "rows": {"field": ROWS}}).json()["number"]
    end_of(station, made)
    refused = station.get(f"/v1/jobs/{made}/results.csv")
    assert (refused.status_code, refused.json()["code"]) == (409, "no-such-format")


def test_file_of_results_is_sent_whole(station, monkeypatch):
    """Whatever `Range` a request has, and also where the job is deleted meanwhile."""
    number = station.ask("POST", "/v1/trials", json={"text": MEANS, "rows": {"field": ROWS}}).json()["number"]
    assert end_of(station, number)["state"] == "done"
    path, text = f"/v1/jobs/{number}/results.csv", "".join(f"{line}\r\n" for line in range(30_000))
    station.jobs.results_file(number, ".csv").write_text(text, newline="")
    for more in ({}, *({"range": span} for span in ("bytes=0-3", "bytes=900000-900001", "bytes=x", "parrots=1"))):
        sent = station.get(path, headers=HEADERS | more)
        assert (sent.status_code, sent.headers["content-length"], sent.text) == (200, str(len(text)), text), more
        assert "accept-ranges" not in sent.headers
    begin = station.control.open_job_file

    def open_and_delete(*given):
        file = begin(*given)
        station.control.delete_job(number)
        return file

    monkeypatch.setattr(station.control, "open_job_file", open_and_delete)
    assert station.get(path).text == text
    assert station.get(path).status_code == 404


@pytest.mark.promise("errors-point")
def test_deployment_says_which_spark_is_kept(tmp_path):
    file = tmp_path / "deployment.toml"
    file.write_text('[history]\nmemory_mb = 1024\nidle_s = 0\nmaster = "spark://spark1:7077"\n')
    assert read_spark_settings(str(file)) == HistorySettings(1024, 0, "spark://spark1:7077")
    assert read_spark_settings(None) == HistorySettings()
    for master, says in (("yarn", r"expected `local\[N\]`"), ("sc://host:15002", "keeps a Spark of its own")):
        file.write_text(f'[history]\nmaster = "{master}"\n')
        with pytest.raises(InputError, match=f"`history.master`: .*{says}"):
            read_spark_settings(str(file))
    top = read_toml(Source("[history]\nmemory_mb = 100\nidel_s = 5\n", "deployment.toml"))
    read_history_table(top)
    assert [fault.code for fault in ConfigError(top.faults).diagnostics] == ["SN704", "SN702"]


def order_history(folder, text, **more):
    return {
        "text": text, "begin": None, "until": None, "since": None, "skip_damaged": False, "settings": HistorySettings(),
        "data": folder, "catalog": CATALOG, "tables": {}, **more,
    }  # fmt: skip


def damage_footer(path):
    """Change the footer of a file; its end stays that of a Parquet file."""
    content = path.read_bytes()
    path.write_bytes(content[:-108] + bytes(100) + content[-8:])


@pytest.mark.promise("bad-files", "errors-point")
def test_history_job_names_files_below_the_data_directory(tmp_path):
    write_archive(tmp_path)
    [file, *_] = sorted(tmp_path.rglob("part-*.parquet"))
    content, day = file.read_bytes(), file.parent.with_name("date=parrots")
    known, archived = str(file.relative_to(tmp_path)), tmp_path / "archive"
    with JobTable(tmp_path / "jobs", JOB_MODULES, kept_s={"history": 60}) as table:
        for number, (harm, mend, asked, code, says) in enumerate(
            (
                (lambda: file.write_bytes(content[:-9]), lambda: file.write_bytes(content), {}, "damaged-file", known),
                (lambda: damage_footer(file), lambda: file.write_bytes(content), {}, "damaged-file", known),
                (day.mkdir, day.rmdir, {}, "SN501", str(day.relative_to(tmp_path))),
                (str, str, {"begin": 50, "until": 20}, "no-answer", "the range begins at tick 50, after the last window"),
                (lambda: archived.rename(tmp_path / "x"), str, {}, "no-answer", "holds no reading"),
            ), 1,
        ):  # fmt: skip
            harm()
            table.start("history", {}, order_history(tmp_path, MEANS, **asked), None)
            wait_for_end(lambda number=number: state_of(table, number))
            mend()
            problem = table.job(number).problem
            assert problem["code"] == code and says in problem["title"], problem
            assert str(tmp_path) not in str(problem) and "--" not in str(problem), problem
            assert ("skip_damaged=true" in str(problem)) == (code == "damaged-file")


@pytest.mark.promise("bad-files")
def test_note_names_a_damaged_file_below_the_data_directory(tmp_path, monkeypatch, capsys):
    """Spark does not start."""
    write_archive(tmp_path)
    write_archive(tmp_path, [{"_tick": 86_400, "_site": 3, "temp": 1.5}])
    [file, *_] = sorted(tmp_path.rglob("part-*.parquet"))
    file.write_bytes(file.read_bytes()[:-9])
    started = RuntimeError("Spark would be started now")

    def start(*_, **__):
        raise started

    monkeypatch.setattr(history_job, "start_session", start)
    order = Order({"result_bytes": 1}, order_history(tmp_path, MEANS, skip_damaged=True), tmp_path / "1.jsonl")
    with pytest.raises(RuntimeError) as left:
        history_job.HistoryJobs().carry_out(order, io.StringIO(), JobReport(io.StringIO()))
    assert left.value is started
    notes = [line["note"] for line in map(json.loads, capsys.readouterr().err.splitlines()) if "note" in line]
    assert notes[0].startswith(f"left out {file.relative_to(tmp_path)}: ") and str(tmp_path) not in notes[0]


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_failure_of_spark_names_files_below_the_data(tmp_path, scheme):
    """As Spark writes the paths of files whose pages are damaged: as URLs."""
    with pytest.raises(SparkFailedError) as failed, history_job._name_files(tmp_path):
        raise SparkFailedError(
            f"Spark failed: while reading file {scheme}{tmp_path}/archive/extent=field/part-1.parquet."
        )
    assert str(failed.value) == "Spark failed: while reading file archive/extent=field/part-1.parquet."


HEAVY = "SELECT COUNT(*) AS n FROM field [FROM NOW-40000 TO NOW SLIDE 1 SEC]"
LIMITS = JobLimits(cpu_seconds=8, result_bytes=100_000)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_history_job_ends_at_its_limits_and_when_cancelled(tmp_path, need):
    """A job above a limit leaves Spark to the next one; one that is cancelled ends Spark."""
    need("java")
    rows = [{"_tick": tick, "_site": site, "temp": 1.5} for tick in range(0, 50_000, 10) for site in (3, 4)]
    write_archive(tmp_path, rows)
    with JobTable(tmp_path / "jobs", JOB_MODULES, LIMITS, kept_s={"history": 60}) as table:
        for number, (text, code) in enumerate(
            ((HEAVY, "job-too-long"), ("SELECT site, temp FROM field", "results-too-long")), 1
        ):
            table.start("history", {}, order_history(tmp_path, text), None)
            wait_for_end(lambda number=number: state_of(table, number))
            assert table.job(number).problem["code"] == code, table.job(number).problem
        worker, _ = table._idle["history"]
        [child] = children_of(worker.process.pid)
        table.start("history", {}, order_history(tmp_path, HEAVY), None)
        wait_for_end(lambda: {"state": "late" if "tasks of Spark" in str(table.job(3).doing) else "running"})
        assert table.cancel(3).state is JobState.CANCELLED
        wait_for_end(lambda: {"state": "running" if is_alive(child) else "over"})
        wait_for_end(lambda: {"state": "running" if table.has_process("history") else "over"})
    assert not (tmp_path / "jobs").exists()
