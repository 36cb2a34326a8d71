"""The life of a query at a durable station: names, pause, resume, draining, replacement at a tick, and what leaves memory."""

import json

import pytest

from basestation.controller.query_lifecycle import LIVE, TRANSITIONS, QueryEvent, QueryState, QueryStateError
from basestation.execution.engine import Engine
from basestation.planner.catalog import read_schema
from basestation.station.commands import encode_target
from basestation.station.journal import Command, CommandRecord
from basestation.station.query_names import AmbiguousNameError, find_of_any, find_owned
from gateway.diagnostics import DiagnosticError
from tests.station.small_network import QUERIES, SCHEMA, SmallNetwork

WINDOW = "SELECT COUNT(*) AS n FROM field [FROM NOW-40 TO NOW SLIDE 20 SEC]"


def lines(network, number):
    return [json.loads(line) for line in network.answers(number).splitlines()]


def window_ticks(network, number):
    return [line["tick"] for line in lines(network, number) if line["type"] == "window" and line["revision"] == 0]


def test_every_state_can_be_reached_and_left_but_stopped():
    assert {state for state, _ in TRANSITIONS} == set(QueryState) - {QueryState.STOPPED}
    assert set(TRANSITIONS.values()) == set(QueryState)
    for state in set(QueryState) - {QueryState.STOPPED}:
        assert TRANSITIONS[state, QueryEvent.STOP] is QueryState.STOPPED
    for state in LIVE:
        assert TRANSITIONS[state, QueryEvent.FAIL] is QueryState.FAILED


def test_paused_query_answers_nothing_until_resumed(tmp_path):
    """
    windows  20 40 60 | paused: none | 180 200 …   one feed, one number
    """
    network = SmallNetwork(tmp_path)
    number = network.submit(WINDOW)
    network.live(70)
    network.change("pause", number)
    before, paused_at = window_ticks(network, number), network.now_ms // 1_000
    network.live(60)
    network.restart()
    network.live(60)
    assert window_ticks(network, number) == before and network.query(number)["state"] == "paused"
    assert not network.durable.station.world.live
    network.change("resume", number)
    resumed_at = network.now_ms // 1_000
    network.live(70)
    after = window_ticks(network, number)[len(before) :]
    assert before[-1] <= paused_at and len(after) >= 3
    assert after == list(range(after[0], after[0] + 20 * len(after), 20)) and after[0] - resumed_at in range(20)
    numbers = [line["number"] for line in lines(network, number)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert network.events(number)[:4] == ["query deploying", "query running", "query paused", "query deploying"]


def test_resumed_query_keeps_the_end_of_for(tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.submit(WINDOW + " FOR 150 SEC")
    ends = network.query(number)["ends"]
    network.live(60)
    network.change("pause", number)
    network.live(40)
    network.change("resume", number)
    assert network.query(number)["ends"] == ends
    network.live(200)
    assert network.query(number)["state"] == "finished"
    last = network.durable.station.world.queries[number].last_tick
    assert window_ticks(network, number)[-1] in range(last - 20, last + 1)


@pytest.mark.parametrize("text", (*QUERIES, WINDOW))
def test_replaced_query_misses_and_doubles_nothing(text, tmp_path):
    """
    undisturbed  1 2 3 4 5 6 7 8 9
    replaced     1 2 3 4
    successor            5 6 7 8 9      same windows, same rows, same coverage
    """
    network, undisturbed = SmallNetwork(tmp_path / "one"), SmallNetwork(tmp_path / "other")
    for each in (network, undisturbed):
        each.submit(text, name="it")
        each.live(95)
    successor = network.durable.replace(1, text, network.now_ms)
    for each in (network, undisturbed):
        each.live(90)
    found = sorted(answer(line) for query in (1, successor) for line in lines(network, query))
    assert found == sorted(answer(line) for line in lines(undisturbed, 1)) and len(found) > 8
    assert network.query(1)["reason"] == "replaced by query 2"
    assert (network.query(1)["name"], network.query(2)["name"]) == ("it", "it")
    assert network.durable.station.world.named("it").number == successor


def answer(line):
    """An update without the numbers of its feed, and without those of its place among tuples of one tick."""
    return json.dumps({key: value for key, value in line.items() if key not in ("number", "query", "index")})


def test_query_that_runs_waits_for_no_mote(tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.submit(WINDOW)
    assert (network.query(number)["state"], network.query(number)["awaited"]) == ("deploying", [3, 4])
    network.live(60)
    assert (network.query(number)["state"], network.query(number)["awaited"]) == ("running", [])


def test_refused_successor_leaves_the_query_as_it_was(tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.submit(WINDOW, name="it")
    network.live(30)
    with pytest.raises(DiagnosticError):
        network.durable.replace(number, "SELECT nothing FROM field [NOW]", network.now_ms)
    network.live(30)
    assert network.query(number)["state"] == "running" and network.durable.station.world.named("it").number == number


def test_draining_query_answers_its_windows_and_no_more(tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.submit(WINDOW)
    network.live(61)
    network.change("drain", number)
    drained_at = network.now_ms // 1_000
    assert network.query(number)["state"] == "draining"
    network.live(60)
    assert network.query(number)["state"] == "finished"
    assert window_ticks(network, number)[-1] in range(drained_at - 20, drained_at)


def test_name_is_unique_until_its_query_ends(tmp_path):
    network = SmallNetwork(tmp_path)
    first = network.submit(WINDOW, name="it")
    with pytest.raises(QueryStateError, match=f"query {first} has the name `it`"):
        network.submit(QUERIES[0], name="it")
    network.change("stop", first)
    assert network.submit(QUERIES[0], name="it") > first


def submit_for(network, owner, text, name, key=None):
    return network.durable.submit(text, network.now_ms, key, name, owner)


@pytest.mark.promise("access")
def test_name_of_another_owner_is_free(tmp_path):
    network = SmallNetwork(tmp_path)
    anna, ben = (submit_for(network, owner, WINDOW, "it", f"{owner}/key") for owner in ("anna", "ben"))
    assert [network.query(number)["name"] for number in (anna, ben)] == ["it", "it"]
    assert submit_for(network, "anna", WINDOW, "it", "anna/key") == anna, "the same request once more"
    for owner, number in (("anna", anna), ("ben", ben)):
        with pytest.raises(QueryStateError, match=f"^query {number} has the name `it`$"):
            submit_for(network, owner, QUERIES[0], "it")
    network.live(30)
    for _ in range(2):  # also the station that a restart computes from the log
        world, journal = network.durable.station.world, network.journal
        assert (find_owned("it", "anna", world, journal), find_owned("it", "ben", world, journal)) == (anna, ben)
        assert find_owned("it", None, world, journal) is find_owned("it", "carl", world, journal) is None
        with pytest.raises(AmbiguousNameError) as several:
            find_of_any("it", world, journal)
        assert several.value.help == "send one of anna.it, ben.it"
        network.restart()
    network.change("stop", anna)
    world = network.durable.station.world
    assert find_of_any("it", world, network.journal) == ben == find_owned("it", "ben", world, network.journal)
    assert find_owned("it", "anna", world, network.journal) == anna, "its answers are still there under the name"
    assert submit_for(network, "anna", QUERIES[0], "it") > ben


def test_successor_takes_over_a_name_or_a_free_one(tmp_path):
    network = SmallNetwork(tmp_path)
    anna, other = (submit_for(network, "anna", WINDOW, name) for name in ("it", "other"))
    submit_for(network, "ben", WINDOW, "third")
    same = network.durable.replace(anna, QUERIES[0], network.now_ms)
    again = network.durable.replace(same, QUERIES[1], network.now_ms, name="it")
    with pytest.raises(QueryStateError, match=f"query {other} has the name `other`"):
        network.durable.replace(again, WINDOW, network.now_ms, name="other")
    third = network.durable.replace(again, WINDOW, network.now_ms, name="third")
    assert [network.query(number)["name"] for number in (same, again, third)] == ["it", "it", "third"]
    assert network.journal.owner(third) == "anna"


def test_name_in_an_older_log_belongs_to_its_owner(tmp_path):
    """A station of before had names as they were given, each once; the table `owners` says whose they are."""
    network = SmallNetwork(tmp_path)
    command = Command("submit", network.now_ms, encode_target(WINDOW, None, "it"))
    before = network.durable._carry_out(command, CommandRecord(command, "anna/key", None, "anna"))
    network.live(5)
    network.restart()
    assert submit_for(network, "anna", WINDOW, "it", "anna/key") == before, "the same request once more"
    with pytest.raises(QueryStateError, match=f"query {before} has the name `it`"):
        submit_for(network, "anna", QUERIES[0], "it")
    ben, none = submit_for(network, "ben", QUERIES[0], "it"), network.submit(QUERIES[0], name="that")
    world, journal = network.durable.station.world, network.journal
    assert [find_owned("it", owner, world, journal) for owner in ("anna", "ben", None)] == [before, ben, None]
    assert find_owned("that", None, world, journal) == find_of_any("that", world, journal) == none
    network.change("stop", before)
    world = network.durable.station.world
    assert find_owned("it", "anna", world, journal) == before
    assert submit_for(network, "anna", QUERIES[0], "it") > none


@pytest.mark.parametrize("kind", ["pause", "resume"])
def test_ended_query_cannot_be_changed(kind, tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.submit(WINDOW)
    network.change("stop", number)
    for _ in range(2):
        with pytest.raises(QueryStateError, match="has ended"):
            network.change(kind, number)
        network.live(1)
    network.change("drain", number)
    with pytest.raises(KeyError):
        network.change(kind, 99)


def test_failed_query_says_why_and_can_be_resumed(tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.submit("SELECT temp FROM field for (t = ST; t > 0; t = t) { WindowIs(field, t - 10, t); }")
    other = network.submit(QUERIES[0])
    network.live(40)
    failed = network.query(number)
    assert failed["state"] == "failed" and failed["reason"].startswith("SN5")
    count = len(lines(network, other))
    network.change("resume", number)
    network.live(40)
    assert network.query(number)["state"] == "failed" and len(lines(network, other)) > count
    assert network.events(number).count("query failed") == 2


def test_ended_queries_leave_memory_and_keep_their_results(tmp_path):
    network = SmallNetwork(tmp_path)
    for count in range(30):
        number = network.submit(QUERIES[count % 3])
        network.live(1)
        network.change("stop", number)
    network.live(1)
    station = network.durable.station
    assert station.world.queries == {} and not list(station.feed._retained) and station.world.last_number == 30
    assert not station.events.latest and not station.engine._queries
    network.restart()
    assert network.submit(QUERIES[0]) == 31
    listed = [json.loads(body) for body, _ in network.journal.queries(0, 1_000)]
    assert [each["number"] for each in listed] == list(range(1, 32))
    assert [each["state"] for each in listed[:30]] == ["stopped"] * 30


def test_query_that_ends_in_a_leap_gives_its_last_windows(tmp_path):
    """The station was away: one look ends FOR, answers the windows up to there, and forgets the query."""
    network = SmallNetwork(tmp_path, read_schema(SCHEMA.replace("late revise by 1 hour", "late drop")))
    number = network.submit(f"{WINDOW} FOR 2 MIN")
    network.live(50)
    network.restart()
    network.now_ms += 300_000
    network.live(1)
    assert network.query(number)["state"] == "finished" and not network.durable.station.world.queries
    ticks = window_ticks(network, number)
    assert len(ticks) == 6 and ticks == list(range(ticks[0], ticks[0] + 120, 20))
    assert network.query(number)["account"]["windows"] == 6


def test_queries_are_listed_by_the_key(tmp_path):
    network = SmallNetwork(tmp_path)
    for statement in ("SELECT body FROM queries WHERE number > 5 ORDER BY number LIMIT 10",
                      "SELECT body FROM queries WHERE state = 'running' AND number > 5 ORDER BY number LIMIT 10"):  # fmt: skip
        steps = network.journal._db.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
        assert len(steps) == 1 and "SEARCH" in steps[0][3], steps


def test_query_that_leaves_at_once_is_finished_in_the_list(tmp_path, monkeypatch):
    monkeypatch.setattr(Engine, "is_answered", lambda *_: True)  # as without a horizon
    network = SmallNetwork(tmp_path)
    number = network.submit(WINDOW + " FOR 30 SEC")
    network.live(90)
    assert network.query(number)["state"] == "finished" and number not in network.durable.station.world.queries


def test_horizon_of_a_finished_query_passes(tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.submit(WINDOW + " FOR 30 SEC")
    network.live(90)
    assert number in network.durable.station.world.queries
    for _ in range(200):  # nothing arrives in an hour and a half but time
        network.now_ms += 30_000
        network.network.run_until(network.now_ms)
        network.durable.step(network.now_ms)
    assert number not in network.durable.station.world.queries and network.query(number)["state"] == "finished"
