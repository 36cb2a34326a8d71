"""The oracle against the figures word for word: "otherwise a transcription of the figures and the rules of part I agree" (8)."""

import operator

import pytest

from tests.oracles import figures
from tests.oracles.shortcuts import ask

SITES = [3, 1]
SCHEMA = """
r: sensed (site:integer, v:integer) every 2 sec at sites 3, 1
p: pushed (site:integer, v:integer)
t: stored (site:integer, v:integer)
"""


class TooMuch(Exception):
    """A product of products; another seed will do."""


class Pair:
    """A random query as text and, evaluated by the figures, as a list."""

    def __init__(self, rng):
        self.rng = rng
        self.end = rng.randint(3, 9)
        self.names = 0
        readings = {(t, s): rng.randint(0, 3) for t in range(0, self.end + 1, 2) for s in SITES}
        self.sensed = figures.acquire(lambda tick, site: (site, readings[tick, site]), 2, SITES, 0, 1, self.end)
        ticks = sorted(rng.randint(0, self.end) for _ in range(rng.randint(0, 9)))
        self.pushed = [
            figures.TaggedTuple(t, i + 1, (rng.randint(1, 3), rng.randint(0, 3))) for i, t in enumerate(ticks)
        ]
        self.table = [[(1, 1), (2, 3)], [(3, 0)], []][rng.randint(0, 2)]
        self.inputs = {
            "r": [{"_tick": x.tick, "site": x.tuple[0], "v": x.tuple[1]} for x in self.sensed],
            "p": [{"_arrival": x.tick, "site": x.tuple[0], "v": x.tuple[1]} for x in self.pushed],
            "t": [(0, [{"site": s, "v": v} for s, v in self.table])],
        }

    def condition(self, columns):
        """A comparison of the numbered columns with a constant, or of two of them: (text, function)."""
        sign, compare = self.rng.choice([("<", operator.lt), (">=", operator.ge), ("=", operator.eq)])
        a, b = self.rng.randrange(len(columns)), self.rng.randrange(len(columns))
        if self.rng.random() < 0.5:
            k = self.rng.randint(0, 3)
            return f"{columns[a]} {sign} {k}", lambda row: compare(row[a], k)
        return f"{columns[a]} {sign} {columns[b]}", lambda row: compare(row[a], row[b])

    def stream(self, depth):
        """(text for FROM, columns, tuples, without gaps)."""
        self.names += 1
        x = f"x{self.names}"
        columns = [f"{x}.site", f"{x}.v"]
        kind = self.rng.random()
        if depth == 0 or kind < 0.5:
            name = self.rng.choice("rp")
            return f"{name} AS {x}", columns, self.sensed if name == "r" else self.pushed, True
        if kind < 0.7:
            inner, names, tuples, _ = self.stream(depth - 1)
            text, keeps = self.condition(names)
            tuples = figures.stream_project(lambda row: (row[1], row[0]), figures.stream_select(keeps, tuples))
            return (
                f"(SELECT {names[1]} AS site, {names[0]} AS v FROM {inner} WHERE {text}) AS {x}",
                columns,
                tuples,
                False,
            )
        text, tuples = self.converter(depth - 1)
        return f"{text} AS {x}", columns, tuples, True

    def windows(self, depth):
        """(text of an entry of FROM, columns, windows)."""
        if self.rng.random() < 0.15:
            self.names += 1
            x, every = f"x{self.names}", self.rng.randint(1, 4)
            windows = figures.scan(lambda tick: self.table, every, 0, self.end)
            return f"t AS {x} [SCAN {every} SEC]", [f"{x}.site", f"{x}.v"], windows
        text, columns, tuples, dense = self.stream(depth)
        back, slide = self.rng.randint(1, 4), self.rng.randint(1, 3)
        to = self.rng.choice([0, 0, -1])
        scope, range_text = (-back, to), f"FROM NOW-{back} TO {'NOW' if to == 0 else 'NOW-1'}"
        if dense and self.rng.random() < 0.4:
            windows = figures.create_row_window(scope, slide, slide, tuples)
            return f"{text} [{range_text} SLIDE {slide} ROWS]", columns, windows
        windows = figures.create_time_window(scope, slide, 0, tuples, self.end)
        return f"{text} [{range_text} SLIDE {slide} SEC]", columns, windows

    def query(self, depth):
        """(text, windows) of a window query whose result has the columns site and v."""
        text, columns, windows = self.windows(depth)
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            more, names, others = self.windows(depth)
            text, columns, windows = f"{text}, {more}", columns + names, figures.cross_product(windows, others)
            if sum(1 + len(w.tuples) for w in windows) > 400:
                raise TooMuch
        condition, keeps = self.condition(columns)
        a, b = self.rng.randrange(len(columns)), self.rng.randrange(len(columns))
        windows = figures.window_project(lambda row: (row[a], row[b]), figures.window_select(keeps, windows))
        return f"SELECT {columns[a]} AS site, {columns[b]} AS v FROM {text} WHERE {condition}", windows

    def converter(self, depth):
        text, windows = self.query(depth)
        kind = self.rng.choice(["RSTREAM", "ISTREAM", "DSTREAM"])
        made = {
            "RSTREAM": lambda: figures.r_stream(1, windows),
            "ISTREAM": lambda: figures.i_stream(1, [], windows),
            "DSTREAM": lambda: figures.d_stream(1, [], windows),
        }[kind]()
        if len(made) > 100:
            raise TooMuch
        return f"{kind}({text})", made


@pytest.mark.promise("oracle")
def test_figures_agree_in_order_and_index(counts, rng):
    said = 0
    for _ in range(counts(150, 1_500)):
        pair, window_query = Pair(rng), rng.random() < 0.5
        try:
            text, expected = pair.query(2) if window_query else pair.converter(2)
        except TooMuch:
            continue
        if window_query:
            answer = ask(SCHEMA, pair.inputs, text, until=pair.end)
            found = [figures.Window(u.tick, list(u.added)) for u in answer.windows]
            assert all(u.revision == 0 for u in answer.windows), text
            said += any(w.tuples for w in found)
        else:
            answer = ask(SCHEMA, pair.inputs, text, until=pair.end)
            found = [figures.TaggedTuple(u.tick, u.index, u.row) for u in answer.tuples]
            said += bool(found)
        assert found == expected, text
    assert said > counts(30, 300)
