"""The sampling interval follows from windows, unless the query needs every reading."""

from math import gcd, lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.algebra.stream_acquire import StreamAcquire
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.rewriter import rewrite
from tests.planner.binder_helpers import only


@pytest.mark.promise("placement")
@given(st.integers(1, 12), st.integers(1, 20), st.integers(0, 40), st.integers(0, 40))
def test_extent_is_sampled_only_at_windowed_ticks(every, slide, reach, until):
    begin, end = -max(reach, until), -min(reach, until)
    catalog = read_schema(f"r: sensed (site:integer, v:integer) every {every} sec at sites 1")
    window = f"[FROM NOW-{-begin} TO NOW-{-end} SLIDE {slide} SEC]".replace("NOW-0", "NOW")
    [plan] = bind_text(f"SELECT v FROM r {window}", catalog)
    sampled = only(rewrite(plan)[0].root, StreamAcquire).interval
    common = lcm(every, slide)
    held = {tick for w in range(0, 3 * common, slide) for tick in range(w + begin, w + end + 1) if tick % every == 0}
    assert sampled == (gcd(common, *held) if held else every)


@pytest.mark.promise("placement")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT v, i FROM (SELECT index AS i, v FROM r) x [FROM NOW TO NOW SLIDE 30 SEC]",
        "SELECT r.v FROM r [FROM NOW TO NOW SLIDE 30 SEC], r.HISTORY h [SCAN 30 SEC]",
        "SELECT v FROM r [UNBOUNDED SLIDE 30 SEC] FOR 1 MIN",
        "SELECT v FROM r [FROM NOW TO NOW SLIDE 30 ROWS]",
        "SELECT v FROM (RSTREAM(SELECT v FROM r [NOW])) x [FROM NOW TO NOW SLIDE 30 SEC]",
        "SELECT v FROM long [FROM NOW TO NOW SLIDE 30 SEC]",  # windows wait longer than one interval
    ],
)
def test_extent_is_sampled_fully_where_query_needs_all_readings(text):
    catalog = read_schema("""
        r: sensed (site:integer, v:integer) every 10 sec at sites 1, 2
        long: sensed (site:integer, v:integer) every 10 sec at sites 1 wait 11 sec
    """)
    [plan] = bind_text(text, catalog)
    better, steps = rewrite(plan)
    assert "acquire_only_windowed_ticks" not in {step.rule for step in steps}
    assert only(better.root, StreamAcquire).interval == 10
