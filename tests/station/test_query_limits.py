"""Limits of queries: one more than there may be is refused, before anything has changed."""

import pytest

from basestation.execution.counters import OperatorShare
from basestation.station.limit_enforcer import LimitEnforcer
from basestation.station.query_limits import QueryLimitError, QueryLimits, predict_state
from basestation.station.retention import Budget
from tests.rest.running_station import RunningStation
from tests.station.small_network import QUERIES, SmallNetwork


def test_one_query_too_many_is_refused(tmp_path):
    network = SmallNetwork(tmp_path)
    network.durable.limits = QueryLimits(queries=2)
    first, second = network.submit(QUERIES[0], key="k"), network.submit(QUERIES[1])
    entries = network.journal.last
    with pytest.raises(QueryLimitError, match="the station has 2 queries") as found:
        network.submit(QUERIES[2])
    assert "limits.queries" in found.value.help and network.journal.last == entries
    assert network.submit(QUERIES[0], key="k") == first  # a repeated request is no new query
    network.change("pause", first)
    with pytest.raises(QueryLimitError):
        network.submit(QUERIES[2])
    assert network.durable.replace(second, QUERIES[2], network.now_ms) == 3
    network.change("stop", first)
    network.live(80)
    assert network.submit(QUERIES[0]) == 4


def test_each_user_has_a_limit_of_their_own(tmp_path):
    network = SmallNetwork(tmp_path)
    network.durable.limits = QueryLimits(queries=10, of_user=1)
    submit = network.durable.submit
    submit(QUERIES[0], network.now_ms, owner="anna")
    submit(QUERIES[1], network.now_ms, owner="ben")
    with pytest.raises(QueryLimitError, match="anna has 1 queries"):
        submit(QUERIES[2], network.now_ms, owner="anna")
    submit(QUERIES[2], network.now_ms)


def test_refusal_is_a_problem_with_its_remedy(tmp_path):
    with RunningStation(tmp_path) as station:
        station.network.durable.limits = QueryLimits(queries=1)
        assert station.submit(QUERIES[0]).status_code == 201
        refused = station.submit(QUERIES[1])
        assert (refused.status_code, refused.json()["code"]) == (409, "too-many-queries")
        assert "limits.queries" in refused.json()["detail"]


def minute_of(network, enforcer, monotonic):
    """Let a minute of the machine pass, with readings, and measure after it."""
    network.live(30)
    monotonic[0] += 60.0
    enforcer.tend(network.now_ms)
    network.live(1)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (QueryLimits(state_bytes=1), "of state; `limits.state_mb` is 1e-06"),
        (QueryLimits(cpu_share=1e-9), "of a core in 60 s; `limits.cpu_share` is 1e-09"),
    ],
    ids=["state", "time"],
)
def test_query_above_its_limit_fails_alone_and_resumes(limits, words, tmp_path):
    network, monotonic = SmallNetwork(tmp_path), [0.0]
    number = network.submit(QUERIES[2])
    paused = network.submit(QUERIES[0])
    network.change("pause", paused)
    enforcer = LimitEnforcer(network.durable, lambda: monotonic[0])
    minute_of(network, enforcer, monotonic)
    assert network.query(number)["state"] == "running"  # nothing is limited
    network.durable.limits = limits
    minute_of(network, enforcer, monotonic)
    minute_of(network, enforcer, monotonic)
    found = network.query(number)
    assert found["state"] == "failed" and words in found["reason"]
    assert (network.query(paused)["state"], network.events(number).count("query failed")) == ("paused", 1)
    answers = network.answers(number)
    network.restart()
    assert network.query(number)["state"] == "failed" and network.answers(number) == answers
    network.durable.limits = QueryLimits()
    network.change("resume", number)
    network.live(60)
    assert network.query(number)["state"] == "running" and network.answers(number) != answers


def test_queries_within_their_limits_go_on(tmp_path):
    network, monotonic = SmallNetwork(tmp_path), [0.0]
    numbers = [network.durable.submit(text, network.now_ms, owner="anna") for text in QUERIES]
    network.durable.limits = QueryLimits(10, 10, 10**9, 10**9, 64.0, 64.0)
    enforcer = LimitEnforcer(network.durable, lambda: monotonic[0])
    for _ in range(3):
        minute_of(network, enforcer, monotonic)
    assert {network.query(number)["state"] for number in numbers} == {"running"}


def test_greatest_query_of_a_user_above_their_limit_fails(tmp_path):
    network, monotonic = SmallNetwork(tmp_path), [0.0]
    submit = network.durable.submit
    wide = QUERIES[2].replace("NOW-20", "NOW-200")
    numbers = [submit(text, network.now_ms, owner="anna") for text in (QUERIES[0], wide)]
    other = submit(QUERIES[2].replace("temp", "volt"), network.now_ms, owner="ben")
    network.live(60)
    shares, _ = network.durable.station.engine.usage(numbers, {})
    small, large = sorted(numbers, key=lambda number: shares[number].bytes)
    assert shares[large].bytes > shares[small].bytes > 0
    enforcer = LimitEnforcer(network.durable, lambda: monotonic[0])
    network.durable.limits = QueryLimits(state_bytes_of_user=int(shares[large].bytes) - 1)
    for _ in range(2):
        minute_of(network, enforcer, monotonic)
    assert [network.query(number)["state"] for number in (small, large, other)] == ["running", "failed", "running"]
    assert "the queries of anna together held" in network.query(large)["reason"]


@pytest.mark.parametrize(
    ("limits", "failed"),
    [
        (QueryLimits(state_bytes_of_user=100), "second"),
        (QueryLimits(cpu_share_of_user=0.5), "first"),
        (QueryLimits(cpu_share=0.5, state_bytes_of_user=100), "first"),  # without it the rest is within the limit
    ],
    ids=["state of the user", "time of the user", "time"],
)
def test_query_that_ends_has_the_most_of_what_was_exceeded(limits, failed, tmp_path, monkeypatch):
    """
            of a core   bytes
    first        0.6      40
    second       0.1      70
    """
    network, monotonic = SmallNetwork(tmp_path), [0.0]
    numbers = {
        name: network.durable.submit(text, network.now_ms, owner="anna")
        for name, text in zip(("first", "second"), QUERIES, strict=False)
    }
    measured = {numbers["first"]: OperatorShare(36e9, 40.0), numbers["second"]: OperatorShare(6e9, 70.0)}
    monkeypatch.setattr(network.durable.station, "usage", lambda _: (measured, {}))
    network.durable.limits = limits
    enforcer = LimitEnforcer(network.durable, lambda: monotonic[0])
    for _ in range(2):
        minute_of(network, enforcer, monotonic)
    states = {name: network.query(number)["state"] for name, number in numbers.items()}
    assert [name for name, state in states.items() if state == "failed"] == [failed]


def test_time_of_a_period_adds_up_for_queries_that_share(tmp_path):
    network = SmallNetwork(tmp_path)
    first = network.submit(QUERIES[2])
    network.live(60)
    engine = network.durable.station.engine
    _, times = engine.usage([first], {})
    second = network.submit(QUERIES[2])
    network.live(60)
    shares, later = engine.usage([first, second], times)
    grown = sum(time - times.get(operator, 0) for operator, time in later.items())
    assert sum(share.time for share in shares.values()) == pytest.approx(grown) and grown > 0
    assert min(share.time for share in shares.values()) >= 0


def test_query_that_needs_too_much_state_is_refused(tmp_path):
    network = SmallNetwork(tmp_path)
    week = "SELECT a.temp FROM field [FROM NOW-604800 TO NOW SLIDE 20 SEC] a, field [NOW] b WHERE a.site = b.site"
    needed = predict_state(week, network.durable.station)
    assert needed > predict_state(QUERIES[2], network.durable.station) > 0
    network.durable.limits, entries = QueryLimits(state_bytes=needed - 1), network.journal.last
    with pytest.raises(QueryLimitError, match="would hold up to") as found:
        network.submit(week)
    assert "limits.state_mb" in found.value.help and network.journal.last == entries
    network.submit(QUERIES[2])
    network.durable.limits = QueryLimits(state_bytes_of_user=needed)
    network.durable.submit(week, network.now_ms, owner="anna")
    network.live(30)
    with pytest.raises(QueryLimitError, match="the queries of anna hold"):
        network.durable.submit(week, network.now_ms, owner="anna")
    assert network.durable.submit(week, network.now_ms, owner="ben") == 3


def test_results_of_a_user_are_shared_by_their_queries(tmp_path):
    network = SmallNetwork(tmp_path)
    for owner in ("anna", "anna", "ben", None):
        network.durable.submit(QUERIES[0], network.now_ms, owner=owner)
    network.live(200)
    network.durable.trim(network.now_ms, Budget(numbers_of_user=10))
    kept = [behind - first for first, behind in map(network.journal.bounds, (1, 2, 3, 4))]
    assert kept[:3] == [5, 5, 10] and kept[3] > 10
