"""A query that is answered in another way from some clock tick on says what it would have said in the one it began with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.engine import Engine
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.updates.update import WindowUpdate, split_singly
from tests.execution.slices.test_partial_slices import (
    CATALOG,
    COMING,
    LAST,
    QUERIES,
    SITES,
    Asked,
    batch,
    said,
    windows,
)
from tests.execution.test_filtered_readings import filtered

WINDOWS = [text for text in QUERIES if "UNBOUNDED" not in text and "RSTREAM" not in text]
REACH = 20
"""No window of theirs begins more ticks before its own, and no slice is longer."""
PAUSES = st.lists(st.integers(1, 8), min_size=2, max_size=2)


class Exchanged:
    """One query, in turn by readings and by partials: `begins` and `heard` are the clock ticks of each way but the first."""

    def __init__(self, text, first, pauses):
        self.ways, self.begins, self.heard, clock = [Asked(text, number=1)], [0], [-1], 0
        for number, pause in enumerate(pauses, 2):
            self.ways.append(Asked(text, number=number))
            self.begins.append(clock + pause)
            clock += pause + 2 * REACH
            self.heard.append(clock)
        self.by_partials = [(number + first) % 2 == 1 for number in range(len(self.ways))]

    def run(self, coming, anew=False, until=LAST + 60):
        engine, found = Engine(CATALOG, live=True, tidy_every=1), []
        query = self.ways[0]
        merged = query.merged(coming)
        extent = CATALOG.find(query.fed.fold.extent)
        for clock in range(until):
            for place, way in enumerate(self.ways):
                fed = ((way.fed,), {way.number: way.fed.fold}) if self.by_partials[place] else ()
                if clock == self.begins[place]:
                    (engine.start_variant if place else engine.add)(1, way.plan, *fed)
                if place and clock == self.heard[place]:
                    engine.switch_variant(1)
            for (came, slice, _), rows in merged.items():
                if came == clock:
                    self._deliver(engine, extent, slice, rows, clock)
            found += [(clock, update) for update in split_singly(engine.on_clock(clock))]
            engine = restore_engine(save_engine(engine)) if anew else engine
        return found, engine

    def _deliver(self, engine, extent, slice, rows, clock):
        """What of it motes send in each way: while it is asked for, and of no window that is another's."""
        begin = self.ways[0].begin(slice)
        beyond = extent.horizon is not None and clock - begin > max(extent.horizon, extent.wait)
        for place, way in enumerate(self.ways):
            last = self.heard[place + 1] if place + 1 < len(self.ways) else clock
            if not self.begins[place] <= begin <= last:
                continue
            if self.by_partials[place]:
                for each in way.partials(rows, clock) if engine.has_fold(way.number) else ():
                    engine.deliver(way.number, each)
            elif not beyond:
                for name in way.extents:  # a join of readings taken together has those of both
                    engine.deliver(name, batch(rows, clock))


def spread(coming):
    """The same readings, over three times as long: windows before, between and after what is exchanged have some."""
    return {(3 * tick, site): of for (tick, site), of in coming.items()}


@pytest.mark.promise("cheapest-placement")
@given(COMING, st.sampled_from(WINDOWS), st.booleans(), PAUSES, st.sampled_from([False] * 7 + [True]))
def test_windows_are_those_of_either_way_whenever_they_are_exchanged(coming, text, first, pauses, anew):
    coming, exchanged = spread(coming), Exchanged(text, first, pauses)
    until = 3 * LAST + 60
    found, _ = exchanged.run(coming, anew, until)
    expected = said(Asked(text), coming, False, until=until)[0]
    assert windows(found) == windows(expected)
    first_answers = [u.tick for _, u in found if isinstance(u, WindowUpdate) and u.revision == 0]
    assert len(first_answers) == len(set(first_answers))


@pytest.mark.parametrize("first", [False, True])
def test_who_can_say_no_more_is_let_go_of_and_so_is_what_fed_it(first):
    exchanged = Exchanged(QUERIES[0], first, [5, 5])
    coming = {(tick, site): (0, 1, 1) for tick in range(0, 200, 5) for site in SITES}
    _, engine = exchanged.run(coming, until=200)
    assert [engine.has_fold(way.number) for way in exchanged.ways] == [False, False, first]
    alone = Engine(CATALOG, live=True)
    alone.add(
        1, exchanged.ways[0].plan, *(((exchanged.ways[0].fed,), {1: exchanged.ways[0].fed.fold}) if first else ())
    )
    assert len(engine._graph) == len(alone._graph)
    engine.remove(1)
    assert not len(engine._graph) and not engine.has_fold(3)


def test_a_way_that_follows_is_not_heard_before_it_is_handed_over_to():
    exchanged = Exchanged(QUERIES[0], False, [5, 5])
    exchanged.heard = [-1, 10**6, 10**6]
    exchanged.ways, exchanged.begins = exchanged.ways[:2], exchanged.begins[:2]
    coming = {(tick, site): (0, 1, 1) for tick in range(0, 40, 5) for site in SITES}
    ticks = [update.tick for _, update in exchanged.run(coming)[0] if update.revision == 0]
    assert ticks == sorted(set(ticks)) and np.all(np.diff(ticks) == 5)


def test_what_was_filtered_before_the_way_that_follows_was_asked_is_nothing_that_it_has_heard_of():
    text = "SELECT COUNT(*) AS n FROM field [FROM NOW-10 TO NOW SLIDE 10 SEC] WHERE temp > 0"
    plan = bind_text(text, CATALOG)[0]
    engine, said = Engine(CATALOG, live=True), []
    engine.add(1, plan)
    for tick in range(0, 45, 5):
        reports = filtered(*((tick, site) for site in SITES))
        reports.arrival[:] = tick
        engine.deliver("field", reports)
        said += split_singly(engine.on_clock(tick))
        if tick == 10:
            engine.start_variant(1, plan, reports_from={"field": 20})
            engine.switch_variant(1)
    assert [(update.tick, update.coverage["field"]) for update in said] == [
        (0, (3, 3)), (10, (9, 9)), (20, (3, 9)), (30, (9, 9)), (40, (9, 9)),
    ]  # fmt: skip
