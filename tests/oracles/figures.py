"""The figures of the paper, word for word in Python, for finite recordings in which everything comes on time.

semantics 8 lists where the figures fail; only there this differs from them: lists end (8.1, 8.2), ticks of a product
count once and in order (8.7), an input without a window yet gives nothing (8.8). Row windows compare indexes, as figure 6
does, so they stand on streams without gaps only (8.4). Names are the figures' names.
"""

from collections import namedtuple
from itertools import dropwhile, takewhile

TaggedTuple = namedtuple("TaggedTuple", "tick index tuple")
Window = namedtuple("Window", "tick tuples")


# --- figure 1 and 2 --------------------------------------------------------------------------------------------------


def acquire(get_data, interval, sites, now, index, end):
    if now > end:
        return []
    tuples = acquire_tuples(get_data, now, index, sites)
    return tuples + acquire(get_data, interval, sites, now + interval, index + len(sites), end)


def acquire_tuples(get_data, tick, index, sites):
    if not sites:
        return []
    site, *rest = sites
    return [TaggedTuple(tick, index, get_data(tick, site)), *acquire_tuples(get_data, tick, index + 1, rest)]


def stream_select(predicate, stream):
    return list(filter(lambda x: predicate(x.tuple), stream))


def stream_project(project, stream):
    return [TaggedTuple(x.tick, x.index, project(x.tuple)) for x in stream]  # figure 3


# --- figures 4 to 6 --------------------------------------------------------------------------------------------------


def scan(scan_table, interval, now, end):
    return [] if now > end else [Window(now, scan_table(now)), *scan(scan_table, interval, now + interval, end)]


def create_time_window(scope, slide, now, stream, end):
    """Omitted in the paper: "differs from RowWindow only in that the membership test is applied to timestamps"."""
    if now > end:
        return []
    begin, to = scope
    window = [x.tuple for x in stream if now + begin <= x.tick <= now + to]
    return [Window(now, window), *create_time_window(scope, slide, now + slide, stream, end)]


def create_row_window(scope, slide, index, stream):
    tuples = list(takewhile(lambda x: x.index <= index, stream))
    if not tuples or tuples[-1].index < index:
        return []  # 8.1, 8.3: the figure repeats its last window for ever, or fails
    now = tuples[-1].tick
    return [
        Window(now, get_window_tuples(scope, index, stream)),
        *create_row_window(scope, slide, index + slide, stream),
    ]


def get_window_tuples(scope, current, stream):
    begin, to = scope
    passed_from = dropwhile(lambda x: x.index < current + begin, stream)
    return [x.tuple for x in passed_from if x.index <= current + to]


def window_select(predicate, windows):
    return [Window(w.tick, list(filter(predicate, w.tuples))) for w in windows]


def window_project(project, windows):
    return [Window(w.tick, list(map(project, w.tuples))) for w in windows]


# --- figure 7 --------------------------------------------------------------------------------------------------------


def cross_product(left, right):
    ticks = sorted({w.tick for w in left} | {w.tick for w in right})  # 8.7
    out = []
    for tick in ticks:
        left_tick, right_tick = find_last_tick(tick, left), find_last_tick(tick, right)
        left_windows, right_windows = (
            [w for w in ws if w.tick == t] for ws, t in ((left, left_tick), (right, right_tick))
        )
        out += [window_cross_product(a, b) for a in left_windows for b in right_windows]
    return out


def find_last_tick(tick, windows):
    return max((w.tick for w in windows if w.tick <= tick), default=None)  # 8.8


def window_cross_product(left, right):
    return Window(max(left.tick, right.tick), [a + b for a in left.tuples for b in right.tuples])


# --- figure 8 --------------------------------------------------------------------------------------------------------


def r_stream(index, windows):
    out = []
    for window in windows:
        out += append(window.tuples, window.tick, index + len(out))
    return out


def i_stream(index, previous, windows):
    out = []
    for window in windows:
        out += append(minus(window.tuples, previous), window.tick, index + len(out))
        previous = window.tuples
    return out


def d_stream(index, previous, windows):
    out = []
    for window in windows:
        out += append(minus(previous, window.tuples), window.tick, index + len(out))
        previous = window.tuples
    return out


def append(tuples, tick, index):
    return [TaggedTuple(tick, index + i, t) for i, t in enumerate(tuples)]


def minus(left, right):
    """`\\\\` removes one occurrence per occurrence."""
    left = list(left)
    for t in right:
        if t in left:
            left.remove(t)
    return left
