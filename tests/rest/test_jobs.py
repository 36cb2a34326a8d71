"""Jobs over REST: trials of a query in a process beside the station, their progress, results and end."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from basestation.cli.run import JOB_MODULES
from basestation.jobs.process import Order
from basestation.jobs.table import JobError, JobLimits, JobState, JobTable
from basestation.jobs.worker import ENVIRONMENT
from basestation.rest.access import TokenScope
from basestation.testbed.scenarios import read_scenario
from tests.docs.pages import ROOT
from tests.rest.running_station import HEADERS, RunningStation
from tests.rest.test_access import bearer

pytestmark = pytest.mark.timeout(600)  # see wait_for_end

COUNT = "SELECT COUNT(*) AS n FROM field [NOW]"
ROWS = {"field": [{"_tick": tick, "_site": site, "temp": 20.5} for tick in (0, 10) for site in (3, 4)]}


@pytest.fixture
def station(tmp_path):
    with RunningStation(tmp_path) as running:
        yield running


def wait_for_end(look, is_over=lambda state: state not in ("waiting", "running")):
    """The job as soon as it is over. Its process has the least priority, so it waits for all others of a busy machine."""
    end = time.monotonic() + 500
    while time.monotonic() < end:
        job = look()
        if is_over(job["state"]):
            return job
        time.sleep(0.3)
    raise AssertionError(f"the job does not end: {job}")


def try_query(station, text=COUNT, rows=ROWS, headers=HEADERS, **more):
    return station.ask("POST", "/v1/trials", json={"text": text, "rows": rows}, headers=headers | more)


def test_trial_over_rows_gives_the_lines_of_replay(station):
    made = try_query(station)
    assert (made.status_code, made.json()["kind"], made.json()["request"]["rows"]) == (202, "trial", {"field": 4})
    job = wait_for_end(lambda: station.get("/v1/jobs/1").json())
    assert (job["state"], job["progress"], job["problem"]) == ("done", 1.0, None)
    answer = station.get("/v1/jobs/1/results")
    schema, *windows, end = [json.loads(line) for line in answer.text.splitlines()]
    assert schema["columns"] == [{"name": "n", "type": "integer"}]
    assert [(each["tick"], each["rows"]) for each in windows] == [(0, [[2]]), (10, [[2]])]
    assert end["ledger"]["field"]["accepted"] == 4
    assert (answer.headers["moteloom-next"], answer.headers["moteloom-complete"]) == ("4", "true")
    later = station.get("/v1/jobs/1/results?after=3&limit=1")
    assert later.text == answer.text.splitlines()[3] + "\n" and later.headers["moteloom-complete"] == "false"
    assert station.ask("DELETE", "/v1/jobs/1").status_code == 204
    gone = station.get("/v1/jobs/1")
    assert (gone.status_code, gone.json()["code"]) == (404, "no-such-job")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"text": "SELECT tmep FROM field [NOW]", "rows": ROWS}, 422, "SN202"),
        ({"text": COUNT, "rows": {"feild": []}}, 422, "no-such-extent"),
        ({"text": COUNT, "rows": {"field": "/etc/passwd"}}, 422, "bad-request"),
        ({"text": COUNT, "rows": {"field": ["/etc/passwd"]}}, 422, "bad-request"),
        ({"text": COUNT, "rows": [1]}, 422, "bad-request"),
        ({"text": COUNT, "row": {}}, 422, "bad-request"),
        ({"rows": ROWS}, 422, "bad-request"),
        ({"text": COUNT}, 409, "no-deployment"),
    ],
)
def test_wrong_trial_is_refused_before_a_process_starts(station, body, status, code):
    refused = station.ask("POST", "/v1/trials", json=body)
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert station.get("/v1/jobs").json() == {"jobs": [], "next": 0}


def test_span_that_is_none_is_refused(station):
    for span in ("soon", "0s", "400d", ""):
        refused = station.ask("POST", "/v1/trials", params={"for": span}, content=COUNT)
        assert (refused.status_code, refused.json()["code"]) == (422, "bad-request"), span


def test_rows_that_do_not_fit_fail_the_job_with_their_place(station):
    try_query(station, rows={"field": [{"_tick": 0, "_site": 3, "temp": "warm"}]})
    job = wait_for_end(lambda: station.get("/v1/jobs/1").json())
    assert job["state"] == "failed" and job["problem"]["code"] == "SN506" and "row 1" in job["problem"]["title"]


def test_same_key_gives_the_same_job(station):
    key = {"idempotency-key": "once"}
    assert [try_query(station, **key).json()["number"] for _ in range(2)] == [1, 1]
    rows = {"field": [row | {"temp": 21.5} for row in ROWS["field"]]}
    for change in ({"text": "SELECT temp FROM field [NOW]"}, {"rows": rows}):
        other = try_query(station, **change, **key)
        assert (other.status_code, other.json()["code"]) == (422, "key-reused")


def test_rows_up_to_the_limit_of_a_body_are_taken(station):
    rows = {"field": [{"_tick": 10 * n, "_site": 3, "temp": 20.5} for n in range(18_000)]}
    assert try_query(station, rows=rows).status_code == 202
    refused = try_query(station, rows={"field": 2 * rows["field"]})
    assert (refused.status_code, refused.json()["code"]) == (413, "too-long") and "1,000,000" in refused.text


@pytest.mark.promise("access")
def test_users_see_and_end_their_own_jobs(station):
    anna, ben = (bearer(station.tokens.create(name, [TokenScope.SUBMIT])) for name in ("anna", "ben"))
    assert try_query(station, headers=anna).json()["owner"] == "anna"
    assert station.get("/v1/jobs", headers=ben).json()["jobs"] == []
    for method, path in (("GET", ""), ("GET", "/results"), ("POST", "/cancel"), ("DELETE", "")):
        refused = station.ask(method, f"/v1/jobs/1{path}", headers=ben)
        assert (refused.status_code, refused.json()["code"]) == (404, "no-such-job"), path
    assert [each["number"] for each in station.get("/v1/jobs", headers=anna).json()["jobs"]] == [1]
    assert [each["number"] for each in station.get("/v1/jobs").json()["jobs"]] == [1], "an operator sees all"


SCENARIO = ROOT / "examples" / "roadbridge" / "night.scenario.toml"


def order_trial(ms, text="SELECT AVG(temp) AS mean FROM road [NOW]"):
    """An order as a station gives it, for the motes of the road bridge."""
    return {
        "text": text, "ms": ms, "seed": 1, "rows": None, "deployment": read_scenario(SCENARIO).deployment, "catalog": None,
        "scenario": str(SCENARIO), "is_always_on": True, "folder": ".",
    }  # fmt: skip


def state_of(table, number=1):
    return {"state": table.job(number).state.value}


def test_trial_on_simulated_motes_has_answers_and_figures(tmp_path):
    with JobTable(tmp_path / "jobs", JOB_MODULES) as table:
        table.start("trial", {}, order_trial(600_000), None)
        wait_for_end(lambda: state_of(table))
        assert table.job(1).problem is None
        lines = [json.loads(line) for line in table.results(1, 0, 1_000)]
    assert lines[0]["type"] == "schema" and {each["type"] for each in lines[1:-1]} == {"window"}
    assert lines[-1]["type"] == "run" and lines[-1]["figures"]["trial: answers"] == 10
    assert sum(each["revision"] == 0 for each in lines[1:-1]) == 10
    assert not (tmp_path / "jobs").exists()


def test_long_job_is_cancelled_and_the_next_one_runs(tmp_path):
    with JobTable(tmp_path / "jobs", JOB_MODULES) as table:
        table.start("trial", {}, order_trial(10**10), "anna")
        table.start("trial", {}, order_trial(60_000), "anna")
        wait_for_end(lambda: {"state": "late" if len(table.results(1, 0, 10)) == 10 else "running"})
        process = table.job(1).worker.process
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(19, os.nice(0) + 19)
        assert [table.job(number).state for number in (1, 2)] == [JobState.RUNNING, JobState.WAITING]
        assert table.cancel(1, "anna").state is JobState.CANCELLED
        assert wait_for_end(lambda: state_of(table, 2))["state"] == "done"
        assert process.poll() is not None and table.job(1).state is JobState.CANCELLED
        assert table.job(1).progress < 1 and len(table.results(1, 0, 10)) == 10, "they stay"


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (JobLimits(memory_bytes=120_000_000), "job-too-large"),
        (JobLimits(result_bytes=10_000), "results-too-long"),
        (JobLimits(cpu_seconds=4), "job-too-long"),
        (JobLimits(free_bytes=1 << 62), "disk-full"),
    ],
)
def test_job_above_a_limit_ends_with_the_reason(tmp_path, limits, code):
    with JobTable(tmp_path / "jobs", JOB_MODULES, limits) as table:
        table.start("trial", {}, order_trial(10**10), None)
        wait_for_end(lambda: state_of(table))
        assert (table.job(1).state, table.job(1).problem["code"]) == (JobState.FAILED, code), table.job(1).problem


def test_jobs_are_limited_for_each_user_and_old_ones_are_dropped(tmp_path):
    with JobTable(tmp_path / "jobs", JOB_MODULES, JobLimits(open=3, open_of_user=2, kept=1)) as table:
        for owner in ("anna", "anna", "ben"):
            table.start("trial", {}, order_trial(10**10), owner)
        for owner in ("anna", "carl"):
            with pytest.raises(JobError) as refused:
                table.start("trial", {}, order_trial(1_000), owner)
            assert refused.value.code == "too-many-jobs"
        with pytest.raises(JobError, match="no jobs of the kind `survey`"):
            table.start("survey", {}, None, "anna")
        for number in (3, 2, 1):
            table.cancel(number)
        wait_for_end(lambda: {"state": "over" if len(table.jobs(0, 9)) == 1 else "running"})


def test_oldest_results_go_where_all_need_too_many_bytes(tmp_path):
    with JobTable(tmp_path / "jobs", JOB_MODULES, JobLimits(kept_bytes=1)) as table:
        for number in (1, 2):
            table.start("trial", {}, order_trial(60_000), "anna")
            wait_for_end(lambda number=number: state_of(table, number))
        wait_for_end(lambda: {"state": "over" if len(table.jobs(0, 9)) == 1 else "running"})
        assert table.job(2).state is JobState.DONE and table.results(2, 0, 10)
        assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["2.jsonl"]


def test_full_disk_is_the_reason_of_a_job_that_cannot_write(tmp_path):
    limits = {"memory_bytes": 1 << 30, "result_bytes": 64_000_000, "cpu_seconds": 60}
    order = Order(limits, order_trial(600_000), Path("/dev/full"))
    process = subprocess.Popen(
        [sys.executable, "-m", JOB_MODULES["trial"]],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | ENVIRONMENT,
    )  # fmt: skip
    process.stdin.write(order.encode())
    process.stdin.flush()  # it stays open: its end ends the process
    last = next(line for line in process.stderr if b'"end"' in line)
    assert json.loads(last)["end"]["code"] == "disk-full"
    process.stdin.close()
    process.stderr.close()
    assert process.wait() == 1


class UnpickledAs:
    """An order that calls a function when it is read."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize(
    ("order", "code"),
    [(lambda: 0, "internal-error"), (UnpickledAs(int, "x"), "internal-error"), (UnpickledAs(bytes, 1 << 36), "job-too-large")],
    ids=["cannot be written", "cannot be read", "larger than the memory"],
)  # fmt: skip
def test_order_that_cannot_be_sent_fails_alone(tmp_path, order, code):
    """The process of the job before is kept, and reads it under the limits of that job."""
    with JobTable(tmp_path / "jobs", JOB_MODULES, kept_s={"trial": 60}) as table:
        for body in (order_trial(1_000), order, order_trial(1_000)):
            table.start("trial", {}, body, None)
        wait_for_end(lambda: state_of(table, 3))
        assert [table.job(number).state.value for number in (1, 2, 3)] == ["done", "failed", "done"]
        assert table.job(2).problem["code"] == code, table.job(2).problem


def test_job_ends_with_the_process_that_started_it(tmp_path):
    table = JobTable(tmp_path / "jobs", JOB_MODULES)
    table.start("trial", {}, order_trial(10**10), None)
    wait_for_end(lambda: {"state": "late" if table.job(1).progress > 0 else "running"})
    process = table.job(1).worker.process
    process.stdin.close()  # as when the station is killed
    wait_for_end(lambda: state_of(table))
    assert process.poll() is not None and table.job(1).state is JobState.FAILED
    table.close()
