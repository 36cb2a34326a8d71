"""Active hours: what their text means, and a query that rests outside of them, also across restarts."""

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.controller.active_hours import ActiveHoursError, parse_active_hours
from tests.station.small_network import BEGIN_MS, SmallNetwork

WINDOW = "SELECT COUNT(*) AS n FROM field [NOW]"
MINUTE = 60_000


def instant(text, zone="UTC"):
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1_000)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("06:00-18:00", "06:00-18:00 mon,tue,wed,thu,fri,sat,sun UTC"),
        ("6:00-18:30 mon-fri", "06:00-18:30 mon,tue,wed,thu,fri UTC"),
        ("22:00-06:00 Sat,sun Europe/Berlin", "22:00-06:00 sat,sun Europe/Berlin"),
        ("00:00-24:00 fri-mon UTC", "00:00-24:00 mon,fri,sat,sun UTC"),
        ("00:00-24:00 Asia/Tokyo", "00:00-24:00 mon,tue,wed,thu,fri,sat,sun Asia/Tokyo"),
    ],
)
def test_text_of_hours_is_read_and_written(text, written):
    assert str(parse_active_hours(text)) == written
    assert parse_active_hours(written) == parse_active_hours(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected hours such as `06:00-18:00`"),
        ("six to seven", "found `six`"),
        ("06:00-25:00", "`25:00` is no time of day"),
        ("06:60-07:00", "`06:60` is no time of day"),
        ("06:00-06:00", "begin and end are the same"),
        ("24:00-06:00", "begin and end are the same"),
        ("06:00-18:00 mon-frey UTC", "`frey` is no day"),
        ("06:00-18:00 mon Europe/Berln", "did you mean `Europe/Berlin`?"),
        ("06:00-18:00 ../../etc/passwd", "there is no time zone"),
        ("06:00-18:00 mon UTC please", "`please` is too much"),
        ("06:00-18:00 " + "x" * 10_000, "there is no time zone"),
    ],
)
def test_wrong_hours_say_what_is_wrong(text, words):
    with pytest.raises(ActiveHoursError) as found:
        parse_active_hours(text)
    assert words in str(found.value) and "06:00-18:00 mon-fri Europe/Berlin" in found.value.help


def test_hours_follow_the_clock_on_the_wall():
    """
    29 March 2026, Berlin: 01:59 CET is followed by 03:00 CEST, so 06:00 there is 04:00 UTC and no longer 05:00
    """
    hours = parse_active_hours("06:00-18:00 Europe/Berlin")
    for day, utc in (("2026-03-28", "05:00"), ("2026-03-29", "04:00"), ("2026-10-25", "05:00")):
        begin = instant(f"{day}T{utc}")
        assert not hours.is_active(begin - 1) and hours.is_active(begin)
        assert hours.is_active(begin + 12 * 60 * MINUTE - 1) and not hours.is_active(begin + 12 * 60 * MINUTE)


@given(st.integers(0, 1439), st.integers(0, 1440), st.sets(st.integers(0, 6), min_size=1), st.integers(0, 14 * 1440))
def test_hours_over_midnight_belong_to_the_day_they_begin(begin, end, days, minute):
    if begin == end:
        return
    names = ",".join("mon tue wed thu fri sat sun".split()[day] for day in days)
    hours = parse_active_hours(f"{begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02} {names}")
    now = datetime(2026, 11, 16, tzinfo=UTC) + timedelta(minutes=minute)
    spans = []
    for ago in range(2):
        midnight = now.replace(hour=0, minute=0) - timedelta(days=ago)
        if midnight.weekday() in days:
            last = midnight + timedelta(minutes=end if end > begin else end + 1440)
            spans.append(midnight + timedelta(minutes=begin) <= now < last)
    assert hours.is_active(int(now.timestamp() * 1_000)) == any(spans)


def ticks(network, number):
    lines = [json.loads(line) for line in network.answers(number).splitlines()]
    return [line["tick"] for line in lines if line["type"] == "window" and line["revision"] == 0]


def at(ms):
    return datetime.fromtimestamp(ms / 1_000, UTC).strftime("%H:%M")


def test_query_rests_outside_its_hours_and_over_restarts(tmp_path):
    """
    minutes   0     1        2        3        4        5
    hours           ├─ active ────────┤
    query     pause │ windows         │ pause  (restart in both)
    """
    network = SmallNetwork(tmp_path)
    begin = BEGIN_MS // MINUTE * MINUTE + 2 * MINUTE  # in 65 s
    active = f"{at(begin)}-{at(begin + 2 * MINUTE)}"
    number = network.durable.submit(WINDOW, network.now_ms, name="day", active=active)
    found = network.query(number)
    assert (found["state"], found["reason"]) == ("paused", "outside its active hours")
    assert found["active"].startswith(active) and not network.durable.station.world.live
    network.live(50)
    network.restart()
    network.live(60)
    assert network.query(number)["state"] == "running"
    network.live(60)
    network.restart()
    network.live(40)
    assert network.query(number)["state"] == "paused" and not network.durable.station.world.live
    given = ticks(network, number)
    assert given and begin <= given[0] * 1_000 and given[-1] * 1_000 < begin + 2 * MINUTE and len(given) >= 11
    assert network.events(number) == ["query deploying", "query paused", "query deploying", "query running",
                                      "query paused"]  # fmt: skip


def test_paused_query_stays_paused_when_its_hours_begin(tmp_path):
    network = SmallNetwork(tmp_path)
    begin = BEGIN_MS // MINUTE * MINUTE + MINUTE
    active = f"{at(begin)}-{at(begin + 10 * MINUTE)}"
    number = network.durable.submit(WINDOW, network.now_ms, active=active)
    network.change("pause", number)
    assert network.query(number)["reason"] == ""
    network.live(90)
    assert network.query(number)["state"] == "paused"
    network.change("resume", number)
    assert network.query(number)["state"] == "deploying"


def test_query_resumed_too_early_waits_for_its_hours(tmp_path):
    network = SmallNetwork(tmp_path)
    begin = BEGIN_MS // MINUTE * MINUTE + MINUTE
    number = network.durable.submit(WINDOW, network.now_ms, active=f"{at(begin)}-{at(begin + 10 * MINUTE)}")
    network.change("pause", number)
    network.change("resume", number)
    assert (network.query(number)["state"], network.query(number)["reason"]) == ("paused", "outside its active hours")
    network.live(90)
    assert network.query(number)["state"] == "running"


def test_time_of_for_may_end_outside_the_hours(tmp_path):
    network = SmallNetwork(tmp_path)
    begin = BEGIN_MS // MINUTE * MINUTE + 2 * MINUTE
    active = f"{at(begin)}-{at(begin + 10 * MINUTE)}"
    number = network.durable.submit(WINDOW + " FOR 30 SEC", network.now_ms, active=active)
    network.live(150)
    found = network.query(number)
    assert found["state"] == "stopped" and "the time of query 1 (FOR) is over" in found["reason"]


def test_replacement_takes_hours_over_unless_it_has_others(tmp_path):
    network = SmallNetwork(tmp_path)
    first = network.durable.submit(WINDOW, network.now_ms, name="it", active="00:00-24:00 mon-sun UTC")
    second = network.durable.replace(first, WINDOW, network.now_ms)
    third = network.durable.replace(second, WINDOW, network.now_ms, active="01:00-24:00")
    hours = [network.query(number)["active"][:11] for number in (first, second, third)]
    assert hours == ["00:00-24:00", "00:00-24:00", "01:00-24:00"]
    with pytest.raises(ActiveHoursError):
        network.durable.submit(WINDOW, network.now_ms, active="never")
