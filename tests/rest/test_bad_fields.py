"""Bad fields: each field of each body missing, null, of each other type, and huge; one bad row among many."""

import copy
import json

import pytest

from tests.rest.running_station import HEADERS, RunningStation
from tests.rest.test_access import find_routes, state_of
from tests.station.test_uploads import CATALOG

QUERY = "SELECT lane FROM traffic"
COUNT = "SELECT COUNT(*) AS n FROM traffic [FROM NOW TO NOW SLIDE 1 SEC]"
MISSING = object()
BODIES = {
    ("POST", "/v1/queries"): {"text": QUERY, "name": "lanes-now", "owner": "anna", "limits": {"results": 5}},
    ("POST", "/v1/queries/{query}/replace"): {"text": QUERY, "name": "lanes-then", "limits": {"results": 5}},
    ("POST", "/v1/check"): {"text": QUERY, "name": "x"},
    ("POST", "/v1/complete"): {"text": QUERY, "name": "x"},
    ("POST", "/v1/explain"): {"text": QUERY, "name": "x"},
    ("POST", "/v1/statements"): {"text": "DELETE FROM traffic WHERE lane = 9", "name": "x"},
    ("POST", "/v1/trials"): {"text": QUERY, "rows": {"traffic": [{"_tick": 0, "lane": 1, "kind": "car"}]}},
    ("POST", "/v1/history"): {"text": QUERY},
    ("POST", "/v1/history/recompute"): {"text": QUERY},
    ("PUT", "/v1/extents/{name}"): {"text": "lorries: pushed (lane:integer) wait 5 sec", "name": "x"},
}
"""By route, a body with every field that it takes."""
PUSH, LOAD = ("POST", "/v1/extents/{name}/tuples"), ("PUT", "/v1/extents/{name}/rows")
ROWS = [
    (PUSH, "traffic", {"_tick": 1_800_000_000, "lane": 1, "kind": "car"}),
    (PUSH, "traffic", {"_time": "2026-11-19T08:00:00Z", "lane": 1, "kind": "car"}),
    (LOAD, "lanes", {"lane": 1, "name": "slow"}),
]
"""By route, an extent and a row of it with every field."""
SENML = [{"bn": "d/", "bt": 1_800_000_000, "bv": 0, "bu": "1", "bver": 10, "n": "lane", "v": 1, "t": 0, "u": "1"}]
VALUES = {
    "missing": MISSING, "null": None, "true": True, "number": 7, "negative": -1, "fraction": 1.5, "empty": "", "string": "x",
    "list": [], "object": {}, "nested": [[{"a": [1]}]], "huge number": 10**400, "huge string": "x" * 900_000, "control": "\x00\x1b",
    "half a character": "\ud800", "deep": json.loads("[" * 500 + "]" * 500),
}  # fmt: skip


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    with RunningStation(tmp_path_factory.mktemp("station"), CATALOG) as running:
        running.submit(QUERY)
        yield running


def find_fields(body, at=()):
    """The path of each field of a body, of its objects and of the objects in its lists."""
    for key, value in body.items() if isinstance(body, dict) else enumerate(body):
        if not isinstance(body, list):
            yield (*at, key)
        if isinstance(value, dict | list):
            yield from find_fields(value, (*at, key))


def change(body, path, value):
    found = copy.deepcopy(body)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    if value is MISSING:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return found


def check(response, where):
    """An answer without a fault; a refusal has one form and says what would be accepted."""
    assert response.status_code < 500 or response.json()["code"] in ("spark-unavailable",), (where, response.text)
    if response.status_code >= 400:
        problem = response.json()
        assert response.headers["content-type"] == "application/problem+json", where
        help = problem.get("detail") or problem.get("diagnostics") or " at most " in problem["title"]
        assert problem["code"] and problem["title"] and help, (where, problem)


def test_bodies_have_every_field_of_the_document(station):
    for method, path in find_routes(station.api):
        content = station.document["paths"][path][method.lower()].get("requestBody", {}).get("content", {})
        fields = content.get("application/json", {}).get("schema", {}).get("properties")
        if fields is not None:
            assert BODIES[method, path].keys() == fields.keys(), path
        else:
            assert not content or (method, path) in (PUSH, LOAD) or path == "/v1/session", path


def test_body_with_every_field_is_taken(station):
    number = station.submit(QUERY).json()["number"]
    for (method, path), body in BODIES.items():
        if not path.startswith("/v1/history"):  # these would start Spark
            url = path.replace("{query}", str(number)).replace("{name}", "lorries")
            response = station.ask(method, url, headers=HEADERS, json=body)
            assert response.status_code in (200, 201, 202), (path, response.text)
            if path in ("/v1/queries", "/v1/queries/{query}/replace"):
                station.ask("POST", f"/v1/queries/{response.json()['number']}/stop")


@pytest.mark.promise("documented")
@pytest.mark.parametrize("kind", VALUES)
def test_each_field_of_each_body_with_a_bad_value(station, kind):
    value = VALUES[kind]
    before, replaced = state_of(station), station.submit(QUERY).json()["number"]
    for (method, path), body in BODIES.items():
        for field in find_fields(body):
            url = path.replace("{query}", str(replaced)).replace("{name}", "lorries")
            url += "?since=0" if path == "/v1/history/recompute" else ""
            content = json.dumps(change(body, field, value)).encode()
            response = station.ask(method, url, headers=HEADERS | {"content-type": "application/json"}, content=content)
            check(response, (method, path, field))
            if response.status_code == 201 and path.endswith("/replace"):
                replaced = response.json()["number"]
            fits = kind in ("missing", "null") or (field[0] in ("rows", "text") and path == "/v1/trials")
            if not fits and not is_good(path, field, kind):
                assert response.status_code in (413, 422), (method, path, field, response.text[:200])
    made = set(state_of(station)[0]) - set(before[0])
    for number in made:  # of queries without a name, an owner or a limit
        station.ask("POST", f"/v1/queries/{number}/stop")
    for job in station.get("/v1/jobs").json()["jobs"]:
        station.ask("DELETE", f"/v1/jobs/{job['number']}")


def is_good(path, field, kind):
    """Whether a route takes a value: a text that is no query is an answer of `check` and `complete`."""
    if field == ("text",):
        return kind in ("empty", "string", "control", "huge string") and path in ("/v1/check", "/v1/complete")
    if field == ("limits",):
        return kind == "object"
    return (field, kind) in ((("limits", "results"), "number"), (("name",), "string"), (("owner",), "string"))


FORMS = {
    "application/json": lambda rows: json.dumps(rows),
    "application/x-ndjson": lambda rows: "\n".join(map(json.dumps, rows)),
    "application/senml+json": lambda rows: json.dumps(rows),
}


@pytest.mark.promise("documented")
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("media", FORMS)
def test_each_field_of_each_row_with_a_bad_value(station, media, kind):
    for (method, path), extent, row in ROWS:
        good = SENML if media.startswith("application/senml") else [row]
        for field in good[0]:
            rows = [*good, change(good[0], (field,), VALUES[kind]), *good]
            url = path.replace("{name}", extent)
            headers = HEADERS | {"content-type": media}
            response = station.ask(method, url, headers=headers, content=FORMS[media](rows))
            check(response, (path, field))
            assert response.status_code == 200 or path == LOAD[1], (field, response.text)  # a table is taken as a whole
            if response.status_code == 200:
                receipt = response.json()
                assert receipt["rejected"] == len(receipt["errors"]) <= 2, (path, field, receipt)
                assert all(each["row"] in (2, 3) and each["message"] for each in receipt["errors"]), (field, receipt)
                assert receipt["accepted"] >= 1


@pytest.mark.promise("documented")
@pytest.mark.parametrize("media", FORMS)
def test_value_at_the_depth_that_the_parser_takes_is_refused(station, media):
    """Parsing ends at some depth of nesting. Values just above it are rejected like others."""
    for (method, path), extent, row in ROWS:
        good = json.dumps(SENML[0] if media.startswith("application/senml") else row)
        url, headers = path.replace("{name}", extent), HEADERS | {"content-type": media}
        for field in json.loads(good):
            least = 800 if media == "application/x-ndjson" else 920
            nested = ["[" * depth + "]" * depth for depth in range(least, 1_000)]
            wrong = [json.dumps({**json.loads(good), field: "?"}).replace('"?"', value) for value in nested]
            if media == "application/x-ndjson":
                bodies = ["\n".join([good, *wrong])]
            else:
                bodies = [f"[{good}, {each}]" for each in wrong[:: 1 if field in ("lane", "v") else 13]]
            for content in bodies:
                response = station.ask(method, url, headers=headers, content=content)
                assert response.status_code in (200, 422), (path, field, response.text)
                if response.status_code == 200 and field in ("lane", "v"):
                    assert response.json()["rejected"] >= 1


KEYS = ["", "x", "\ud800", "\x00\x1b", "lane ", "LANE", "x" * 10_000, "_index"]


@pytest.mark.promise("documented")
@pytest.mark.parametrize("media", FORMS)
def test_key_that_no_row_has_is_reported(station, media):
    for (method, path), extent, row in ROWS:
        good = SENML if media.startswith("application/senml") else [row]
        for key in KEYS:
            url, headers = path.replace("{name}", extent), HEADERS | {"content-type": media}
            body = FORMS[media]([*good, good[0] | {key: 1}])
            response = station.ask(method, url, headers=headers, content=body)
            check(response, (path, key))
            if not media.startswith(
                "application/senml"
            ):  # its readers ignore keys that they do not know (RFC 8428, 4.4)
                [wrong] = [each for each in response.json()["errors"] if each["row"] == 2]
                assert wrong["code"] == "SN504" and wrong["column"].isprintable(), (path, key, wrong)


@pytest.mark.promise("documented")
@pytest.mark.parametrize("media", ["application/x-ndjson", "text/csv"])
def test_one_bad_row_among_many_is_the_only_one_rejected(tmp_path, media, counts, rng):
    count = counts(2_000, 1_000_000, 1_000_000)
    bad = rng.randrange(count)
    lanes = ["x" if number == bad else str(number % 4) for number in range(count)]
    if media == "text/csv":
        body = "lane,kind\n" + "\n".join(f"{lane},car" for lane in lanes)
    else:
        body = "\n".join(f'{{"lane": {lane if lane != "x" else json.dumps(lane)}, "kind": "car"}}' for lane in lanes)
    with RunningStation(tmp_path, CATALOG) as station:
        station.submit(COUNT)
        response = station.ask(
            "POST", "/v1/extents/traffic/tuples", headers=HEADERS | {"content-type": media}, content=body
        )
        receipt = response.json()
        assert (response.status_code, receipt["accepted"], receipt["rejected"]) == (200, count - 1, 1), receipt
        [wrong] = receipt["errors"]
        assert (wrong["row"], wrong["column"], wrong["code"]) == (bad + 1, "lane", "SN506") and "`x`" in wrong[
            "message"
        ]
        after, found = 0, 0
        for _ in range(100):
            page = station.get("/v1/queries/1/results", params={"after": after, "wait": 5}).json()
            after = page["next"]
            found += sum(row[0] for update in page["updates"] for row in update.get("rows", ()))
            if found:
                break
        assert found == count - 1
