"""The ceiling: for each task the fastest correct program written by hand, one file each in numpy.

Where there are files in Polars and DuckDB as well, the fastest of them is the ceiling of a case.

Obligations of every file, the same as the engine's: each batch moves the watermark to the arrival of its last tuple, and
due answers are handed out before the next batch. Integers are int64, floats float64, texts str. Sums of doubles are
exact and rounded once. Tuples of streams have tick and index, windows their tick. State that no later window reaches is
freed. A file may assume its query, rising ticks (not in W8), and no tuple on the edge of a window. It may not assume the
number of sites or the times of their reports. Some files are faster where the data have a usual form; they check, and
are right elsewhere.

A class `Ceiling` is made with (case, streams). `prepare` gives a batch the form in which it is processed, untimed, and
`step` answers it. A faster program replaces the present one.
"""

from importlib import import_module

FILES = {
    "W1": "w1_filter", "W2": "w2_per_site", "W3": "w3_last_eleven", "W4": "w4_changed_class", "W5": "w5_rows",
    "W6": "w6_standing", "W7": "w7_three_windows", "W8": "w8_late_and_revised",
    "W1s": "w1_sensed", "W2s": "w2_sensed", "W3s": "w3_sensed",
}  # fmt: skip


OTHERS = {"W1": "w1_others", "W2": "w2_others", "W3": "w3_others", "W3s": "w3_others"}
"""The same in Polars and in DuckDB, W3 in DuckDB only."""


def by_hand(task):
    """Names of what was written by hand for a task; the fastest is the ceiling. None of them where we are measured alone."""
    names = ["numpy"] if task in FILES else []
    return names + (list(_others(task)) if task in OTHERS else [])


def _others(task):
    module = import_module(f"bench.ceiling.{OTHERS[task]}")
    return module.SENSED if task.endswith("s") else module.OTHERS


def system(name, task):
    """A class that answers a task."""
    if name == "numpy":
        return import_module(f"bench.ceiling.{FILES[task]}").Ceiling
    return _others(task)[name]
