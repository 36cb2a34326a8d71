"""Queries over shared windows: each gives the updates that it gives alone."""

import pytest

from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from gateway.diagnostics import DiagnosticError
from tests.conftest import count_of
from tests.execution.test_sharing import NEVER, Asked, Case, SeveralMaker, recorded


class AtOnceMaker(SeveralMaker):
    """Queries of one FROM, with other conditions, lists and HAVING."""

    def several(self):
        self.taken = set()
        streams = [self.stream(0) for _ in range(self.pick(1, 1, 2))]
        refs = [ref for _, of in streams for ref in of]
        source = ", ".join(f"{text} {self.window()}" for text, _ in streams)
        equal = [f"{a.text} = {b.text}" for _, first in streams[:1] for _, last in streams[1:]
                 for a, b in [self.rng.choice([(a, b) for a in first for b in last if a.type == b.type])]]  # fmt: skip
        for _ in range(24):
            terms = [*equal, *(self.term(refs) for _ in range(self.pick(0, 1, 1, 2)))]
            where = f" WHERE {' AND '.join(terms)}" if terms else ""
            if self.chance(0.5):
                yield f"SELECT {self.items(refs)[0]} FROM {source}{where}"
                continue
            group = self.rng.choice(refs[:2]).text if self.chance(0.7) else None
            items = [
                *([f"{group} AS g"] if group else []),
                *(self.aggregate(refs, len(streams) == 1)[0] for _ in range(2)),
            ]
            named = ", ".join(f"{item} AS k{at}" if at or not group else item for at, item in enumerate(items))
            having = f" HAVING COUNT(*) > {self.rng.randint(0, 3)}" if self.chance(0.5) else ""
            yield f"SELECT {named} FROM {source}{where}" + (f" GROUP BY {group}{having}" if group else "")

    def term(self, refs):
        numbers = [ref.text for ref in refs if ref.type != "string"]
        if numbers and self.chance(0.6):
            return f"{self.rng.choice(numbers)} {self.pick('<', '>', '>=', '=')} {self.rng.randint(-2, 4)}"
        return self.predicate(refs)


def generated(seed):
    make = AtOnceMaker(seed)
    catalog = read_schema(make.schema())
    recording = read_recording(catalog, make.inputs())
    corrections = {clock: bind_text(text, catalog) for text, clock in make.statements()}
    queries = []
    for text in make.several():
        try:
            bind_text(text, catalog)
        except DiagnosticError:
            continue
        queries.append(Asked(text, make.pick(0, 0, 0, 5), make.pick(NEVER, NEVER, make.end // 2)))
    return Case(recording, [each for each in queries if each.comes < each.goes], corrections)


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("shard", range(count_of(3, 30)))
def test_query_of_shared_windows_gives_updates_of_query_alone(shard, rng):
    seed = rng.randrange(2**32)
    what = generated(seed).difference(tidy_every=rng.choice((1, 5, NEVER)))
    assert what is None, f"case {seed}: {what}"


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("outputs", ["v", "COUNT(*), SUM(v)"])
def test_query_left_alone_sees_no_tuple_of_stopped_one(outputs):
    """With one condition left, the shared store holds its tuples only, and they are not looked up among conditions."""
    window = "[FROM NOW-9 TO NOW SLIDE 5 SEC]"
    queries = [
        Asked(f"SELECT {outputs} FROM road {window} WHERE v > 4"),
        Asked(f"SELECT {outputs} FROM road {window} WHERE v < 3", 0, 22),
    ]
    found = Case(recorded(61), queries).difference(tidy_every=NEVER, judged=[0])
    assert found is None, found


@pytest.mark.promise("queries-apart")
def test_queries_of_other_sites_have_their_own_coverage():
    catalog = read_schema("road: sensed (site:integer, v:integer) every 1 sec at sites 1, 2, 3 wait 1 sec")
    rows = [{"_tick": at, "_site": site, "v": at % 5} for at in range(30) for site in (1, 2, 3) if site > 1 or at % 3]
    queries = [
        Asked(f"SELECT v FROM road [FROM NOW-9 TO NOW SLIDE 5 SEC] WHERE v > 1 AND site {sites}")
        for sites in ("= 1", "<> 1", "> 0", "= 3")
    ]
    found = Case(read_recording(catalog, {"road": rows}), queries).difference(tidy_every=NEVER)
    assert found is None, found


AGGREGATE = "SELECT {0}COUNT(*) AS n, SUM(v) AS s FROM road [FROM NOW-{1} TO NOW SLIDE 5 SEC] WHERE v {2} {3}"


@pytest.mark.promise("queries-apart")
def test_queries_with_own_where_have_their_own_having():
    havings = {
        "": lambda n, s: True,
        " HAVING COUNT(*) > 1": lambda n, s: n > 1,
        " HAVING SUM(v) > 3": lambda n, s: s > 3,
    }
    queries = [
        Asked(AGGREGATE.format("v, ", 9, where, f"GROUP BY v{having}"))
        for where in ("> 1", "< 5")
        for having in havings
    ]
    answers, _ = Case(recorded(61), queries).run(range(6), NEVER)
    for at, holds in enumerate(havings.values()):
        for first in (0, 3):
            shown, every = ([rows for *_, rows, _ in answers[which]] for which in (first + at, first))
            expected = [{row: k for row, k in rows.items() if holds(row[1][1], row[2][1])} for rows in every]
            assert shown == expected and any(expected)


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize(("item", "group"), [("v, ", "GROUP BY v"), ("", "")])
def test_new_query_sees_no_state_of_stopped_one_with_other_where(item, group):
    """It comes when the number of the stopped condition is free again."""
    queries = [
        Asked(AGGREGATE.format(item, 29, "> 3", group)),
        Asked(AGGREGATE.format(item, 29, "<> 2", group), 0, 25),
        Asked(AGGREGATE.format(item, 29, "< 3", group), 28),
    ]
    found = Case(recorded(61, horizon="60 sec"), queries).difference(tidy_every=1)
    assert found is None, found
