"""Updates of several queries are printed in the order of ticks."""

from basestation.replay.driver import Replay
from basestation.replay.inputs import read_recording
from basestation.replay.result import Result
from basestation.replay.statements import read_catalog, read_statements
from basestation.replay.tick_order import order_by_tick
from basestation.updates.update import split_singly

CATALOG = read_catalog("road: sensed (site:integer, temp:integer) every 1 min at sites 1\nhits: pushed (v:integer)\n")
INPUTS = {
    "road": [{"_tick": tick, "_site": 1, "temp": tick} for tick in range(0, 301, 60)],
    "hits": [{"_arrival": tick, "v": tick} for tick in (10, 10, 70, 250)],
}
QUERIES = (
    "SELECT temp FROM road [NOW]; SELECT v FROM hits; SELECT COUNT(*) FROM hits [FROM NOW-100 TO NOW SLIDE 100 SEC]"
)


def emitted():
    statements = read_statements([QUERIES], CATALOG)
    replay = Replay(read_recording(CATALOG, INPUTS, statements), statements)
    return replay, list(replay.updates())


def test_updates_are_ordered_by_tick():
    _, [updates] = emitted()
    ordered = [(int(getattr(u.tick, "flat", [u.tick])[0]), u.query) for u in split_singly(order_by_tick(updates))]
    assert ordered == [(0, 1), (0, 3), (10, 2), (60, 1), (70, 2), (100, 3), (120, 1), (180, 1), (200, 3), (240, 1),
                    (250, 2), (300, 1), (300, 3)]  # fmt: skip


def test_tick_order_keeps_answer():
    replay, all_of = emitted()
    plain, timed = Result(replay.queries), Result(replay.queries)
    for updates in all_of:
        plain.add(updates)
        timed.add(order_by_tick(updates))
    for query in (1, 2, 3):
        assert timed.history(query) == plain.history(query) != []


def test_single_query_keeps_order():
    _, [updates] = emitted()
    alone = [update for update in updates if update.query == 3]
    assert order_by_tick(alone) is alone
