"""A reading that was sent without an attribute that a query reads is not one of the query's readings.

The expected answers are those of an engine that gets only the readings with all attributes of the query. In the other engine, all
readings are in one intake, and queries share state.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.batch import Batch, unit_weights
from basestation.execution.engine import Engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.results.schema import schema_of
from basestation.updates.update import split_by_query
from tests.simulation.answer_comparison import difference, now_of

CATALOG = read_schema(
    "hall: sensed (site:integer, x:integer, y:integer) every 2 sec at sites 1, 2, 3 wait 4 sec late revise"
)
SITES, UNTIL = (1, 2, 3), 20
SOME = "[FROM NOW-3 TO NOW SLIDE 2 SEC]"
QUERIES = {
    "SELECT x FROM hall": "x",
    "SELECT y FROM hall": "y",
    "SELECT site FROM hall": "",
    "SELECT site FROM hall WHERE x > 3": "x",
    "SELECT y FROM hall WHERE y > 3": "y",
    f"SELECT site, x FROM hall {SOME}": "x",
    f"SELECT site, y FROM hall {SOME}": "y",
    f"SELECT COUNT(*) AS n, MAX(x) AS m FROM hall {SOME}": "x",
    f"SELECT COUNT(*) AS n, MEDIAN(y) AS m FROM hall {SOME}": "y",
    f"SELECT COUNT(*) AS n FROM hall {SOME} WHERE site < 3": "",
    f"SELECT AVG(x) AS m FROM hall {SOME} WHERE y > 3 AND site < 3": "xy",
    "SELECT x FROM hall [FROM NOW-3 TO NOW SLIDE 3 ROWS]": "x",
    f"ISTREAM(SELECT y FROM hall {SOME})": "y",
    f"SELECT a.x, b.y FROM hall {SOME} AS a, hall [FROM NOW TO NOW SLIDE 2 SEC] AS b WHERE a.site = b.site": "xy",
}


@st.composite
def readings(draw):
    """(tick, site, clock tick of delivery, attributes that it was sent with)."""
    keys = draw(st.lists(st.tuples(st.integers(0, UNTIL // 2 - 3), st.sampled_from(SITES)), unique=True, max_size=24))
    sent, late = st.sampled_from(("", "x", "y", "xy", "xy")), st.integers(0, 7)
    return [(2 * epoch, site, 2 * epoch + draw(late), draw(sent)) for epoch, site in keys]


def batches(found):
    """Batches by clock tick, of readings with the same attributes."""
    for clock in range(UNTIL + 1):
        for sent in ("", "x", "y", "xy"):
            rows = [(tick, site) for tick, site, delivery, with_ in found if (delivery, with_) == (clock, sent)]
            if rows:
                tick, site = np.array(rows).T
                columns = {"site": site, **{name: (3 * tick + 5 * site) % 7 for name in sent}}
                valid = {name: (tick + site) % 5 > 0 for name in sent}  # sensors fail
                yield clock, Batch(tick, site, np.full(len(tick), clock), unit_weights(len(tick)), columns, valid)


def said(found, reads, at_once):
    """The final answers of queries, each with the columns it reads; of a recording at once, or tick by tick."""
    engine, plans, updates = Engine(CATALOG, tidy_every=3), {}, []
    for number, text in enumerate(reads):
        plans[number] = bind_text(text, CATALOG)[0]
        engine.add(number, plans[number], reads={"hall": tuple(reads[text])})
    came = list(batches(found))
    for clock in () if at_once else range(UNTIL):
        for delivery, batch in came:
            if delivery == clock:
                engine.deliver("hall", batch)
        updates += split_by_query(engine.on_clock(clock))
    for delivery, batch in came:
        if at_once or delivery == UNTIL:
            engine.deliver("hall", batch)
    updates += split_by_query(engine.finish(UNTIL))
    return {
        text: now_of(schema_of(number, plans[number]), [each for each in updates if each.query == number])
        for number, text in enumerate(reads)
    }


@pytest.mark.promise("placement")
@given(readings(), st.booleans())
def test_reading_without_needed_column_is_not_read(found, at_once):
    together = said(found, QUERIES, at_once)
    for text, reads in QUERIES.items():
        whole = [reading for reading in found if set(reads) <= set(reading[3])]
        what = difference(said(whole, {text: ""}, at_once)[text], together[text])
        assert what is None, f"{text}, {what}"


def test_queries_with_other_columns_read_other_readings():
    found = [(2, 1, 2, "x"), (2, 2, 2, "xy"), (2, 3, 2, "y")]
    texts = {f"SELECT site, {name} FROM hall {SOME}": name for name in ("x", "y")}
    rows = [sorted(row[0][1] for row in of["window", (2, 1)]) for of in said(found, texts, False).values()]
    covered = [of["coverage of", (2, 1)]["hall"] for of in said(found, texts, False).values()]
    assert rows == [[1, 2], [2, 3]] and covered == [(2, 6), (2, 6)]
