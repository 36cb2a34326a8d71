"""Lateness of ticks so far apart that their difference does not fit into 64 bits."""

import numpy as np
import pytest

from acquisition.batch import Batch, unit_weights
from basestation.execution.engine import Engine
from basestation.planner.catalog import read_schema

LEAST, LAST = -(2**63), 2**63 - 1


@pytest.mark.promise("clock-and-schedule")
@pytest.mark.parametrize(
    ("clause", "tick", "becomes"),
    [
        ("late revise by 6 sec", LEAST, {"accepted": 1, "late": 1, "beyond horizon": 1}),
        ("ahead 3 sec late append", LEAST, {"accepted": 2, "late": 1}),
        ("ahead 3 sec", LAST, {"accepted": 1, "ahead": 1}),
    ],
)
def test_tick_at_end_of_int64_is_late_or_ahead(clause, tick, becomes):
    engine = Engine(read_schema(f"hits: pushed (k:integer) {clause}"))
    for clock, stamped in enumerate([0, tick]):
        at, arrival = np.array([stamped]), np.array([clock])
        engine.deliver("hits", Batch(at, np.zeros(1, np.int64), arrival, unit_weights(1), {"k": np.array([7])}))
        engine.on_clock(clock)
    told = {what: count for what, count in engine.ledger()["hits"].items() if count}
    assert told == {"received": 2, **becomes}
