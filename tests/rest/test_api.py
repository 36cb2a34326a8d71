"""The REST interface in front of a running station: queries, results that resume, and problems in one form."""

import json
import threading

import pytest

from basestation.rest.api import make_api
from basestation.rest.prepared_answers import LARGEST_ANSWER, MOST_ANSWERS, PreparedAnswers
from basestation.results.feed import UpdatesExpiredError
from basestation.station.retention import Budget
from tests.rest.running_station import HEADERS, RunningStation
from tests.station.small_network import QUERIES


@pytest.fixture
def station(tmp_path):
    with RunningStation(tmp_path) as running:
        yield running


def test_query_is_submitted_listed_shown_and_stopped(station):
    made = station.submit(QUERIES[0])
    assert made.status_code == 201
    query = made.json()
    assert (query["number"], query["text"], query["kind"]) == (1, QUERIES[0], "window")
    assert query["columns"] == [{"name": "temp", "type": "float", "scale": 2, "unit": "Cel"}]
    assert station.ask("POST", "/v1/queries", json={"text": QUERIES[1]}).json()["number"] == 2
    assert [each["number"] for each in station.get("/v1/queries").json()["queries"]] == [1, 2]
    assert station.get("/v1/queries", params={"after": 1}).json()["next"] == 2
    for _ in range(2):
        assert station.ask("POST", "/v1/queries/1/stop").json()["state"] == "stopped"
    assert station.get("/v1/queries/1").json()["state"] == "stopped"
    stopped = station.get("/v1/queries", params={"state": "stopped"}).json()["queries"]
    assert [each["number"] for each in stopped] == [1]


def test_refused_text_is_a_problem_with_every_diagnostic(station):
    refused = station.submit("SELECT tmep, vlot FROM field [NOW]")
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
    problem = refused.json()
    assert [(d["code"], d["line"], d["column"], d["length"]) for d in problem["diagnostics"]] == [
        ("SN202", 1, 8, 4), ("SN202", 1, 14, 4)]  # fmt: skip
    assert "did you mean `temp`" in problem["diagnostics"][0]["help"]
    assert "^^^^" in problem["diagnostics"][0]["rendered"]
    assert station.get("/v1/queries").json()["queries"] == []


@pytest.mark.promise("resume")
def test_pages_follow_one_another(station):
    station.submit(QUERIES[0])
    updates = station.wait_for(1, 5)
    assert [each["number"] for each in updates[:5]] == [1, 2, 3, 4, 5]
    page = station.get("/v1/queries/1/results", params={"after": 2, "limit": 2}).json()
    assert page["updates"] == updates[2:4] and page["next"] == 4
    lines = station.get("/v1/queries/1/results.jsonl", params={"after": 3, "limit": 2}).text.splitlines()
    assert [json.loads(line) for line in lines] == updates[3:5]


def test_update_has_number_time_coverage_and_rows(station):
    station.submit(QUERIES[0])
    update = station.wait_for_full_coverage(1)
    assert set(update) == {"number", "type", "query", "tick", "n", "revision", "coverage", "rows", "time"}
    assert update["coverage"] == {"field": [2, 2]} and len(update["rows"]) == 2
    assert update["time"].endswith("Z")


@pytest.mark.promise("resume")
def test_expired_results_name_where_to_begin(station):
    station.submit(QUERIES[0])
    station.wait_for(1, 6)
    station.runner.call(lambda now_ms: station.network.journal.trim(Budget(numbers=2), now_ms))
    problem = station.get("/v1/queries/1/results").json()
    assert (problem["status"], problem["code"]) == (410, "results-gone")
    begin = int(problem["detail"].removeprefix("begin with after="))
    first = station.get("/v1/queries/1/results", params={"after": begin}).json()["updates"][0]
    assert first["number"] == begin + 1


@pytest.mark.promise("resume")
def test_slow_event_stream_ends_with_the_problem(station):
    station.submit(QUERIES[0])
    station.wait_for(1, 6)
    control = station.control
    pages = iter([control.results("1", 0, 1), control.results("1", 0, 2)])  # the first one is only looked at
    epoch = station.network.journal.epoch

    class Slow:
        """Its second page is not kept any more."""

        def find(self, query, only, own):
            return int(query)

        def results(self, number, after, limit):
            for page in pages:
                return page
            raise UpdatesExpiredError(50)

        def number_before(self, query, at_ms):
            return 2

        def on_results(self, wake):
            control.on_results(wake)

    station.api = make_api(Slow(), None)
    text = station.get("/v1/queries/1/results", headers={"accept": "text/event-stream"}).text
    *events, last, end = text.split("\n\n")
    assert [event.splitlines()[0] for event in events] == [f"id: {epoch}-1-{n}" for n in (1, 2)] and end == ""
    kind, data = last.splitlines()
    assert kind == "event: problem"
    problem = json.loads(data.removeprefix("data: "))
    assert (problem["code"], problem["detail"]) == ("results-gone", "begin with after=49")


@pytest.mark.promise("resume")
def test_event_stream_resumes_behind_the_last_event_id(station, monkeypatch):
    station.submit(QUERIES[0])
    station.wait_for(1, 5)

    def events(count, **headers):
        """The first events of a stream, read from the application as a server would send them."""
        import asyncio

        async def read():
            found, buffer = [], ""
            scope = {
                "type": "http", "method": "GET", "path": "/v1/queries/1/results", "raw_path": b"/v1/queries/1/results",
                "query_string": b"", "scheme": "http", "http_version": "1.1", "asgi": {"version": "3.0"},
                "headers": [(k.encode(), v.encode()) for k, v in (HEADERS | {"accept": "text/event-stream"} | headers).items()],
            }  # fmt: skip
            done = asyncio.Event()

            async def receive():
                await done.wait()
                return {"type": "http.disconnect"}

            async def send(message):
                nonlocal buffer
                buffer += message.get("body", b"").decode()
                while "\n\n" in buffer:
                    event, _, buffer = buffer.partition("\n\n")
                    found.append(dict(line.split(": ", 1) for line in event.splitlines() if not line.startswith(":")))
                if len(found) >= count:
                    done.set()

            await asyncio.wait_for(station.api(scope, receive, send), 60)
            return found[:count]

        return asyncio.run(read())

    bounds, threads = station.control.event_bounds, set()

    def noted_bounds():
        threads.add(threading.current_thread())
        return bounds()

    monkeypatch.setattr(station.control, "event_bounds", noted_bounds)
    epoch = station.network.journal.epoch
    first = events(3)
    assert [event["id"] for event in first] == [f"{epoch}-1-{n}" for n in (1, 2, 3)]
    assert json.loads(first[2]["data"])["number"] == 3
    for last in ("3", f"{epoch}-1-3"):
        assert [event["id"] for event in events(2, **{"last-event-id": last})] == [f"{epoch}-1-4", f"{epoch}-1-5"]
    assert threads and threading.main_thread() not in threads  # the event loop waits for no file


def test_same_idempotency_key_gives_the_same_query(station):
    key = {"Idempotency-Key": "once"}
    assert [station.submit(QUERIES[0], **key).json()["number"] for _ in range(3)] == [1, 1, 1]
    reused = station.submit(QUERIES[1], **key)
    assert (reused.status_code, reused.json()["code"]) == (422, "key-reused")
    assert station.submit(QUERIES[1]).json()["number"] == 2


def test_station_describes_motes_extents_events_and_health(station):
    station.submit(QUERIES[0])
    station.wait_for(1, 2)
    motes = station.get("/v1/motes").json()["motes"]
    assert [(mote["mote"], mote["parent"], mote["is_silent"]) for mote in motes] == [(3, 0, False), (4, 0, False)]
    assert motes[0]["readings"]["field"]["received"] >= 1 and motes[0]["state"] in ("ok", "late")
    sites = station.get("/v1/extents/field/latest").json()["sites"]
    assert [site["site"] for site in sites] == [3, 4] and sites[0]["values"]["temp"]["value"] > 0
    assert station.get("/v1/extents/nothing/latest").json()["detail"] == "extents are field"
    assert station.get("/v1/topology").json()["parents"][0] == {"mote": 3, "parent": 0}
    [extent] = station.get("/v1/extents").json()["extents"]
    assert (extent["name"], extent["kind"], extent["every_ticks"]) == ("field", "sensed", 10)
    first = station.get("/v1/events", params={"limit": 1}).json()
    assert [each["event"] for each in first["events"]] == ["query deploying"] and first["next"] == 1
    more = station.get("/v1/events", params={"after": 1, "query": 1, "wait": 60}).json()["events"]
    assert [(each["event"], each["query"]) for each in more] == [("query running", 1)]
    assert station.get("/v1/events", params={"query": 9}).json() == {"events": [], "next": 2}
    health = station.get("/v1/health")
    assert health.status_code == 200 and health.json()["ok"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/queries/9", 404, "no-such-query"),
        ("GET", "/v1/queries/9/results", 404, "no-such-query"),
        ("GET", "/v1/queries/9/results.jsonl", 404, "no-such-query"),
        ("POST", "/v1/queries/9/stop", 404, "no-such-query"),
        ("GET", "/v1/queries/one/results", 404, "no-such-query"),
        ("GET", "/v1/queries/1e0", 404, "no-such-query"),
        ("POST", "/v1/queries/none/resume", 404, "no-such-query"),
        ("GET", "/v1/queries?state=lost", 422, "bad-request"),
        ("GET", "/v1/queries/1/results?after=-1", 422, "bad-request"),
        ("GET", "/v1/queries/1/results?limit=0", 422, "bad-request"),
        ("GET", "/v1/events?after=99999999999999999999", 422, "bad-request"),
        ("GET", "/v1/queries/1/results?wait=1e9", 422, "bad-request"),
        ("GET", "/v1/queries?limit=100000", 422, "bad-request"),
        ("PUT", "/v1/queries", 405, "refused"),
        ("GET", "/v2", 404, "no-such-route"),
    ],
)
def test_problems_have_one_form(station, method, path, status, code):
    response = station.ask(method, path)
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, response.json()["status"], response.json()["code"]) == (status, status, code)
    assert response.json()["title"]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"\xff\xfe", "text/plain", 422),
        (b"{}", "application/json", 422),
        (b'{"text": 1}', "application/json", 422),
        (b'{"text": "SELECT 1", "mane": 2}', "application/json", 422),
        (b'{"text": "SELECT \\ud800 FROM field [NOW]"}', "application/json", 422),
        (b"[" * 100_000, "application/json", 422),
        (b"x" * 500_000, "text/plain", 413),
        (b"", "text/plain", 422),
    ],
)
def test_bodies_that_are_no_query_are_refused(station, body, kind, status):
    response = station.ask("POST", "/v1/queries", content=body, headers=HEADERS | {"content-type": kind})
    assert response.status_code == status and response.json()["title"]
    assert station.get("/v1/queries").json()["queries"] == []


def test_named_query_is_paused_resumed_replaced_and_drained(station):
    window = QUERIES[2]
    made = station.ask("POST", "/v1/queries", json={"text": window, "name": "mean-temp"}).json()
    assert (made["number"], made["name"]) == (1, "mean-temp")
    taken = station.ask("POST", "/v1/queries?name=mean-temp", content=window)
    assert (taken.status_code, taken.json()["code"]) == (409, "not-in-this-state")
    assert station.ask("POST", "/v1/queries/mean-temp/pause").json()["state"] == "paused"
    again = station.ask("POST", "/v1/queries/mean-temp/pause")
    assert (again.status_code, again.json()["detail"]) == (409, "`pause` is for a query that is deploying or running")
    assert station.ask("POST", "/v1/queries/1/resume").json()["state"] in ("deploying", "running")
    new = station.ask("POST", "/v1/queries/mean-temp/replace", content=window).json()
    assert (new["number"], new["name"]) == (2, "mean-temp")
    assert station.get("/v1/queries/mean-temp").json()["number"] == 2
    old = station.get("/v1/queries/1").json()
    assert old["state"] in ("draining", "finished") and old["reason"] == "replaced by query 2"
    assert station.ask("POST", "/v1/queries/2/stop?drain=true").json()["state"] in ("draining", "finished")


def test_query_has_an_account(station):
    number = station.submit(QUERIES[0]).json()["number"]
    station.wait_for(number, 3)
    found = station.get(f"/v1/queries/{number}/account").json()
    assert found["windows"] >= 3 and found["results_kept"] >= 3 and found["result_bytes"] > 0
    assert found["engine_seconds"] > 0 and found["state_bytes"] >= 0 and found["joules_per_hour"] is None
    assert station.get("/v1/queries/9/account").status_code == 404


def test_query_has_active_hours(station):
    path, always = "/v1/queries?active=", "00:00-24:00 mon-sun Europe/Berlin"
    made = station.ask("POST", path + always, content=QUERIES[0]).json()
    assert made["active"] == "00:00-24:00 mon,tue,wed,thu,fri,sat,sun Europe/Berlin"
    assert station.ask("POST", "/v1/queries/1/replace", content=QUERIES[1]).json()["active"] == made["active"]
    wrong = station.ask("POST", path + "06:00-18:00 mon-fri Europe/Berln", content=QUERIES[0])
    assert (wrong.status_code, wrong.json()["code"]) == (422, "bad-active-hours")
    assert "did you mean `Europe/Berlin`?" in wrong.json()["title"]


def test_replace_with_if_match_needs_the_query_that_was_read(station):
    station.ask("POST", "/v1/queries", json={"text": QUERIES[0], "name": "mean"})
    etag = station.get("/v1/queries/mean").headers["etag"]
    assert etag == '"1"'

    def replace(given):
        headers = HEADERS | {"if-match": given}
        return station.ask("POST", "/v1/queries/mean/replace", content=QUERIES[1], headers=headers)

    assert replace(etag).json()["number"] == 2
    late = replace(etag)
    assert (late.status_code, late.json()["code"]) == (412, "changed-meanwhile") and "query 2" in late.json()["title"]
    assert replace("*").json()["number"] == 3
    assert replace("3").status_code == 422
    missing = station.ask("POST", "/v1/queries/9/replace", content=QUERIES[1], headers=HEADERS | {"if-match": "*"})
    assert missing.status_code == 404


def test_same_key_replaces_once(station):
    station.submit(QUERIES[0])
    key = HEADERS | {"idempotency-key": "k"}
    made = [station.ask("POST", "/v1/queries/1/replace", content=QUERIES[1], headers=key).json() for _ in range(2)]
    assert [each["number"] for each in made] == [2, 2]
    other = station.submit(QUERIES[1], **{"idempotency-key": "k"})
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")


def test_same_key_replaces_once_by_name(station):
    station.ask("POST", "/v1/queries", json={"text": QUERIES[0], "name": "mean"})
    key = HEADERS | {"idempotency-key": "k"}
    made = [station.ask("POST", "/v1/queries/mean/replace", content=QUERIES[1], headers=key).json() for _ in range(2)]
    assert [each.get("number") for each in made] == [2, 2], made
    other = station.ask("POST", "/v1/queries/mean/replace", content=QUERIES[0], headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")


@pytest.mark.parametrize("name", ["", "7", "a b", "a/b", "x" * 65, "é", 7, ["a"], "a\n"])
def test_names_follow_one_pattern(station, name):
    refused = station.ask("POST", "/v1/queries", json={"text": QUERIES[0], "name": name})
    assert (refused.status_code, refused.json()["code"]) == (422, "bad-request")
    assert "a name begins with a letter" in refused.json()["detail"]


def test_fault_of_the_program_is_a_problem(station, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(station.control, "queries", fail)
    response = station.get("/v1/queries", raises=False)
    problem = response.json()
    assert (response.status_code, problem["code"]) == (500, "internal-error")
    assert response.headers["content-type"] == "application/problem+json"
    assert "ZeroDivisionError" in problem["title"] and "secret" not in response.text
    assert "reference=" in problem["detail"]
    assert station.get("/v1/extents").status_code == 200


@pytest.mark.promise("resume")
def test_numbers_of_before_a_restore_are_refused(station):
    station.submit(QUERIES[0])
    station.wait_for(1, 2)
    page = station.get("/v1/queries/1/results").json()
    same = {"after": 1, "epoch": page["epoch"]}
    assert station.get("/v1/queries/1/results", params=same).json()["updates"]
    for path in ("results", "results.jsonl"):
        gone = station.get(f"/v1/queries/1/{path}", params={"after": 1, "epoch": "01234567"})
        assert (gone.status_code, gone.json()["detail"]) == (410, f"begin with after=0&epoch={page['epoch']}")
    headers = HEADERS | {"accept": "text/event-stream"}
    gone = station.get("/v1/queries/1/results", headers=headers | {"last-event-id": "01234567-1"})
    assert gone.status_code == 410
    for wrong in ("-1", "x", "1-2-3", "9" * 16, "0123456-1"):
        refused = station.get("/v1/queries/1/results", headers=headers | {"last-event-id": wrong})
        assert (refused.status_code, refused.json()["code"]) == (422, "bad-request"), wrong


def test_prepared_answer_is_renewed_with_its_data(station):
    def states():
        return [each["state"] for each in station.get("/v1/queries").json()["queries"]]

    assert states() == states() == []
    station.submit(QUERIES[0])
    assert len(states()) == 1
    station.ask("POST", "/v1/queries/1/pause")
    assert states() == ["paused"]
    station.ask("POST", "/v1/queries/1/resume")
    assert states()[0] in ("deploying", "running")
    station.wait_for(1, 3)
    seen = set()
    for _ in range(200):
        seen.add(station.get("/v1/extents/field/latest").text)
        if len(seen) > 1:
            return
        station.get("/v1/queries/1/results", params={"after": 10**9, "wait": 0.05})
    raise AssertionError("the newest values stay as they were")


def test_prepared_answers_are_of_one_version_and_few():
    answers = PreparedAnswers()
    assert answers.find("a", 1) is None and answers.keep("a", 1, b"x") == b"x"
    assert (answers.find("a", 1), answers.find("a", 2), answers.find("b", 1)) == (b"x", None, None)
    answers.keep("large", 1, b"x" * (LARGEST_ANSWER + 1))
    assert answers.find("large", 1) is None
    for number in range(MOST_ANSWERS):
        answers.keep(number, 1, b"y")
    assert answers.find("a", 1) is None and answers.find(0, 1) == b"y"
