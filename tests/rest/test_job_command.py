"""`moteloom job` and the jobs of the Python client against a station over a socket."""

import asyncio
import json

import pytest

from basestation.station.rest_server import RestServer
from gateway.cli import dispatch
from moteloom.client import StationError, connect, connect_async
from tests.docs.commands import verbs
from tests.rest.running_station import RunningStation
from tests.rest.test_jobs import COUNT, ROWS


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    with RunningStation(tmp_path_factory.mktemp("jobs")) as station, RestServer(station.control, None) as rest:
        station.url = rest.url
        yield station


@pytest.fixture
def rows_file(tmp_path):
    path = tmp_path / "field.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS["field"]))
    return path


@pytest.fixture
def command(station, capsys):
    def run(*arguments, code=0):
        assert dispatch(["job", *arguments, "--url", station.url], verbs()) == code
        return capsys.readouterr()

    return run


def test_trial_over_a_file_is_started_listed_watched_and_deleted(command, rows_file):
    number = command("trial", COUNT, "--rows", f"field={rows_file}").out.strip()
    assert command("watch", number).out.splitlines() == [
        "  time  n  coverage", "  0     2  field 2 of 2", "  10    2  field 2 of 2"
    ]  # fmt: skip
    assert "done" in command("list").out and COUNT in command("show", number).out
    lines = [json.loads(line) for line in command("results", number, "-o", "json").out.splitlines()]
    assert [line["type"] for line in lines] == ["schema", "window", "window", "end"]
    left = command("results", number, "-o", "json", "--after", "2").out.splitlines()
    assert [json.loads(line) for line in left] == lines[2:]
    assert command("cancel", number).out.split()[2] == "done"  # it is over
    command("delete", number)
    assert f"there is no job {number}" in command("show", number, code=2).err


def test_failed_trial_says_why_and_ends_with_1(command, tmp_path):
    (tmp_path / "rows.json").write_text(json.dumps([{"_tick": 0, "_site": 3, "temp": "warm"}]))
    found = command("trial", COUNT, "--rows", f"field={tmp_path / 'rows.json'}", "--watch", code=1)
    number = int(found.err.split("job ")[1].split()[0])
    assert "failed" in found.err and "row 1" in found.err
    assert "row 1" in command("show", str(number)).out


@pytest.mark.parametrize(("rows", "code", "message"), [
    ("nofile", 3, "SN501"), ("field=nofile", 3, "SN501"), ("feild=rows", 2, "feild"),
])  # fmt: skip
def test_trial_with_wrong_rows_is_refused(command, rows_file, rows, code, message):
    rows = rows.replace("=rows", f"={rows_file}")
    if "=" not in rows:
        with pytest.raises(SystemExit):
            command("trial", COUNT, "--rows", rows)
    else:
        assert message in command("trial", COUNT, "--rows", rows, code=code).err


def test_line_that_is_no_object_is_named(command, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"_tick": 0}\n7\n')
    found = command("trial", COUNT, "--rows", f"field={tmp_path / 'rows.jsonl'}", code=3)
    assert "row 2" in found.err and "expected an object" in found.err


def test_client_follows_a_job_to_its_end(station):
    with connect(station.url) as client:
        job = client.start_trial(COUNT, rows=ROWS)
        lines = list(job.lines())
        assert [line["rows"] for line in lines if line["type"] == "window"] == [[[2]], [[2]]]
        assert (job.state, job.progress, client.job(job.number).number) == ("done", 1.0, job.number)
        assert (
            job.number in [each.number for each in client.jobs()]
            and repr(job) == f"<StationJob {job.number}, trial, done>"
        )
        assert list(job.lines(after=3)) == lines[3:] == list(job.page(3).lines)
        job.delete()
        with pytest.raises(StationError, match="there is no job"):
            client.job(job.number)


def test_lines_of_a_failed_or_cancelled_job_end_with_the_reason(station):
    async def follow(number):
        async with connect_async(station.url) as client:
            return [line async for line in (await client.job(number)).lines()]

    with connect(station.url) as client:
        job = client.start_trial(COUNT, rows={"field": [{"_tick": 0, "_site": 3, "temp": "warm"}]})
        with pytest.raises(StationError, match="row 1") as failed:
            list(job.lines())
        assert failed.value.problem["code"] == "SN506"
        with pytest.raises(StationError, match="row 1"):
            asyncio.run(follow(job.number))
        many = {"field": [{"_tick": 10 * n, "_site": 3, "temp": 1} for n in range(10_000)]}
        long = client.start_trial(COUNT, rows=many)
        long.cancel()
        assert long.description["state"] == "cancelled"
        with pytest.raises(StationError, match="was cancelled"):
            list(long.lines())


def test_async_client_does_the_same(station):
    async def use():
        async with connect_async(station.url) as client:
            job = await client.start_trial(COUNT, rows=ROWS)
            lines = [line async for line in job.lines()]
            found = await job.state(), await job.progress(), len(lines)
            await job.cancel()
            await job.delete()
            return found

    assert asyncio.run(use()) == ("done", 1.0, 4)
