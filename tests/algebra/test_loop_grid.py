"""The grid of a for-loop: which ticks its windows begin and end at, where t and the ends move by fixed steps."""

import pytest

from basestation.algebra.loop_grid import find_loop_grid
from basestation.algebra.node import walk
from basestation.algebra.window import LoopWindow
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema

CATALOG = read_schema("p: pushed (v:integer)")


def grid_of(header, window):
    plan = bind_text(f"SELECT v FROM p FOR ({header}) {{ WindowIs(p, {window}); }}", CATALOG)[0]
    return find_loop_grid(next(node for node in walk(plan.root) if isinstance(node, LoopWindow)).ends)


@pytest.mark.parametrize(
    ("header", "window", "slide", "fixed", "ends"),
    [
        ("t = ST; t < 9; t++", "ST, t", 1, True, (100, 100)),
        ("t = ST; t < 9; t += 5", "t - 4, t", 5, False, (96, 100)),
        ("t = 7; t > 0; t -= 3", "2 * t, 4 * t + ST", 6, False, (14, 128)),
        ("t = 1; t < 9; t = 2 + t", "-(t - 3) * 3, 50", 6, False, (6, 50)),
        ("t = 0; t < 9; t += 2", "4 * t, 6 * t + 1", 4, False, (0, 1)),
        ("t = 0; t < 9; t = t + 4 - 1", "5, t + t", 6, True, (5, 0)),
    ],
)
def test_grid_has_step_and_first_window(header, window, slide, fixed, ends):
    grid = grid_of(header, window)
    assert (grid.slide, grid.fixed, grid.ends(100)) == (slide, fixed, ends)


@pytest.mark.parametrize(
    ("header", "window"),
    [
        ("t = 0; t < 9; t++", "t / 2, t"), ("t = 1; t < 9; t = 2 * t", "t, t"),
        ("t = 1; t < 9; t++", "t * t, t * t"), ("t = 0; t < 9; t++", "1, 4"), ("t = 1; t < 9; t = t + ST", "t, t"),
        ("t = 8 / 2; t < 9; t++", "t, t"), ("; t == 0; t = -1", "1, 5"),
    ],
)  # fmt: skip
def test_other_loops_have_no_grid(header, window):
    assert grid_of(header, window) is None
