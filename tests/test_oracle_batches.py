"""The oracle against other ways to the same answer, on generated cases: SQLite, the corrected input, fewer steps."""

from collections import Counter

import pytest
from hypothesis import assume, given

from tests.agreement.compare import TooSlow, seconds_of_processor
from tests.oracles.deliveries import Log, last_moment
from tests.oracles.errors import NotCoveredError, RejectedError
from tests.oracles.generate import case, cases, measure
from tests.oracles.in_sqlite import NotInSqliteError, disagreements
from tests.oracles.recompute import make_world, read_query, run
from tests.oracles.schema import read_schema


def answered(made, **options):
    try:
        return run(made.schema, made.inputs, made.queries, **options)
    except (RejectedError, NotCoveredError) as e:
        return e


@pytest.mark.promise("oracle")
@pytest.mark.timeout(900)  # a case in thousands has products that take the oracle a minute
def test_generated_cases_have_the_promised_shares(counts, rng, tally):
    """Of a few answered ones fewer may have rows by chance: two of three have, and 0.15 are four standard errors of 150."""
    seed, many, answered = rng.randrange(2**32), counts(1500, 4000), counts(150, 4000)
    found = measure([f"{seed}.{number}" for number in range(many)], answered)
    of_answers = {trait: found.pop(trait) for trait in ("non-empty", "refused")}
    tally("the generator's cases", {trait: round(share * many) for trait, share in found.items()}, of=many)
    tally("answers to them", {trait: round(share * answered) for trait, share in of_answers.items()}, of=answered)
    assert found["join"] >= 0.3 and found["late or revised"] >= 0.3 and found["nested"] >= 0.2, found
    assert of_answers["non-empty"] >= counts(0.51, 0.6) and of_answers["refused"] < 0.02, of_answers


def test_sqlite_agrees_on_single_windows(counts, rng):
    compared = Counter()
    for _ in range(counts(150, 3000)):
        made = case(rng.randrange(2**32))
        try:
            with seconds_of_processor(counts(4, 60)):
                windows, bad = disagreements(made.schema, made.inputs, made.query)
        except NotInSqliteError:
            continue
        except TooSlow:  # the oracle forms every combination of a product
            compared["too slow"] += 1
            continue
        assert not bad, (made.seed, made.query, bad[0])
        compared.update(cases=1, windows=windows)
    assert compared["cases"] > counts(25, 500) and compared["too slow"] <= counts(3, 15), compared


# Queries outside the promise of 12.1: those over indexes, rows, the order of arrivals, or answers as of an instant.
ORDERED = ("ROW", "index", "history", "FIRST", "LAST", "FOR ", "append", "drop", "revise by 4 sec")


def test_12_1_sum_of_updates_is_the_corrected_answer(counts, rng):
    compared = Counter()
    for _ in range(counts(400, 4000)):
        made = case(rng.randrange(2**32))
        if any(word in made.query + made.schema for word in ORDERED):
            continue
        try:
            with seconds_of_processor(counts(4, 60)):
                result = answered(made)
                if isinstance(result, Exception):
                    continue
                again = run(made.schema, corrected(made), [made.query], until=result.until).answers[0]
        except TooSlow:
            compared["too slow"] += 1
            continue
        assert bags(result.answers[0]) == bags(again), (made.seed, made.query)
        assert result.answers[0].current_coverage() == again.current_coverage(), (made.seed, made.query)
        compared["cases"] += 1
    assert compared["cases"] > counts(20, 200) and compared["too slow"] <= counts(4, 20), compared


def corrected(made):
    """The input with every tuple on time and correct."""
    extents = read_schema(made.schema)
    asked = [(statement, clock) for text, clock in made.statements for statement in read_query(text)]
    until = last_moment(extents, made.inputs, [clock for _, clock in asked])
    world = make_world(extents, made.inputs, asked, until)
    rows = {name: log_rows(log, until) for name, log in world.logs.items()}
    return {**made.inputs, **rows}


def log_rows(log: Log, until):
    names = [a.name for a in log.extent.attributes]
    found = []
    for reading in log.readings:
        values = reading.values(until)
        if values is not None:
            row = dict(zip(names, values, strict=True))
            found.append({"_tick": reading.tick, "_site": reading.site, "_arrival": max(0, reading.tick), **row})
    return found


def bags(answer):
    if answer.kind == "stream":
        return Counter((tick, row) for tick, _, row in answer.current())
    return {key: Counter(rows) for key, rows in answer.current().items()}


def test_skipping_idle_clock_ticks_changes_no_answer(counts, rng):
    compared = Counter()
    for _ in range(counts(60, 600)):
        made = case(rng.randrange(2**32))
        if "loop" in made.traits:
            continue
        try:
            with seconds_of_processor(counts(4, 60)):
                one, two = answered(made), answered(made, every_tick=False)
        except TooSlow:
            compared["too slow"] += 1
            continue
        if not isinstance(one, Exception):
            assert one.answers[0].updates == two.answers[0].updates, (made.seed, made.query)
            compared["cases"] += 1
    assert compared["cases"] > counts(20, 200) and compared["too slow"] <= counts(3, 15), compared


def test_delivery_order_within_a_tick_changes_no_answer(counts, rng):
    """The readings of one clock tick enter in the declared order of sites, in whatever order they arrive."""
    compared = Counter()
    for _ in range(counts(60, 600)):
        made = case(rng.randrange(2**32))
        rows = made.inputs["road"]
        keys = Counter((row["_site"], row["_tick"]) for row in rows)
        if max(keys.values(), default=0) > 1:
            continue
        shuffled = {**made.inputs, "road": rng.sample(rows, len(rows))}
        try:
            with seconds_of_processor(counts(4, 60)):
                one = answered(made)
                if isinstance(one, Exception):
                    continue
                two = run(made.schema, shuffled, made.queries)
        except TooSlow:
            compared["too slow"] += 1
            continue
        assert one.answers[0].updates == two.answers[0].updates, (made.seed, made.query)
        assert one.ledger == two.ledger
        compared["cases"] += 1
    assert compared["cases"] > counts(12, 150) and compared["too slow"] <= counts(3, 15), compared


@given(cases())
def test_updates_are_consistent(made):
    """Revisions count up by one, only existing rows are taken back, no index is used twice, every delivery is counted."""
    try:
        with seconds_of_processor(4):
            result = answered(made)
    except TooSlow:
        assume(False)
    if isinstance(result, Exception):
        return
    answer = result.answers[0]
    revisions, rows = {}, {}
    for u in answer.windows:
        assert u.revision == revisions.get(u.key, -1) + 1
        revisions[u.key] = u.revision
        there = rows.setdefault(u.key, Counter())
        there.subtract(u.removed)
        assert not [row for row, n in there.items() if n < 0]
        there.update(u.added)
    there, given_out = set(), set()
    for u in answer.tuples:
        who = (u.tick, u.index, u.row)
        if u.weight == -1:
            there.remove(who)
        else:
            there.add(who)
    for u in answer.tuples:
        given_out.add((u.index, u.tick))
    assert len({index for index, _ in given_out}) == len(given_out)
    assert [u.clock for u in answer.updates] == sorted(u.clock for u in answer.updates)
    for ledger in result.ledger.values():
        parts = {name: n for name, n in ledger.items() if name not in ("received", "late", "out of range")}
        corrected_by_rows = sum(parts.pop(name, 0) for name in ("revised", "revised in history", "unchanged"))
        assert sum(parts.values()) <= ledger.get("received", 0) <= sum(parts.values()) + corrected_by_rows
