"""Access: each route that the application has, asked with every kind of token; and whose queries a user sees."""

import time

import httpx
import pytest

from basestation.controller.query_lifecycle import QueryState
from basestation.rest.access import IMPLIED, PUBLIC, SCOPES, TokenScope, needed_scope
from basestation.rest.api import make_api
from basestation.station.rest_server import RestServer
from tests.rest.running_station import TOKEN, RunningStation
from tests.station.small_network import QUERIES

UNKNOWN = "moteloom_" + "A" * 43


def find_routes(api):
    """(method, path) of every route that needs a token, as its template."""
    found = [(method.upper(), path) for path, methods in api.openapi()["paths"].items() for method in methods]
    return [route for route in found if route not in PUBLIC]


def fill(path):
    return path.replace("{query}", "1").replace("{name}", "field").replace("{job}", "1")


def bearer(token):
    return {"authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    with RunningStation(tmp_path_factory.mktemp("station")) as running:
        yield running


@pytest.fixture(scope="module")
def users(station):
    """By name, the token of a user; query 1 is anna's, query 2 is ben's and called `mean`."""
    make = station.tokens.create
    found = {
        "anna": make("anna", [TokenScope.SUBMIT]),
        "anna reads": make("anna", [TokenScope.READ]),
        "ben": make("ben", [TokenScope.SUBMIT]),
        "operator": make("olga", [TokenScope.OPERATE]),
        "expired": make("anna", [TokenScope.ADMIN], expires_ms=time.time_ns() // 1_000_000 - 1),
        "revoked": make("gone", [TokenScope.ADMIN]),
    }
    station.tokens.revoke("gone")
    found |= {scope.value: make(f"only-{scope.value}", [scope]) for scope in TokenScope}
    assert station.ask("POST", "/v1/queries", content=QUERIES[0], headers=bearer(found["anna"])).json()["number"] == 1
    made = station.ask("POST", "/v1/queries?name=mean", content=QUERIES[1], headers=bearer(found["ben"])).json()
    assert (made["number"], made["owner"]) == (2, "ben")
    return found


def state_of(station):
    """Everything that a request could change. The station forgets queries that have ended by itself."""
    world, starting = station.control._station.world, (QueryState.DEPLOYING, QueryState.RUNNING)
    found = {
        number: ("runs" if query.state in starting else query.state, query.text, query.name)
        for number, query in world.queries.items()
        if not query.has_ended
    }
    return found, world.last_number


@pytest.mark.promise("access")
def test_each_route_says_which_scope_it_needs(station):
    assert set(find_routes(station.api)) == set(SCOPES)
    assert PUBLIC == {("GET", "/login"), ("POST", "/v1/session")}, "tests/rest/test_sessions.py is about these"


@pytest.mark.promise("access")
@pytest.mark.parametrize(
    "wrong",
    ["", "Bearer", "Bearer ", f"Bearer {UNKNOWN}", TOKEN, f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Bearer {TOKEN} x",
     f"bearer {TOKEN.upper()}", f"Basic {TOKEN}", f"Bearer {TOKEN[:6]}", "Bearer é", f"Bearer {'x' * 10_000}", "expired",
     "revoked", "twice", None],
)  # fmt: skip
def test_no_route_answers_without_a_valid_token(station, users, wrong):
    if wrong in ("expired", "revoked"):
        headers = list(bearer(users[wrong]).items())
    elif wrong == "twice":
        headers = [("authorization", f"Bearer {TOKEN}"), ("authorization", f"Bearer {UNKNOWN}")]
    else:
        headers = [] if wrong is None else [("authorization", wrong.encode())]
    before = state_of(station)
    for method, path in [*find_routes(station.api), ("GET", "/"), ("GET", "/v2"), ("DELETE", "/v1/queries")]:
        response = station.ask(method, fill(path), headers=headers, content=QUERIES[0] if method == "POST" else None)
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer"), (method, path)
        assert response.headers["content-type"] == "application/problem+json"
    assert state_of(station) == before


@pytest.mark.promise("access")
@pytest.mark.parametrize("scope", list(TokenScope))
def test_each_route_refuses_a_lesser_scope(station, users, scope):
    before = state_of(station)
    refused = 0
    for method, path in find_routes(station.api):
        needed = needed_scope(method, path)
        if needed not in IMPLIED[scope]:
            response = station.ask(method, fill(path), headers=bearer(users[scope.value]))
            assert (response.status_code, response.json()["code"]) == (403, "lesser-scope"), (method, path)
            assert needed.value in response.json()["detail"]
            refused += 1
        elif method == "GET":
            assert station.ask(method, fill(path), headers=bearer(users[scope.value])).status_code in (200, 404)
    assert refused == sum(needed not in IMPLIED[scope] for needed in SCOPES.values())
    assert state_of(station) == before


@pytest.mark.promise("access")
def test_route_without_a_scope_needs_admin(station, users):
    station_api, api = station.api, make_api(station.control, station.tokens)
    api.get("/v1/fresh")(lambda: {})
    station.api = api
    try:
        assert station.get("/v1/fresh").status_code == 200
        assert station.get("/v1/fresh", headers=bearer(users["operator"])).status_code == 403
    finally:
        station.api = station_api


@pytest.mark.promise("access")
@pytest.mark.parametrize("query", ["2", "mean"])
def test_query_of_another_is_like_one_that_is_not_there(station, users, query):
    before = state_of(station)
    about_one = [route for route in find_routes(station.api) if "{query}" in route[1]]
    assert len(about_one) >= 7
    for method, path in about_one:
        absent = "9" if query == "2" else "none"
        answers = [
            station.ask(method, path.replace("{query}", which), headers=bearer(users["anna"]), content=QUERIES[0])
            for which in (query, absent)
        ]
        assert [each.status_code for each in answers] == [404, 404], (method, path)
        assert answers[0].text.replace(f"query {query}", "query ?") == answers[1].text.replace(
            f"query {absent}", "query ?"
        )
        assert "mean" not in answers[1].text and QUERIES[1] not in answers[0].text
    assert state_of(station) == before


@pytest.mark.promise("access")
def test_lists_and_events_have_only_queries_of_the_user(station, users):
    def numbers(user, **parameters):
        found = station.get("/v1/queries", headers=bearer(users[user]), params=parameters).json()["queries"]
        return [(each["number"], each["owner"]) for each in found]

    assert numbers("anna") == numbers("anna reads") == [(1, "anna")]
    assert numbers("ben") == numbers("ben", after=1) == [(2, "ben")]
    assert numbers("ben", state="stopped") == numbers("ben", after=2) == numbers("read") == []
    assert numbers("operator") == numbers("admin") == [(1, "anna"), (2, "ben")]
    assert numbers("operator", owner="ben") == numbers("ben", owner="ben") == [(2, "ben")]
    assert numbers("operator", owner="carl") == numbers("anna", owner="ben") == []
    for user, seen in (("anna", {1}), ("ben", {2}), ("operator", {1, 2}), ("read", set())):
        events = station.get("/v1/events", headers=bearer(users[user])).json()["events"]
        assert {each["query"] for each in events if each.get("query")} == seen
    other = station.get("/v1/events", headers=bearer(users["anna"]), params={"query": 2}).json()
    assert other["events"] == []
    assert "queries are 1 to 1" in station.get("/v1/queries/9", headers=bearer(users["anna"])).json()["detail"]


@pytest.mark.promise("access")
def test_tokens_of_one_name_share_queries_and_operators_see_all(station, users):
    for user in ("anna", "anna reads", "operator", "admin"):
        assert station.get("/v1/queries/1/results", headers=bearer(users[user])).status_code == 200
    assert station.ask("POST", "/v1/queries/1/stop", headers=bearer(users["anna reads"])).status_code == 403


@pytest.mark.promise("access")
def test_key_of_another_user_gives_a_query_of_ones_own(tmp_path):
    with RunningStation(tmp_path) as station:
        tokens = [station.tokens.create(name, [TokenScope.SUBMIT]) for name in ("anna", "ben")]
        made = [
            station.ask("POST", "/v1/queries", content=QUERIES[0], headers=bearer(token) | {"idempotency-key": "once"})
            for token in tokens * 2
        ]
        assert [(each.json()["number"], each.json()["owner"]) for each in made] == [(1, "anna"), (2, "ben")] * 2


@pytest.mark.promise("access")
def test_operator_replaces_a_query_for_its_owner(tmp_path):
    with RunningStation(tmp_path) as station:
        anna, olga = (
            station.tokens.create(*each) for each in (("anna", [TokenScope.SUBMIT]), ("olga", [TokenScope.OPERATE]))
        )
        station.ask("POST", "/v1/queries?name=mean", content=QUERIES[2], headers=bearer(anna))
        made = station.ask("POST", "/v1/queries/mean/replace", content=QUERIES[1], headers=bearer(olga)).json()
        assert (made["number"], made["owner"]) == (2, "anna")
        assert station.get("/v1/queries/mean", headers=bearer(anna)).json()["number"] == 2


@pytest.mark.promise("access")
def test_key_of_an_operator_is_for_one_owner(tmp_path):
    with RunningStation(tmp_path) as station:
        anna, ben = (bearer(station.tokens.create(name, [TokenScope.SUBMIT])) for name in ("anna", "ben"))
        olga = bearer(station.tokens.create("olga", [TokenScope.OPERATE]))
        for user in (anna, ben):
            station.ask("POST", "/v1/queries?name=mean", content=QUERIES[2], headers=user)

        def replace(name):
            headers = olga | {"idempotency-key": "once"}
            return station.ask("POST", f"/v1/queries/{name}/replace", content=QUERIES[1], headers=headers)

        made = [replace("anna.mean") for _ in range(2)]
        assert [(each.json()["number"], each.json()["owner"]) for each in made] == [(3, "anna")] * 2
        assert (replace("ben.mean").status_code, replace("ben.mean").json()["code"]) == (422, "key-reused")

        def submit(owner):
            headers, body = olga | {"idempotency-key": "twice"}, {"text": QUERIES[1], "name": "new", "owner": owner}
            return station.ask("POST", "/v1/queries", json=body, headers=headers)

        assert [submit("anna").json()["number"] for _ in range(2)] == [4, 4]
        assert submit("ben").json()["code"] == "key-reused"


@pytest.mark.promise("access")
def test_name_says_nothing_of_the_queries_of_others(tmp_path):
    """Two users have a query `mean`. Neither learns of the other's, and an operator says whose."""
    with RunningStation(tmp_path) as station:
        anna, ben, olga = (
            bearer(station.tokens.create(name, [scope]))
            for name, scope in (("anna", TokenScope.SUBMIT), ("ben", TokenScope.SUBMIT), ("olga", TokenScope.OPERATE))
        )

        def submit(user, text, **parameters):
            return station.ask("POST", "/v1/queries", content=text, headers=user, params={"name": "mean"} | parameters)

        assert submit(anna, QUERIES[2]).json()["number"] == 1
        dry = [submit(user, QUERIES[0], dry_run=True) for user in (ben, anna)]
        assert [each.status_code for each in dry] == [200, 409]
        made = submit(ben, QUERIES[0])
        assert (made.status_code, made.json()["number"], made.json()["name"]) == (201, 2, "mean")
        refused = submit(anna, QUERIES[0])
        assert (refused.status_code, refused.json()["title"]) == (409, "query 1 has the name `mean`")

        def number(user, which):
            found = station.get(f"/v1/queries/{which}", headers=user)
            return found.json().get("number", found.status_code)

        assert [number(user, "mean") for user in (anna, ben)] == [1, 2]
        assert [number(anna, which) for which in ("anna.mean", "ben.mean", "carl.mean")] == [1, 404, 404]
        assert [number(olga, which) for which in ("anna.mean", "ben.mean", "carl.mean")] == [1, 2, 404]
        several = station.get("/v1/queries/mean/results", headers=olga)
        assert (several.status_code, several.json()["code"]) == (409, "ambiguous-name")
        assert several.json()["detail"] == "send one of anna.mean, ben.mean"
        station.ask("POST", "/v1/queries/ben.mean/stop", headers=olga)
        assert number(olga, "%D9%A1") == 404, "numbers have the digits 0 to 9"
        assert number(olga, "mean") == 1, "the one that may still answer"
        assert submit(olga, QUERIES[1]).json()["number"] == number(olga, "mean") == 3, "an own one before others"
        given = station.ask(
            "POST", "/v1/queries", headers=olga, json={"text": QUERIES[1], "name": "mean", "owner": "ben"}
        )
        assert (given.json()["number"], given.json()["owner"], number(ben, "mean")) == (4, "ben", 4)
        replaced = station.ask("POST", "/v1/queries/anna.mean/replace", content=QUERIES[0], headers=olga)
        assert (replaced.json()["owner"], number(anna, "mean")) == ("anna", 5)


@pytest.mark.promise("access")
def test_token_counts_from_its_creation_to_its_revocation(station):
    token = station.tokens.create("eva", [TokenScope.READ])
    assert station.get("/v1/extents", headers=bearer(token)).status_code == 200
    station.tokens.revoke("eva")
    assert station.get("/v1/extents", headers=bearer(token)).status_code == 401


@pytest.mark.promise("access")
@pytest.mark.parametrize(
    ("method", "path", "accept", "status"),
    [
        ("results", "/v1/queries/{}/results", "text/event-stream", 200),
        ("results", "/v1/queries/{}/results?after=1000000&wait=60", "application/json", 401),
        ("results", "/v1/queries/{}/results.csv?after=1000000&wait=60", "text/csv", 401),
        ("events", "/v1/events?after=1000000&wait=60", "application/json", 401),
    ],
)
@pytest.mark.parametrize("is_browser", [False, True])
def test_revoked_token_ends_streams_and_waits(station, method, path, accept, status, is_browser, monkeypatch):
    token = station.tokens.create("ida", [TokenScope.SUBMIT])
    number = station.ask("POST", "/v1/queries", content=QUERIES[0], headers=bearer(token)).json()["number"]
    headers = bearer(token)
    if is_browser:
        ticket = station.ask("POST", "/v1/tickets", headers=headers).json()["ticket"]
        answer = station.ask("POST", "/v1/session", headers={"origin": "http://localhost"}, content=ticket)
        headers = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
    read, calls = getattr(station.control, method), []

    def read_and_revoke(*given):
        if not calls:
            station.tokens.revoke("ida")
        calls.append(given)
        assert len(calls) < 20, "the request goes on after its token"
        return read(*given)

    monkeypatch.setattr(station.control, method, read_and_revoke)
    answer = station.get(path.format(number), headers=headers | {"accept": accept}, raises=False)
    assert (answer.status_code, len(calls)) == (status, 1)
    if status == 200:
        assert answer.text.splitlines()[-3] == "event: problem" and '"code": "no-token"' in answer.text
    assert station.ask("POST", f"/v1/queries/{number}/stop").status_code == 200


@pytest.mark.promise("access")
def test_get_changes_nothing(station, users):
    before = state_of(station)
    for method, path in find_routes(station.api):
        if method == "GET":
            for user in ("admin", "anna"):
                response = station.get(fill(path), headers=bearer(users[user]))
                assert response.status_code in (200, 403, 404), path
    assert state_of(station) == before


@pytest.mark.promise("access")
def test_page_of_another_site_is_refused_with_a_token(station):
    for origin in (
        "http://elsewhere.example",
        "null",
        "http://localhost:8137",
        "http://localhost.example",
    ):
        refused = station.get("/v1/queries", headers=bearer(TOKEN) | {"origin": origin})
        assert (refused.status_code, refused.json()["code"]) == (403, "foreign-origin"), origin
    assert station.get("/v1/queries", headers=bearer(TOKEN) | {"origin": "http://localhost"}).status_code == 200


@pytest.mark.promise("access")
def test_each_answer_has_the_headers_of_security(station):
    for path, headers in (("/v1/queries", bearer(TOKEN)), ("/v1/queries", {}), ("/nowhere", bearer(TOKEN))):
        found = station.get(path, headers=headers).headers
        assert found["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert found["x-content-type-options"] == "nosniff"
        assert (found["referrer-policy"], found["cache-control"]) == ("no-referrer", "no-store")


@pytest.mark.promise("access")
def test_websocket_is_refused_without_an_error_in_the_log(station, caplog):
    with RestServer(station.control, station.tokens) as server:
        answer = httpx.get(
            f"{server.url}/v1/queries",
            headers={
                "connection": "Upgrade",
                "upgrade": "websocket",
                "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
                "sec-websocket-version": "13",
            },
            timeout=30,
        )
    assert answer.status_code in (401, 403)  # without a library for WebSockets it is a request without a token
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


@pytest.mark.promise("access")
def test_internal_error_has_security_headers_and_an_entry(station, monkeypatch):
    def fail(*given):
        raise ZeroDivisionError

    monkeypatch.setattr(station.control, "submit", fail)
    answer = station.ask("POST", "/v1/queries", content=QUERIES[0], raises=False)
    assert (answer.status_code, answer.json()["code"]) == (500, "internal-error")
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    entry = station.tokens.audit(0, 1_000)[-1]
    assert (entry.action, entry.status) == ("POST /v1/queries", 500)


def test_station_without_tokens_serves_programs_only(station):
    with_tokens, station.api = station.api, make_api(station.control, None)
    try:
        assert station.get("/v1/queries", headers={}).status_code == 200
        for headers in (
            {"origin": "http://elsewhere.example"},
            {"origin": "http://localhost"},
            {"host": "elsewhere.example"},
            {"host": "127.0.0.1.example"},
        ):
            refused = station.get("/v1/queries", headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "not-from-here")
        for host in ("127.0.0.1:8137", "localhost", "[::1]:8137"):
            assert station.get("/v1/queries", headers={"host": host}).status_code == 200
    finally:
        station.api = with_tokens


@pytest.mark.promise("access")
def test_query_of_before_there_were_users_is_for_operators(tmp_path):
    with RunningStation(tmp_path) as station:
        anna = station.tokens.create("anna", [TokenScope.SUBMIT])
        durable = station.runner.durable
        assert station.runner.call(lambda now_ms: durable.submit(QUERIES[0], now_ms)) == 1
        assert station.get("/v1/queries/1").json()["owner"] is None
        for path in ("/v1/queries/1", "/v1/queries/1/results"):
            assert station.get(path, headers=bearer(anna)).status_code == 404
        assert station.get("/v1/queries", headers=bearer(anna)).json()["queries"] == []
