"""Time is attributed to rooms of the source: each room is in one stage, and no time is missing."""

import pytest

from bench import record
from bench.tasks import TASKS, Case
from bench.where import REST, STAGES, by_stage, profiled


@pytest.mark.promise("speed")
def test_every_room_of_the_engine_is_in_one_stage():
    told = [room for rooms in STAGES.values() for room in rooms]
    engine = record.ROOT / "basestation/execution"
    rooms = {str(file.parent.relative_to(record.ROOT)) for file in engine.rglob("*.py")}
    assert len(told) == len(set(told)) and rooms <= set(told)
    assert all((record.ROOT / room).is_dir() for room in told)


@pytest.mark.promise("speed")
@pytest.mark.parametrize(("task", "stage"), [("W2", "aggregates"), ("W6", "predicate index"), ("W7", "joins")])
def test_stage_shares_sum_to_one_and_show_the_work_of_a_task(task, stage):
    shares = by_stage(profiled(Case(TASKS[task], 100, 20_000, 5_000, 100)))
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[stage] > shares[REST] and shares[stage] > 0.01
