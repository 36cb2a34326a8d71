"""One schedule per site for all queries: each sensor once per due tick, nothing changed without need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.errors import ScheduleError
from acquisition.extent import Catalog, Extent, Kind
from acquisition.schedule import sensor_code, width_of
from acquisition.schedule_builder import NOTHING, Need, share
from acquisition.schema import Attribute, Schema, Type
from acquisition.ticks import Epochs


def sensed(name="field", interval=10, sites=(3, 4), attributes=()):
    known = (Attribute("site", Type.INTEGER), Attribute("time", Type.INTEGER))
    sampled = attributes or (
        Attribute("temp", Type.FLOAT, sensor="temperature", scale=2, range=(-40, 125)),
        Attribute("volt", Type.INTEGER),
    )
    return Extent(name, Kind.SENSED, Schema((*known, *sampled)), interval, sites, interval, horizon=60, ahead=interval)


CATALOG = Catalog({"field": sensed(), "road": sensed("road", 60, (4, 5))})


def need(*attributes, extent="field", every=10):
    return Need(extent, frozenset(attributes), every)


def test_one_need():
    scheduled = share([need("site", "temp")], CATALOG, NOTHING, now=25)
    [sampling] = scheduled.samplings.values()
    assert sampling.epochs == Epochs(30, 10)  # the next due tick of the grid
    assert [(c.attribute, c.sensor, c.bits) for c in sampling.channels] == [("temp", sensor_code("temperature"), 15)]
    assert {site: s.samplings for site, s in scheduled.schedules.items()} == {3: (sampling,), 4: (sampling,)}


def test_what_several_queries_want_is_sampled_once():
    scheduled = share([need("temp", every=20), need("volt", every=30)], CATALOG, NOTHING, now=0)
    [sampling] = scheduled.samplings.values()
    assert sampling.epochs.interval == 10
    assert [c.attribute for c in sampling.channels] == ["temp", "volt"]


def test_what_is_not_changed_stays_the_same_object():
    first = share([need("temp")], CATALOG, NOTHING, now=0)
    same = share([need("temp"), need("temp")], CATALOG, first, now=100)
    assert same.schedules[3] is first.schedules[3]
    road = share([need("temp"), need("volt", extent="road", every=60)], CATALOG, first, now=100)
    assert road.schedules[3] is first.schedules[3]
    assert road.schedules[4].version == first.schedules[4].version + 1
    assert [s.extent for s in road.schedules[4].samplings] == ["field", "road"]


def test_who_sends_something_else_does_so_under_another_number():
    """What a reading came with is known by its number alone."""

    def sent(before, *sent, sites=(3, 4)):
        wanted = [need("temp", "volt")]
        return share(wanted, CATALOG, before, 35, sent_of={"field": dict.fromkeys(sent, sites)})

    folded = sent(NOTHING)
    some, more, all_ = sent(folded, "temp", sites=(4,)), sent(folded, "temp"), sent(folded, "temp", "volt")
    senders = [[c.senders for c in each.current("field").channels] for each in (folded, some, more, all_)]
    assert senders == [[frozenset()] * 2, [frozenset({4}), frozenset()], [None, frozenset()], [None, None]]
    assert sent(some, "temp", sites=(4,)).schedules[3] is some.schedules[3]
    for before, after in ((folded, more), (some, sent(some, "temp")), (all_, sent(all_, "temp"))):
        assert before.current("field").number != after.current("field").number
        assert after.samplings[before.current("field").number] == before.current("field")


def test_a_changed_sampling_gets_a_number_of_its_own_and_the_old_one_stays_readable():
    first = share([need("temp")], CATALOG, NOTHING, now=0)
    second = share([need("temp", "volt")], CATALOG, first, now=35)
    assert set(second.samplings) == {0, 1}
    assert second.samplings[0] == first.samplings[0]
    assert second.samplings[1].epochs.start == 40


def test_numbers_come_round_after_256():
    scheduled = NOTHING
    for turn in range(300):
        scheduled = share([need("temp", "volt") if turn % 2 else need("temp")], CATALOG, scheduled, now=turn)
        assert scheduled.current("field").number == turn % 256
        assert len(scheduled.samplings) == min(turn + 1, 256)


def test_a_sampling_that_stays_keeps_its_number_when_they_come_round():
    """Else its readings would be taken for those of another extent."""
    scheduled = share([need("temp")], CATALOG, NOTHING, now=0)
    stays = scheduled.current("field")
    for turn in range(600):
        other = need(*(["temp", "volt"] if turn % 2 else ["temp"]), extent="road", every=60)
        scheduled = share([need("temp"), other], CATALOG, scheduled, now=60 * turn)
        comes = scheduled.current("road")
        assert scheduled.current("field") is stays is scheduled.samplings[0]
        assert comes.number == turn % 255 + 1 and scheduled.samplings[comes.number] is comes
        assert scheduled.schedules[4].samplings == (stays, comes)


def test_no_two_samplings_have_one_number_however_many_there_are():
    many = {f"e{n}": sensed(f"e{n}", sites=(n + 1,)) for n in range(257)}
    needs = [need("temp", extent=name) for name in many]
    scheduled = share(needs[:-1], Catalog(many), NOTHING, now=0)
    assert sorted(s.number for each in scheduled.schedules.values() for s in each.samplings) == list(range(256))
    with pytest.raises(ScheduleError, match="extent `e256`: 256 samplings run or have just ended"):
        share(needs, Catalog(many), scheduled, now=10)
    assert share(needs[:-1], Catalog(many), scheduled, now=20).samplings == scheduled.samplings


def test_a_site_that_nobody_needs_any_more_is_silenced():
    first = share([need("temp")], CATALOG, NOTHING, now=0)
    silent = share([], CATALOG, first, now=10)
    assert {site: (s.version, s.samplings) for site, s in silent.schedules.items()} == {3: (2, ()), 4: (2, ())}
    assert share([], CATALOG, silent, now=20).schedules == silent.schedules


def test_a_site_of_which_nothing_is_wanted_is_silent_and_the_others_keep_what_they_have():
    first = share([need("temp")], CATALOG, NOTHING, now=0)
    less = share([need("temp")], CATALOG, first, now=10, wanted_of={"field": {3}})
    assert {site: (s.version, s.samplings) for site, s in less.schedules.items()} == {
        3: (1, first.schedules[3].samplings), 4: (2, ()),
    }  # fmt: skip
    again = share([need("temp")], CATALOG, less, now=20)
    assert again.schedules[3] is first.schedules[3]
    assert again.schedules[4].samplings == first.schedules[4].samplings


FLOAT = Attribute("wind", Type.FLOAT)
TWINS = (Attribute("a", Type.INTEGER, sensor="s"), Attribute("b", Type.INTEGER, sensor="s"))
MANY = tuple(Attribute(f"a{n}", Type.INTEGER) for n in range(9))


@pytest.mark.parametrize(
    ("extent", "asked", "said"),
    [
        (sensed(), need("temp", every=15), "no multiple of its interval, 10"),
        (sensed(), need("temp", every=2**32 + 4), r"every 4,294,967,300 ticks is too rare; motes count 4,294,967,295"),
        (sensed(attributes=(FLOAT,)), need("wind"), "needs a scale"),
        (sensed(attributes=TWINS), need("a", "b"), "same code"),
        (sensed(attributes=MANY), need(*(a.name for a in MANY)), "at most 8"),
        (sensed(sites=None), need("temp"), "list the sites"),
        (Extent("field", Kind.PUSHED, Schema(())), need("temp"), "only a sensed extent"),
        (sensed("other"), need("temp"), "only a sensed extent"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_with_a_reason(extent, asked, said):
    with pytest.raises(ScheduleError, match=said):
        share([asked], Catalog({extent.name: extent}), NOTHING, now=0)


@pytest.mark.parametrize(
    ("range_", "scale", "bits"),
    [(None, None, 16), ((0, 1), None, 2), ((-1, 0), None, 1), ((-128, 127), None, 8), ((-129, 127), None, 9),
     ((-40, 125), 2, 15), ((0, 1e12), 2, 32)],
)  # fmt: skip
def test_widths_hold_the_declared_range(range_, scale, bits):
    assert width_of(Attribute("a", Type.FLOAT, scale=scale, range=range_)) == bits


@given(st.lists(st.tuples(st.sampled_from(["temp", "volt"]), st.integers(1, 12)), min_size=1), st.integers(0, 10**6))
def test_everybody_gets_what_was_asked(asked, now):
    """Each need's columns are sampled at all of its ticks from now on, by every site."""
    scheduled = share([need(name, every=10 * times) for name, times in asked], CATALOG, NOTHING, now)
    for site in (3, 4):
        [sampling] = scheduled.schedules[site].samplings
        for name, times in asked:
            assert name in [channel.attribute for channel in sampling.channels]
            first = -(-now // (10 * times)) * 10 * times
            assert sampling.epochs.epoch(first) is not None
