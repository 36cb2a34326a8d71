"""Reports of filtered readings (semantics 12.3): answers and coverage equal those with every reading delivered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.batch import Batch
from basestation.execution.engine import Engine
from basestation.execution.plan_checks import StartBeforeRecordError
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import EpochMark, split_singly
from tests.execution.test_engine import readings, told_at

SITES = (4, 3)
SCHEMA = "field: sensed (site:integer, temp:float {scale 1}) every 5 sec at sites 4, 3 wait 7 sec "
LATE = ("late revise by 20 sec", "late append", "late drop")
CONDITION = "WHERE temp > 0"
QUERIES = [
    f"SELECT site, temp FROM field [NOW] {CONDITION}",
    f"SELECT COUNT(*) AS n, AVG(temp) AS a FROM field [FROM NOW-10 TO NOW SLIDE 5 SEC] {CONDITION}",
    f"SELECT site, MAX(temp) AS a FROM field [FROM NOW-7 TO NOW-2 SLIDE 3 SEC] {CONDITION} GROUP BY site",
    f"SELECT site, temp FROM field {CONDITION}",
    f"SELECT SUM(temp) AS s FROM (SELECT temp FROM field {CONDITION}) [FROM NOW-1 TO NOW SLIDE 2 ROWS]",
    f"ISTREAM(SELECT temp FROM field [FROM NOW-10 TO NOW SLIDE 10 SEC] {CONDITION})",
    f"SELECT a.temp FROM (SELECT site, temp FROM field {CONDITION}) [NOW] a, (SELECT site, temp FROM field {CONDITION})"
    " [FROM NOW-5 TO NOW-5 SLIDE 5 SEC] b WHERE a.site = b.site",
]
KEYS = [(tick, site) for tick in range(0, 31, 5) for site in SITES]
COMING = st.dictionaries(st.sampled_from(KEYS), st.tuples(st.integers(0, 45), st.none() | st.integers(-4, 4)))


def filtered(*pairs):
    """Reports of (tick, site)."""
    tick, site = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    none = np.zeros(len(pairs), np.int64)
    return Batch(tick, site, none, none.copy(), {})


def said(catalog, text, came, on_motes, steps=1, anew=False):
    """All updates. With `on_motes`, readings that the condition rejects are only reported.

    `steps` is how many clock ticks one call ends; with `anew`, the engine is restored from a snapshot after each.
    """
    engine, found = Engine(catalog), []
    engine.add(1, bind_text(text, catalog)[0])
    for clock in range(61):
        for (tick, site), (delay, temp) in came.items():
            if tick + delay == clock:
                reported = on_motes and (temp is None or temp <= 0)
                batch = filtered((tick, site)) if reported else readings((tick, site, temp))
                batch.arrival[:] = clock
                engine.deliver("field", batch)
        if clock % steps == 0:
            found += split_singly(engine.on_clock(clock))
            engine = restore_engine(save_engine(engine)) if anew else engine
    return found, engine.ledger()["field"]


@pytest.mark.promise("placement")
@pytest.mark.parametrize("late", LATE)
@given(COMING, st.sampled_from(QUERIES), st.sampled_from([1, 4, 20]), st.booleans())
def test_filter_report_equals_rejected_reading(late, came, text, steps, anew):
    catalog = read_schema(SCHEMA + late)
    (everything, here), (reported, told) = (said(catalog, text, came, on, steps, anew) for on in (False, True))
    assert [without_index(u) for u in reported] == [without_index(u) for u in everything]
    for count in ("received", "late", "dropped", "beyond horizon"):
        assert told.get(count, 0) == here.get(count, 0)
    assert told.get("accepted", 0) + told.get("filtered", 0) == here.get("accepted", 0)


def without_index(update):
    """An update without indexes: a filtered reading takes none."""
    told = told_at(update, 0)
    return told if not hasattr(update, "index") else (told[0], *told[2:])


@pytest.mark.promise("placement")
def test_late_filter_report_corrects_epoch_coverage():
    catalog = read_schema(SCHEMA + LATE[0])
    came = {(0, 4): (1, 7), (0, 3): (2, -1), (5, 4): (0, 2), (5, 3): (12, -3)}
    found, _ = said(catalog, QUERIES[3], came, on_motes=True)
    marks = [(u.tick, u.coverage["field"]) for u in found if isinstance(u, EpochMark) and u.tick < 10]
    assert marks == [(0, (2, 2)), (5, (1, 2)), (5, (2, 2))]


@pytest.mark.promise("placement")
def test_filter_reports_count_once_and_only_if_due():
    engine = Engine(read_schema(SCHEMA + LATE[0]))
    for pair in ((0, 4), (0, 4), (1, 4), (0, 9)):
        engine.deliver("field", filtered(pair))
    engine.deliver("field", readings((5, 3, 1)))
    engine.deliver("field", filtered((5, 3), (5, 4), (5, 4)))
    engine.on_clock(5)
    counts = {what: count for what, count in engine.ledger()["field"].items() if count}
    assert counts == {
        "received": 8, "filtered": 2, "duplicate": 3, "rejected: off the schedule": 2, "accepted": 1
    }  # fmt: skip


@pytest.mark.promise("placement")
def test_query_cannot_start_before_filtered_readings():
    """Motes filtered by the conditions of other queries: readings that this query needs are missing."""
    catalog = read_schema(SCHEMA + LATE[0])
    engine = Engine(catalog, live=True)
    engine.add(1, bind_text(QUERIES[0], catalog)[0])
    for tick in range(0, 40, 5):
        report = tick in (10, 20)
        engine.deliver("field", filtered((tick, 4)) if report else readings((tick, 4, 7)))
        engine.on_clock(tick)
    asked = "SELECT temp FROM field [NOW] SINCE {}"
    with pytest.raises(StartBeforeRecordError) as caught:
        engine.add(2, bind_text(asked.format(20), catalog)[0])
    assert caught.value.first == 21
    engine.add(2, bind_text(asked.format(25), catalog)[0])
    found = [(u.tick, u.added.to_lists()) for u in split_singly(engine.on_clock(47)) if u.query == 2]
    assert found == [(tick, [(7,)]) for tick in (25, 30, 35)] + [(40, [])]
