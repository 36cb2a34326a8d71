"""Browsers: a ticket counts once and for a minute, its cookie has the rights of its token, and no other page can use it."""

import base64
import hashlib
import json
import re

import pytest

from basestation.rest.access import TokenScope
from basestation.rest.api import make_api
from basestation.rest.sessions import COOKIE, MOST, MOST_OF_TOKEN, SESSION_SECONDS, TICKET_SECONDS, Sessions
from basestation.station.rest_server import RestServer
from gateway.cli import main
from tests.rest.running_station import HEADERS, TOKEN, RunningStation
from tests.rest.test_access import bearer
from tests.station.small_network import QUERIES

HERE = {"origin": "http://localhost"}


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    with RunningStation(tmp_path_factory.mktemp("station")) as running:
        yield running


def sign_in(station, token=TOKEN):
    """The headers of a browser that has traded a ticket for a cookie."""
    ticket = station.ask("POST", "/v1/tickets", headers=bearer(token)).json()["ticket"]
    answer = station.ask("POST", "/v1/session", headers=HERE, content=ticket)
    assert answer.status_code == 204, answer.text
    return {"cookie": answer.headers["set-cookie"].partition(";")[0]}


@pytest.mark.promise("access")
def test_ticket_becomes_a_cookie_once(station):
    made = station.ask("POST", "/v1/tickets").json()
    assert made["path"] == f"/login#{made['ticket']}" and made["seconds"] == 60
    answer = station.ask("POST", "/v1/session", headers=HERE, content=made["ticket"])
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 204 and re.match(rf"{COOKIE}=[\w-]{{43}};", cookie)
    assert {"httponly", "samesite=strict", "path=/", "max-age=43200"} <= set(cookie.lower().split("; "))
    assert TOKEN not in cookie and made["ticket"] not in cookie
    again = station.ask("POST", "/v1/session", headers=HERE, content=made["ticket"])
    assert (again.status_code, again.json()["code"]) == (403, "no-ticket") and "set-cookie" not in again.headers
    for wrong in (b"", b"x", made["ticket"][:-1].encode(), b"\xff" * 43, b"x" * 10_000, TOKEN.encode()):
        assert station.ask("POST", "/v1/session", headers=HERE, content=wrong).status_code == 403


@pytest.mark.promise("access")
def test_cookie_over_tls_is_sent_over_tls_only(station):
    import asyncio

    import httpx

    async def ask():
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(station.api), base_url="https://localhost"
        ) as client:
            ticket = (await client.post("/v1/tickets", headers=HEADERS)).json()["ticket"]
            return await client.post("/v1/session", content=ticket, headers={"origin": "https://localhost"})

    assert "secure" in asyncio.run(ask()).headers["set-cookie"].lower().split("; ")


@pytest.mark.promise("access")
def test_session_has_the_rights_of_its_token_while_it_lasts(station):
    token = station.tokens.create("anna", [TokenScope.SUBMIT])
    browser = sign_in(station, token)
    made = station.ask("POST", "/v1/queries", content=QUERIES[0], headers=browser | HERE).json()
    assert made["owner"] == "anna"
    assert station.get("/v1/queries", headers=browser).json()["queries"][0]["number"] == made["number"]
    assert station.get("/v1/audit", headers=browser).status_code == 403
    station.tokens.revoke("anna")
    assert station.get("/v1/queries", headers=browser).status_code == 401


@pytest.mark.promise("access")
def test_cookie_of_another_page_changes_and_reads_nothing(station):
    browser = sign_in(station)
    count = len(station.get("/v1/queries", headers=browser).json()["queries"])
    for more in (
        {},  # a form of a browser without origins
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
        {"origin": "http://elsewhere.example"},
        {**HERE, "sec-fetch-site": "same-site"},
        {**HERE, "sec-fetch-site": "cross-site"},
    ):
        refused = station.ask("POST", "/v1/queries", content=QUERIES[0], headers=browser | more)
        assert (refused.status_code, refused.json()["code"]) == (403, "foreign-origin"), more
        foreign = station.ask("POST", "/v1/session", content="x", headers=more)
        assert foreign.status_code == 403
    for site in ("same-site", "cross-site"):
        assert station.get("/v1/queries", headers=browser | {"sec-fetch-site": site}).status_code == 403
    for site in ("same-origin", "none"):
        assert station.get("/v1/queries", headers=browser | {"sec-fetch-site": site}).status_code == 200
    assert len(station.get("/v1/queries", headers=browser).json()["queries"]) == count


@pytest.mark.promise("access")
@pytest.mark.parametrize(
    "cookie", ["", f"{COOKIE}=", f"{COOKIE}={TOKEN}", f"{COOKIE}=x", f"other={TOKEN}", f"{COOKIE}={'x' * 9_000}"]
)
def test_wrong_cookie_is_no_token(station, cookie):
    assert station.get("/v1/queries", headers={"cookie": cookie}).status_code == 401


@pytest.mark.promise("access")
def test_wrong_token_is_not_mended_by_a_cookie(station):
    assert station.get("/v1/queries", headers=sign_in(station) | bearer("wrong")).status_code == 401


@pytest.mark.promise("access")
def test_session_ends(station):
    browser = sign_in(station)
    ended = station.ask("DELETE", "/v1/session", headers=browser | HERE)
    assert ended.status_code == 204 and "max-age=0" in ended.headers["set-cookie"].lower()
    assert station.get("/v1/queries", headers=browser).status_code == 401


@pytest.mark.promise("access")
def test_page_runs_its_own_script_only(station):
    page = station.get("/login", headers={})
    [script] = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = page.headers["content-security-policy"]
    assert policy == f"default-src 'none'; script-src 'sha256-{digest}'; connect-src 'self'; frame-ancestors 'none'"
    assert "location.hash" in script and "?" not in re.findall(r'fetch\("([^"]*)"', script)[0]
    assert station.get("/login", headers={"origin": "http://elsewhere.example"}).status_code == 403


def test_tickets_and_sessions_end_with_time_and_number():
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    ticket, late = sessions.issue_ticket(7), sessions.issue_ticket(7)
    now[0] = TICKET_SECONDS - 0.1
    secret, token = sessions.redeem(ticket)
    now[0] = TICKET_SECONDS
    assert token == 7 and sessions.redeem(late) is None and sessions.redeem(ticket) is None
    now[0] = SESSION_SECONDS + TICKET_SECONDS - 0.2
    assert sessions.find(secret) == 7
    now[0] += 0.2
    assert sessions.find(secret) is None
    tickets = [sessions.issue_ticket(token) for token in range(MOST + 1)]
    assert sessions.redeem(tickets[0]) is None and sessions.redeem(tickets[1]) is not None


@pytest.mark.promise("access")
def test_tickets_of_one_token_leave_those_of_others():
    sessions = Sessions()
    secret, _ = sessions.redeem(sessions.issue_ticket(1))
    ticket = sessions.issue_ticket(1)
    others = [sessions.issue_ticket(2) for _ in range(MOST + 1)]
    assert sum(sessions.redeem(other) is not None for other in others) == MOST_OF_TOKEN
    assert sessions.find(secret) == 1 and sessions.redeem(ticket) is not None


def test_station_without_tokens_has_no_tickets(station):
    before, station.api = station.api, make_api(station.control, None)
    try:
        refused = station.ask("POST", "/v1/tickets", headers={})
        assert (refused.status_code, refused.json()["code"]) == (409, "no-tokens")
    finally:
        station.api = before


@pytest.mark.promise("access")
def test_login_command_prints_a_link_with_a_ticket(station, capsys, tmp_path):
    with RestServer(station.control, station.tokens) as server:
        arguments = ["login", "--url", server.url, "--token", TOKEN, "--data", str(tmp_path)]
        assert main(arguments) == 0
        out, err = capsys.readouterr()
        assert (
            re.fullmatch(rf"{server.url}/login#[\w-]{{43}}\n", out) and "within 60 s" in err and TOKEN not in out + err
        )
        assert main([*arguments, "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["link"].startswith(f"{server.url}/login#")
        assert main(["login", "--url", server.url, "--token", "wrong", "--data", str(tmp_path)]) == 2
        assert "asks for a token that is valid" in capsys.readouterr().err
