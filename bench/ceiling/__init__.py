"""The ceiling: for each task the fastest correct program that anybody has written by hand, one file each in numpy.

Where files in Polars and DuckDB stand beside it, the fastest of them is the ceiling of a case.

What every file owes, as our engine does: each batch moves the watermark to the arrival of its last tuple, and what is
due then is handed out before the next batch is taken; integers are int64, floats float64, texts str; sums of doubles
are exact and rounded once; tuples of streams have their tick and index, windows their tick; state that no later window
reaches is let go of. What a file may use: the query, which it was written for, that ticks rise from tuple to tuple
(not in W8), and that no tuple lies on the edge of a window. It knows nothing else of the data: not how many sites there
are, nor when they report. Some files are faster where the data have a usual form; they look, and are right elsewhere.

A class `Ceiling` is made with (case, streams), `prepare` gives a batch the form in which it is taken, untimed, and
`step` answers it. A faster one that is handed in replaces what is here.
"""

from importlib import import_module

FILES = {
    "W1": "w1_filter", "W2": "w2_per_site", "W3": "w3_last_eleven", "W4": "w4_changed_class", "W5": "w5_rows",
    "W6": "w6_standing", "W7": "w7_three_windows", "W8": "w8_late_and_revised",
}  # fmt: skip


OTHERS = {"W1": "w1_others", "W2": "w2_others"}
"""The same in Polars and in DuckDB."""


def by_hand(task):
    """Names of what was written by hand for a task; the fastest is the ceiling. None of them where we are measured alone."""
    names = ["numpy"] if task in FILES else []
    return names + (list(import_module(f"bench.ceiling.{OTHERS[task]}").OTHERS) if task in OTHERS else [])


def system(name, task):
    """A class that answers a task."""
    if name == "numpy":
        return import_module(f"bench.ceiling.{FILES[task]}").Ceiling
    return import_module(f"bench.ceiling.{OTHERS[task]}").OTHERS[name]
