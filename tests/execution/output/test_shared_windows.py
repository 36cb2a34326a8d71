"""Queries over shared windows: each gives the updates that it gives alone."""

import pytest

from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from gateway.diagnostics import DiagnosticError
from tests.conftest import count_of
from tests.execution.test_sharing import NEVER, Asked, Case, SeveralMaker


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
