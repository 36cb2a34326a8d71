"""A query that switches plans gives the updates of a query that does not."""

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
    FedQuery,
    batch,
    collect_updates,
    windows,
)
from tests.execution.test_filtered_readings import filtered

WINDOWS = [text for text in QUERIES if "UNBOUNDED" not in text and "RSTREAM" not in text]
REACH = 20
"""Windows of WINDOWS begin at most so many ticks before their own tick, and slices are no longer than that."""
PAUSES = st.lists(st.integers(1, 8), min_size=2, max_size=2)


class SwitchedQuery:
    """One query, in turn over readings and over partials. `begins` and `switches` have the clock tick of each variant."""

    def __init__(self, text, first, pauses):
        self.variants, self.begins, self.switches, clock = [FedQuery(text, number=1)], [0], [-1], 0
        for number, pause in enumerate(pauses, 2):
            self.variants.append(FedQuery(text, number=number))
            self.begins.append(clock + pause)
            clock += pause + 2 * REACH
            self.switches.append(clock)
        self.is_by_partials = [(number + first) % 2 == 1 for number in range(len(self.variants))]

    def run(self, coming, anew=False, until=LAST + 60):
        engine, found = Engine(CATALOG, live=True, tidy_every=1), []
        query = self.variants[0]
        merged = query.merged(coming)
        extent = CATALOG.find(query.fed.fold.extent)
        for clock in range(until):
            for place, variant in enumerate(self.variants):
                fed = ((variant.fed,), {variant.number: variant.fed.fold}) if self.is_by_partials[place] else ()
                if clock == self.begins[place]:
                    (engine.start_variant if place else engine.add)(1, variant.plan, *fed)
                if place and clock == self.switches[place]:
                    engine.switch_variant(1)
            for (came, slice, _), rows in merged.items():
                if came == clock:
                    self._deliver(engine, extent, slice, rows, clock)
            found += [(clock, update) for update in split_singly(engine.on_clock(clock))]
            engine = restore_engine(save_engine(engine)) if anew else engine
        return found, engine

    def _deliver(self, engine, extent, slice, rows, clock):
        """Deliver readings or partials for each variant that needs them."""
        begin = self.variants[0].begin(slice)
        beyond = extent.horizon is not None and clock - begin > max(extent.horizon, extent.wait)
        for place, variant in enumerate(self.variants):
            last = self.switches[place + 1] if place + 1 < len(self.variants) else clock
            if not self.begins[place] <= begin <= last:
                continue
            if self.is_by_partials[place]:
                for each in variant.partials(rows, clock) if engine.has_fold(variant.number) else ():
                    engine.deliver(variant.number, each)
            elif not beyond:
                for name in variant.extents:  # a join of readings taken together has those of both
                    engine.deliver(name, batch(rows, clock))


def spread(coming):
    """The same readings over three times as many ticks, so that each variant has windows with readings."""
    return {(3 * tick, site): of for (tick, site), of in coming.items()}


@pytest.mark.promise("cheapest-placement")
@given(COMING, st.sampled_from(WINDOWS), st.booleans(), PAUSES, st.sampled_from([False] * 7 + [True]))
def test_switched_query_gives_windows_of_each_variant(coming, text, first, pauses, anew):
    coming, switched = spread(coming), SwitchedQuery(text, first, pauses)
    until = 3 * LAST + 60
    found, _ = switched.run(coming, anew, until)
    expected = collect_updates(FedQuery(text), coming, False, until=until)[0]
    assert windows(found) == windows(expected)
    first_answers = [u.tick for _, u in found if isinstance(u, WindowUpdate) and u.revision == 0]
    assert len(first_answers) == len(set(first_answers))


@pytest.mark.parametrize("first", [False, True])
def test_finished_variant_is_dropped_with_its_fold(first):
    switched = SwitchedQuery(QUERIES[0], first, [5, 5])
    coming = {(tick, site): (0, 1, 1) for tick in range(0, 200, 5) for site in SITES}
    _, engine = switched.run(coming, until=200)
    assert [engine.has_fold(variant.number) for variant in switched.variants] == [False, False, first]
    alone = Engine(CATALOG, live=True)
    alone.add(
        1,
        switched.variants[0].plan,
        *(((switched.variants[0].fed,), {1: switched.variants[0].fed.fold}) if first else ()),
    )
    assert len(engine._graph) == len(alone._graph)
    engine.remove(1)
    assert not len(engine._graph) and not engine.has_fold(3)


def test_started_variant_is_silent_before_switch():
    switched = SwitchedQuery(QUERIES[0], False, [5, 5])
    switched.switches = [-1, 10**6, 10**6]
    switched.variants, switched.begins = switched.variants[:2], switched.begins[:2]
    coming = {(tick, site): (0, 1, 1) for tick in range(0, 40, 5) for site in SITES}
    ticks = [update.tick for _, update in switched.run(coming)[0] if update.revision == 0]
    assert ticks == sorted(set(ticks)) and np.all(np.diff(ticks) == 5)


def test_variant_ignores_reports_from_before_its_start():
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
