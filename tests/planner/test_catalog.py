"""The meaning of the clauses of a schema (semantics 13), with ticks of any length."""

import pytest

from acquisition.extent import ExtentKind, LatePolicy
from acquisition.schema import Type
from basestation.planner.catalog import read_schema
from gateway.diagnostics import DiagnosticError


def extent(text, **options):
    (found,) = read_schema(text, **options)
    return found


def codes(text, **options):
    with pytest.raises(DiagnosticError) as refused:
        read_schema(text, **options)
    return [d.code for d in refused.value.diagnostics]


def test_sensed_extent_defaults():
    found = extent("r: sensed (site:integer, v:float) every 1 min at sites 3, 1 .. 2")
    assert (found.kind, found.interval, found.sites) == (ExtentKind.SENSED, 60, (3, 1, 2))
    assert (found.wait, found.late, found.horizon, found.ahead) == (60, LatePolicy.REVISE, 86_400, 60)
    assert [(a.name, a.type) for a in found.schema] == [("site", Type.INTEGER), ("v", Type.FLOAT)]


def test_pushed_extent_defaults():
    found = extent("p: pushed (a:integer)")
    assert (found.wait, found.late, found.horizon, found.ahead) == (0, LatePolicy.REVISE, 86_400, None)
    assert found.interval is None and found.sites == ()


def test_stored_extent_defaults():
    found = extent("t: stored (a:integer, s:string, at:time) from 'a table.csv'")
    assert found.source == "a table.csv" and found.horizon is None
    assert [a.type for a in found.schema] == [Type.INTEGER, Type.STRING, Type.TIME]


def test_all_extent_clauses():
    found = extent("r: sensed (v:float) every 10 sec at sites 1 wait 1 min late revise by 2 hours ahead 5 sec")
    assert (found.interval, found.wait, found.late, found.horizon, found.ahead) == (10, 60, LatePolicy.REVISE, 7_200, 5)


@pytest.mark.parametrize("late", [LatePolicy.APPEND, LatePolicy.DROP])
def test_late_append_and_drop_have_no_horizon(late):
    found = extent(f"p: pushed (a:integer) late {late}")
    assert (found.late, found.horizon) == (late, None)


def test_at_sites_all_has_no_sites():
    assert extent("r: sensed (v:float) every 1 sec at sites all").sites is None


def test_attribute_properties():
    text = "r: sensed (t:float {unit 'Cel', sensor 'temperature', scale 2, range -40 .. 125.5}) every 1 sec at sites 1"
    (found,) = extent(text).schema
    assert (found.unit, found.sensor, found.scale, found.range) == ("Cel", "temperature", 2, (-40, 125.5))


@pytest.mark.parametrize(
    ("text", "site", "time"),
    [
        ("r: sensed (site:integer, time:integer) every 1 sec at sites 1", True, True),
        ("r: sensed (site:integer, time:time) every 1 sec at sites 1", True, True),
        ("r: sensed (site:string, time:float) every 1 sec at sites 1", False, False),
        ("r: sensed (site:time, time:string) every 1 sec at sites 1", False, False),
        ("p: pushed (site:integer, time:time)", False, False),
    ],
)
def test_site_and_time_need_no_sensor(text, site, time):
    found = extent(text)
    assert (found.site_attribute is not None, found.time_attribute is not None) == (site, time)


@pytest.mark.parametrize(("tick_ms", "interval", "wait"), [(1, 60_000, 1_500), (100, 600, 15), (500, 120, 3)])
def test_extent_durations_convert_with_other_tick_length(tick_ms, interval, wait):
    found = extent("r: sensed (v:float) every 1 min at sites 1 wait 1500 ms", tick_ms=tick_ms)
    assert (found.interval, found.wait) == (interval, wait)
    assert found.horizon == 86_400_000 // tick_ms


def test_fraction_of_tick_is_error():
    assert codes("r: sensed (v:float) every 1 min at sites 1 wait 1500 ms", tick_ms=1_000) == ["SN412"]
    assert codes("r: sensed (v:float) every 90 sec at sites 1 wait 1 min", tick_ms=60_000) == ["SN412"]


def test_wait_of_zero():
    assert extent("r: sensed (v:float) every 1 min at sites 1 wait 0 sec ahead 0 sec").wait == 0
    assert extent("r: sensed (v:float) every 1 min at sites 1").wait == 60
    assert extent("p: pushed (v:float) ahead 0 sec").ahead == 0
    assert extent("p: pushed (v:float)").ahead is None
    assert codes("p: pushed (v:float) late revise by 0 sec") == ["SN107"]


def test_span_above_2_to_62_ticks_is_error():
    assert codes("p: pushed (a:integer) wait 9223372036854775807 day") == ["SN308"]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("r: sensed (a:integer) every 1 min at sites 4 .. 1", ["SN105"]),
        ("r: sensed (a:integer) every 5 fortnights at sites 1", ["SN106"]),
        ("p: pushed (a:integer) wait 5 rows", ["SN106"]),
        ("p: pushed (a:strin)", ["SN206"]),
    ],
)
def test_parser_errors_are_not_repeated(text, reported):
    assert codes(text) == reported


def test_errors_of_all_extents_are_reported():
    text = "a: pushed (tick:integer)\nb: stored (s:string {scale 2}) every 1 sec\na: sensed (x:integer) every 1 sec"
    assert codes(text) == ["SN210", "SN426", "SN424", "SN208", "SN425"]
