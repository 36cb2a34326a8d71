"""One schedule per site for all queries: each sensor is sampled once per due tick, unchanged schedules stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.errors import ScheduleError
from acquisition.extent import Catalog, Extent, ExtentKind
from acquisition.schedule import sensor_code, width_of
from acquisition.schedule_builder import NO_SCHEDULES, SamplingNeed, build_schedules
from acquisition.schema import Attribute, Schema, Type
from acquisition.ticks import EpochGrid


def sensed(name="field", interval=10, sites=(3, 4), attributes=()):
    known = (Attribute("site", Type.INTEGER), Attribute("time", Type.INTEGER))
    sampled = attributes or (
        Attribute("temp", Type.FLOAT, sensor="temperature", scale=2, range=(-40, 125)),
        Attribute("volt", Type.INTEGER),
    )
    return Extent(
        name, ExtentKind.SENSED, Schema((*known, *sampled)), interval, sites, interval, horizon=60, ahead=interval
    )


CATALOG = Catalog({"field": sensed(), "road": sensed("road", 60, (4, 5))})


def need(*attributes, extent="field", every=10):
    return SamplingNeed(extent, frozenset(attributes), every)


def test_one_need_gives_one_sampling():
    scheduled = build_schedules([need("site", "temp")], CATALOG, NO_SCHEDULES, now=25)
    [sampling] = scheduled.samplings.values()
    assert sampling.epochs == EpochGrid(30, 10)  # the next due tick of the grid
    assert [(c.attribute, c.sensor, c.bits) for c in sampling.channels] == [("temp", sensor_code("temperature"), 15)]
    assert {site: s.samplings for site, s in scheduled.schedules.items()} == {3: (sampling,), 4: (sampling,)}


@pytest.mark.promise("sampled-once")
def test_needs_of_several_queries_are_sampled_once():
    scheduled = build_schedules([need("temp", every=20), need("volt", every=30)], CATALOG, NO_SCHEDULES, now=0)
    [sampling] = scheduled.samplings.values()
    assert sampling.epochs.interval == 10
    assert [c.attribute for c in sampling.channels] == ["temp", "volt"]


def test_unchanged_schedule_stays_the_same_object():
    first = build_schedules([need("temp")], CATALOG, NO_SCHEDULES, now=0)
    same = build_schedules([need("temp"), need("temp")], CATALOG, first, now=100)
    assert same.schedules[3] is first.schedules[3]
    road = build_schedules([need("temp"), need("volt", extent="road", every=60)], CATALOG, first, now=100)
    assert road.schedules[3] is first.schedules[3]
    assert road.schedules[4].version == first.schedules[4].version + 1
    assert [s.extent for s in road.schedules[4].samplings] == ["field", "road"]


@pytest.mark.promise("placement")
def test_changed_senders_get_another_sampling_number():
    """The sampling number alone tells which values a frame has."""

    def sent(before, *sent, sites=(3, 4)):
        needs = [need("temp", "volt")]
        return build_schedules(needs, CATALOG, before, 35, senders={"field": dict.fromkeys(sent, sites)})

    folded = sent(NO_SCHEDULES)
    some, more, all_ = sent(folded, "temp", sites=(4,)), sent(folded, "temp"), sent(folded, "temp", "volt")
    senders = [[c.senders for c in each.current("field").channels] for each in (folded, some, more, all_)]
    assert senders == [[frozenset()] * 2, [frozenset({4}), frozenset()], [None, frozenset()], [None, None]]
    assert sent(some, "temp", sites=(4,)).schedules[3] is some.schedules[3]
    for before, after in ((folded, more), (some, sent(some, "temp")), (all_, sent(all_, "temp"))):
        assert before.current("field").number != after.current("field").number
        assert after.samplings[before.current("field").number] == before.current("field")


def test_changed_sampling_gets_new_number_and_old_one_stays():
    first = build_schedules([need("temp")], CATALOG, NO_SCHEDULES, now=0)
    second = build_schedules([need("temp", "volt")], CATALOG, first, now=35)
    assert set(second.samplings) == {0, 1}
    assert second.samplings[0] == first.samplings[0]
    assert second.samplings[1].epochs.start == 40


def test_sampling_numbers_wrap_after_256():
    scheduled = NO_SCHEDULES
    for turn in range(300):
        scheduled = build_schedules([need("temp", "volt") if turn % 2 else need("temp")], CATALOG, scheduled, now=turn)
        assert scheduled.current("field").number == turn % 256
        assert len(scheduled.samplings) == min(turn + 1, 256)


@pytest.mark.promise("sampled-once")
def test_running_sampling_keeps_its_number_when_numbers_wrap():
    """Otherwise its readings would be decoded as those of another extent."""
    scheduled = build_schedules([need("temp")], CATALOG, NO_SCHEDULES, now=0)
    running = scheduled.current("field")
    for turn in range(600):
        other = need(*(["temp", "volt"] if turn % 2 else ["temp"]), extent="road", every=60)
        scheduled = build_schedules([need("temp"), other], CATALOG, scheduled, now=60 * turn)
        changed = scheduled.current("road")
        assert scheduled.current("field") is running is scheduled.samplings[0]
        assert changed.number == turn % 255 + 1 and scheduled.samplings[changed.number] is changed
        assert scheduled.schedules[4].samplings == (running, changed)


@pytest.mark.promise("sampled-once")
def test_257th_sampling_is_refused_so_numbers_stay_unique():
    many = {f"e{n}": sensed(f"e{n}", sites=(n + 1,)) for n in range(257)}
    needs = [need("temp", extent=name) for name in many]
    scheduled = build_schedules(needs[:-1], Catalog(many), NO_SCHEDULES, now=0)
    assert sorted(s.number for each in scheduled.schedules.values() for s in each.samplings) == list(range(256))
    with pytest.raises(ScheduleError, match="extent `e256`: 256 samplings run or have just ended"):
        build_schedules(needs, Catalog(many), scheduled, now=10)
    assert build_schedules(needs[:-1], Catalog(many), scheduled, now=20).samplings == scheduled.samplings


def test_site_without_needs_gets_an_empty_schedule():
    first = build_schedules([need("temp")], CATALOG, NO_SCHEDULES, now=0)
    silent = build_schedules([], CATALOG, first, now=10)
    assert {site: (s.version, s.samplings) for site, s in silent.schedules.items()} == {3: (2, ()), 4: (2, ())}
    assert build_schedules([], CATALOG, silent, now=20).schedules == silent.schedules


@pytest.mark.promise("placement")
def test_site_without_readers_gets_an_empty_schedule():
    first = build_schedules([need("temp")], CATALOG, NO_SCHEDULES, now=0)
    less = build_schedules([need("temp")], CATALOG, first, now=10, required_sites={"field": {3}})
    assert {site: (s.version, s.samplings) for site, s in less.schedules.items()} == {
        3: (1, first.schedules[3].samplings), 4: (2, ()),
    }  # fmt: skip
    again = build_schedules([need("temp")], CATALOG, less, now=20)
    assert again.schedules[3] is first.schedules[3]
    assert again.schedules[4].samplings == first.schedules[4].samplings


FLOAT = Attribute("wind", Type.FLOAT)
TWINS = (Attribute("a", Type.INTEGER, sensor="s"), Attribute("b", Type.INTEGER, sensor="s"))
MANY = tuple(Attribute(f"a{n}", Type.INTEGER) for n in range(9))


@pytest.mark.promise("sampled-once")
@pytest.mark.parametrize(
    ("extent", "asked", "said"),
    [
        (sensed(), need("temp", every=15), "expected a multiple of its interval, 10 ticks; found 15"),
        (sensed(), need("temp", every=2**32 + 4), "interval of at most 4,294,967,295 ticks, found 4,294,967,300"),
        (sensed(attributes=(FLOAT,)), need("wind"), "needs a scale"),
        (sensed(attributes=TWINS), need("a", "b"), "same code"),
        (sensed(attributes=MANY), need(*(a.name for a in MANY)), "at most 8"),
        (sensed(sites=None), need("temp"), "list the sites"),
        (Extent("field", ExtentKind.PUSHED, Schema(())), need("temp"), "expected a sensed extent"),
        (sensed("other"), need("temp"), "expected a sensed extent"),
    ],
)
def test_impossible_schedule_is_refused_with_its_reason(extent, asked, said):
    with pytest.raises(ScheduleError, match=said):
        build_schedules([asked], Catalog({extent.name: extent}), NO_SCHEDULES, now=0)


@pytest.mark.parametrize(
    ("range_", "scale", "bits"),
    [(None, None, 16), ((0, 1), None, 2), ((-1, 0), None, 1), ((-128, 127), None, 8), ((-129, 127), None, 9),
     ((-40, 125), 2, 15), ((0, 1e12), 2, 32)],
)  # fmt: skip
def test_channel_width_holds_the_declared_range(range_, scale, bits):
    assert width_of(Attribute("a", Type.FLOAT, scale=scale, range=range_)) == bits


@given(st.lists(st.tuples(st.sampled_from(["temp", "volt"]), st.integers(1, 12)), min_size=1), st.integers(0, 10**6))
def test_every_need_is_met_at_its_interval(asked, now):
    """Each need's columns are sampled at all of its ticks from now on, by every site."""
    scheduled = build_schedules([need(name, every=10 * times) for name, times in asked], CATALOG, NO_SCHEDULES, now)
    for site in (3, 4):
        [sampling] = scheduled.schedules[site].samplings
        for name, times in asked:
            assert name in [channel.attribute for channel in sampling.channels]
            first = -(-now // (10 * times)) * 10 * times
            assert sampling.epochs.epoch(first) is not None
