"""SharedFilterOutput gives each query the updates that it gets without the predicate index."""

import pytest

from basestation.execution.engine import Engine
from basestation.execution.graph import OUTPUT
from basestation.execution.output.shared_filter import SharedFilterOutput
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from basestation.updates.update import split_singly
from tests.conftest import count_of
from tests.execution.test_sharing import is_empty, plainly

ATTRIBUTES = "site:integer, n:integer, f:float, d:float {scale 1}, s:string"
EXTENTS = ("hits: pushed ({})", "road: sensed ({}) every 2 sec at sites 1 .. 3")
LATE = ("late revise by 9 sec", "late revise by 20 sec", "late drop", "late append")
ITEMS = ("n", "d, s", "n + 1 AS m, f", "*", "tick AS k, site")
VALUES = {
    "site": lambda rng: rng.randint(1, 3), "n": lambda rng: rng.randint(-2, 4), "d": lambda rng: rng.randint(-5, 5) / 10,
    "f": lambda rng: rng.choice([-1.5, 0.0, 0.5, 3.25]), "s": lambda rng: rng.choice(["", "a", "ab", "b"]),
}  # fmt: skip
END = 30


class Case:
    """Queries over one extent that are added and removed, and the deliveries and corrections meanwhile."""

    def __init__(self, rng, extent):
        self.rng, self.name = rng, extent.split(":")[0]
        wait = rng.choice(["", " wait 3 sec"])
        self.catalog = read_schema(f"{extent.format(ATTRIBUTES)}{wait} {rng.choice(LATE)}")
        rows = [self.row(tick) for tick in sorted(rng.choices(range(0, END, 2), k=rng.choice([10, 60])))]
        self.batches = read_recording(self.catalog, {self.name: sorted(rows, key=lambda row: row["_arrival"])}).batches
        self.corrections = {rng.randint(5, END): self.correction() for _ in range(rng.randint(0, 6))}
        self.columns = rng.sample([*VALUES, "tick"], rng.choice([1, 6]))
        self.queries = [self.query() for _ in range(rng.choice([2, 8, 8, 100]))]
        self.queries += rng.choices(self.queries, k=3)  # equal ones
        self.moments = [sorted(rng.sample([0, 0, *range(END + 2)], 2)) for _ in self.queries]
        self.moments = [(comes, goes) for comes, goes in self.moments if comes < goes]

    def row(self, tick):
        values = {name: value(self.rng) for name, value in VALUES.items()}
        if self.rng.random() < 0.2:
            values[self.rng.choice("nfds")] = None
        late = self.rng.choice([0, 0, 0, 1, 4, 12])
        return {"_tick": tick, "_site": values["site"], "_arrival": min(tick + late, END)} | values

    def correction(self):
        name, rng = self.name, self.rng
        column = rng.choice("nd")
        where = f"{column} {rng.choice(['<', '>', '='])} {VALUES[column](rng)}"
        if rng.random() < 0.3:
            return f"DELETE FROM {name} WHERE {where}"
        return f"REVISE {name} SET n = {rng.choice(['n + 1', '0', 'n'])}, f = {rng.choice(['f', '0.5'])} WHERE {where}"

    def query(self):
        """[text whose ranges are indexed, equal text whose predicate is no range]."""
        rng = self.rng
        factors = [self.factor() for _ in range(rng.randint(1, 3))]
        rest = [f"n <> {rng.randint(0, 2)}"] if rng.random() < 0.3 else []
        lasting = f" FOR {rng.randint(3, 12)} SEC" if rng.random() < 0.2 else ""
        head = f"SELECT {rng.choice(ITEMS)} FROM {self.name} WHERE "
        return [
            head + " AND ".join([*(form.format(column) for column, form in factors), *rest]) + lasting
            for factors in (factors, [(f"COALESCE({column}, {column})", form) for column, form in factors])
        ]

    def factor(self):
        column = self.rng.choice(self.columns)
        of = VALUES.get(column, lambda rng: rng.randint(0, END))
        low, high = (f"'{v}'" if isinstance(v, str) else v for v in sorted((of(self.rng), of(self.rng))))
        forms = (f"{{}} = {low}", f"{{}} > {low}", f"{low} <= {{}}", f"{{}} < {high}", f"{{}} BETWEEN {low} AND {high}")
        return column, self.rng.choice(forms)

    def said(self, way, cut, saving=()):
        """The updates of each query, with deliveries in the clock ticks of `cut`."""
        engine = Engine(self.catalog, tidy_every=3)
        said = {at: [] for at in range(len(self.moments))}
        begin = -1
        changes = {moment - 1 for both in self.moments for moment in both if moment}
        for clock in sorted({*cut, *changes, *self.corrections, END + 1}):
            for at, (comes, goes) in enumerate(self.moments):
                if begin + 1 == goes:
                    engine.remove(at)
                if begin + 1 == comes:
                    engine.add(at, bind_text(self.queries[at][way], self.catalog)[0])
            outputs = [op for op in engine._graph._operators.values() if op.kind == OUTPUT]
            assert all(isinstance(op, SharedFilterOutput) == (way == 0) for op in outputs)
            for name, batch_ in self.batches.items():
                engine.deliver(name, batch_.take((batch_.arrival > begin) & (batch_.arrival <= clock)))
            for text in [self.corrections[clock]] if clock in self.corrections else ():
                engine.correct(bind_text(text, self.catalog)[0])
            for update in split_singly(engine.on_clock(clock)):
                said[update.query] += [(clock, *each) for each in plainly(update)]
            begin = clock
            if clock in saving:
                engine = restore_engine(save_engine(engine))
        for number in list(engine._queries):
            engine.remove(number)
        assert is_empty(engine)
        return said


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("shard", range(count_of(3, 10)))
def test_shared_filter_gives_each_query_its_own_updates(shard, extent, rng):
    for _ in range(count_of(4, 24)):
        case = Case(rng, extent)
        cut = range(END + 1) if rng.random() < 0.5 else rng.sample(range(END + 1), 4)
        assert case.said(0, cut, saving=cut if rng.random() < 0.1 else ()) == case.said(1, cut), case.queries


@pytest.mark.parametrize("asked", ["n > 0", "COALESCE(n, n) > 0"])
def test_match_made_by_correction_enters_after_wait(asked):
    catalog = read_schema("hits: pushed (n:integer) wait 3 sec late revise by 20 sec")
    engine, said = Engine(catalog), []
    engine.add(1, bind_text(f"SELECT n FROM hits WHERE {asked}", catalog)[0])
    engine.deliver("hits", read_recording(catalog, {"hits": [{"_tick": 0, "_arrival": 0, "n": 0}]}).batches["hits"])
    for clock in range(12):
        if clock in (5, 6):
            engine.correct(bind_text("REVISE hits SET n = n + 1 WHERE tick = 0", catalog)[0])
        said += [(clock, *each) for update in split_singly(engine.on_clock(clock)) for each in plainly(update)]
    assert said == [(5 + 3, 0, 1, 1, (("int", 2),))]


@pytest.mark.parametrize("asked", ["n > 0", "COALESCE(n, n) > 0"])
def test_correction_after_end_gives_no_match(asked):
    catalog = read_schema("hits: pushed (n:integer) late revise by 20 sec")
    engine, said = Engine(catalog), []
    engine.add(1, bind_text(f"SELECT n FROM hits WHERE {asked} FOR 3 SEC", catalog)[0])
    engine.deliver("hits", read_recording(catalog, {"hits": [{"_tick": 0, "_arrival": 0, "n": 1}]}).batches["hits"])
    given = {
        2: "REVISE hits SET n = 0 WHERE n = 1",
        5: "REVISE hits SET n = 2 WHERE n = 0",
        7: "DELETE FROM hits WHERE n = 2",
    }
    for clock in range(9):
        if clock in given:
            engine.correct(bind_text(given[clock], catalog)[0])
        said += [(clock, *each) for update in split_singly(engine.on_clock(clock)) for each in plainly(update)]
    assert said == [(0, 0, 1, 1, (("int", 1),)), (2, 0, 1, -1, (("int", 1),))]
