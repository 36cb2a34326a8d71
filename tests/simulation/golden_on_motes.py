"""Golden queries in motes: each is asked of a simulated network, and must say what a replay says of what was heard.

The golden file has the readings that motes of a lossless network sent, filtered and folded, in a section
`motes` behind the plan:

    ---- motes
      r: 10 measured, 4 sent, 6 filtered

or, where a query cannot run there, why. `python -m tests.simulation.golden_on_motes --rewrite [FILE …]` writes it.
"""

import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from acquisition.sources.batch_conversion import batch_of, table_of
from acquisition.sources.csv import read_csv
from basestation.algebra.vector import Vector
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.testbed.event_testbed import EventTestbed
from basestation.testbed.vector_testbed import VectorTestbed
from innet.placement.placement import extents_of
from simulator.kernel import MS
from simulator.world_builder import build_world
from tests.golden.case_run import case_statements
from tests.golden.expectations import QUERIES
from tests.golden.golden_file import golden_files, read_golden
from tests.simulation import scenario_judge
from tests.simulation.golden_world import PAST, asking, world_of

LOOK_MS = 250
NOT_HERE = "not in motes: "
UNKNOWN = ("SN202",)
"""The errors of queries that read columns which a simulated world lacks: strings."""


def run(world, texts, moves, seed=1, agenda=False, **radio):
    """A EventTestbed in which the queries were asked from the beginning; what is pushed and stored comes at its ticks.

    Motes sleep by an `agenda`, and where they are to last.
    """
    agenda = agenda or any("LIFETIME" in text for text in texts)
    scenario = replace(asking(world, texts), look_ms=LOOK_MS, **radio)
    bed = EventTestbed(scenario, seed, pushdown=moves, agenda=agenda)
    look = scenario_judge.remembering(bed)  # a station may re-optimize a query within these minutes
    catalog, engine = bed.catalog, bed.station.engine
    pushed = {name: batch_of(read_csv(text.encode(), name), catalog.find(name)) for name, text in world.pushed.items()}
    for tick in range(world.seconds):
        versions = [version for version in world.versions if version[0] == tick]
        if versions:  # motes are simulated up to the time of a load: the station's clock moves there
            bed.run_until(1_000 * tick, look)
        for _, name, text in versions:
            columns, valid = table_of(read_csv(text.encode(), name), catalog.find(name))
            bed.station.load(name, {n: Vector(v, valid.get(n)) for n, v in columns.items()}, 1_000 * tick)
        bed.run_until(1_000 * tick + LOOK_MS, look)
        for name, batch in pushed.items():
            now = batch.take(batch.arrival == tick)
            bed.archive.append(catalog.find(name), now)
            engine.deliver(name, now)
    bed.run_until(1_000 * world.seconds, look)
    return bed


def swept(world, texts, moves, seed=1, **radio):
    """The same, swept; nothing is pushed, and tables are empty."""
    bed = VectorTestbed(replace(asking(world, texts), **radio), seed, pushdown=moves)
    bed.run_until(1_000 * world.seconds)
    return bed


def one_by_one(bed, seed):
    """The trace of an event-by-event simulation with the configurations of a vector testbed."""
    built = build_world(bed.scenario, seed)
    for number, standing in bed.configs.items():
        built.motes[number].install(standing)
    built.kernel.run_until((bed.scenario.begin_ms + bed.elapsed_ms) * MS - 1)
    return built.trace


def judge(world, bed):
    """How many windows and ticks were answered, all of them as a replay does."""
    others = {name: read_csv(text.encode(), name) for name, text in world.pushed.items()}
    for tick, name, text in world.versions:
        others.setdefault(name, []).append((tick, read_csv(text.encode(), name)))
    return sum(scenario_judge.judge(bed, name, others) for name in bed.numbers)


# --- what has moved --------------------------------------------------------------------------------------------------


def moved(bed):
    """{extent: {what became of its readings: how many}}, as the motes did it, when all had what they should have."""
    samplings = bed.station.world.scheduled.samplings
    found = {}
    for extent in sorted({sampling.extent for sampling in samplings.values()}):
        own = [e for e in bed.trace.of("produced") if samplings[e["sampling"]].extent == extent and e["tick"] >= PAST]
        in_groups, in_none = (_folded(bed, extent, bare) for bare in (False, True))
        found[extent] = {
            "measured": len(own),
            "sent": sum(e["sent"] for e in own),
            "filtered": len({(e.mote, e["tick"]) for e in own if e["filtered"]} | in_none - in_groups),
            "folded": len(in_groups),
        }
    return found


def _folded(bed, extent, bare):
    """(site, tick) of the readings of an extent that came in partials; `bare` ones have those that a fold has filtered."""
    tables = {number for number, fold in bed.station.world.folds.items() if extent in extents_of(fold.operator)}
    own = [e["readings"].split(",") for e in bed.trace.of("merged") if e["table"] in tables and e["bare"] == bare]
    found = {tuple(map(int, reading.split(":"))) for readings in own for reading in readings if reading}
    return {(site, tick) for site, tick in found if tick >= PAST}


def unheard(bed):
    """Readings that motes sent by a second ago, after they were configured, and that did not arrive."""
    samplings, ended = bed.station.world.scheduled.samplings, bed.elapsed_ms // 1_000 - 1
    sent = {(samplings[e["sampling"]].extent, (e.mote, e["tick"])) for e in bed.trace.of("produced") if e["sent"]}
    here = {extent: scenario_judge.delivered(bed, extent).keys() for extent in {extent for extent, _ in sent}}
    return sorted((extent, key) for extent, key in sent if PAST <= key[1] < ended and key not in here[extent])


def less_moved(stated, found):
    """A reading that was to be pushed down and was not, in words, or None."""
    for extent, counts in stated.items():
        now = found.get(extent, {})
        for what, count in counts.items():
            number = now.get(what, 0)
            if number > count if what in ("measured", "sent") else number < count:
                return f"{extent}: {number} readings {what}, and {count} are stated"
    return None


def as_text(found):
    return "\n".join(
        f"{extent}: " + ", ".join(f"{count} {what}" for what, count in counts.items() if count or what == "sent")
        for extent, counts in found.items()
    )


def stated(text):
    """The counts of the section, by extent; missing ones are 0."""
    counts = dict(re.findall(r"^(\w+): (.*)$", text, re.MULTILINE))
    every = dict.fromkeys(("measured", "sent", "filtered", "folded"), 0)
    return {
        extent: every | {what: int(count) for count, what in re.findall(r"(\d+) (\w+)", said)}
        for extent, said in counts.items()
    }


def texts_of(golden, case):
    """The texts of a case's statements."""
    return [text for text, _ in case_statements(golden, case).statements]


def section_of(golden, case, world):
    """The section `motes` of a query."""
    bed = run(world, texts_of(golden, case), PushdownPolicy.EVERYTHING)
    for refused in bed.refused.values():
        said = refused.diagnostics[0]
        if said.code in UNKNOWN:
            return NOT_HERE + "it reads a string of a sensed extent"
        return f"{NOT_HERE}{said.code} {said.message}"
    if not any(query.all_deliveries or query.all_partial_sources for query in bed.station.world.queries.values()):
        return NOT_HERE + "it reads nothing that is measured"
    judge(world, bed)
    return as_text(moved(bed))


def rewrite(path):
    """Write the sections of a file."""
    golden = read_golden(path)
    with tempfile.TemporaryDirectory() as folder:
        world = world_of(golden, folder)
        for case in golden.cases:
            if case.word == "query":
                answer = case.expected.pop("answer")
                case.expected |= {"motes": section_of(golden, case, world)}
                case.expected["answer"] = answer
    Path(path).write_text(golden.render(), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] != ["--rewrite"]:
        sys.exit("usage: python -m tests.simulation.golden_on_motes --rewrite [FILE …]")
    for each in sys.argv[2:] or golden_files(QUERIES):
        rewrite(each)
