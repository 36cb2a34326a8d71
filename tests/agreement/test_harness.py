"""The harness itself: what it calls different, how it shrinks, and that its reports say what the case said."""

import dataclasses

import pytest

from acquisition.sources.batch_conversion import batch_of, table_of
from acquisition.sources.csv import read_csv
from acquisition.sources.python_values import to_recorded_table
from basestation.planner.catalog import read_schema
from tests.agreement import compare, hunt
from tests.agreement.compare import Outcome
from tests.agreement.history import bag, difference, of_oracle
from tests.agreement.report import as_csv, golden
from tests.agreement.shrink import shrink
from tests.golden.golden_file import read_golden
from tests.oracles.generate import case
from tests.oracles.recompute import run
from tests.replay.test_sources import listed

SCHEMA = "road: sensed (site:integer, temp:integer) every 1 sec at sites 1, 2 wait 1 sec late revise by 1 min"
ROWS = [{"_tick": t, "_site": s, "temp": t * s} for t in range(3) for s in (1, 2)]
LATE = [*ROWS[:3], *ROWS[4:], {**ROWS[3], "_arrival": 9}]


def history(query, rows=LATE):
    return of_oracle(run(SCHEMA, {"road": rows}, [query]).answers[0])


@pytest.mark.parametrize(
    "query", ["SELECT temp FROM road [NOW]", "SELECT temp FROM road", "SELECT AVG(temp) FROM road [NOW]"]
)
def test_a_history_is_like_itself_and_unlike_every_change_of_it(query):
    one = history(query)
    assert difference(one, history(query)) is None
    for what in ("windows", "tuples", "marks"):
        for key, said in getattr(one, what).items():
            for i in range(len(said)):
                other = history(query)
                del getattr(other, what)[key][i]
                assert difference(one, other)
    assert difference(one, dataclasses.replace(one, sums=None))
    assert difference(one, dataclasses.replace(one, error="input"))


def test_the_first_difference_is_told():
    one, other = history("SELECT temp FROM road [NOW]"), history("SELECT temp FROM road [NOW]", ROWS)
    assert difference(one, other) == (
        "window (1, 1, None), update 1\n"
        "expected 2 0 {'road': (1, 2)} [] [(1,)]\n"
        "got      1 0 {'road': (2, 2)} [] [(1,) (2,)]"
    )


def test_rows_of_an_update_differ_by_their_order():
    one, other = history("SELECT temp FROM road [NOW]", ROWS), history("SELECT temp FROM road [NOW]", ROWS)
    [(*_, rows)] = other.windows[1, 1, None]
    rows.reverse()
    assert "got      1 0 {'road': (2, 2)} [] [(2,) (1,)]" in difference(one, other)


def test_values_differ_by_type_but_not_by_the_sign_of_zero():
    assert bag([(1,)]) != bag([(1.0,)])
    assert bag([(0.0,), (None,)]) == bag([(None,), (-0.0,)])


def test_order_within_a_tick_can_be_forgiven():
    one = history("RSTREAM(SELECT temp FROM road [NOW])", ROWS)
    other = history("RSTREAM(SELECT temp FROM road [NOW])", ROWS)
    other.tuples[3], other.tuples[4] = other.tuples[4], other.tuples[3]
    assert difference(one, other) and one.without_order() == other.without_order()
    other.tuples[2], other.tuples[4] = other.tuples[4], other.tuples[2]
    other.tuples[1].append(other.tuples[1][0])
    assert one.without_order() != other.without_order()


def test_a_report_has_the_same_tuples_and_is_a_golden_file(tmp_path, counts):
    for seed in range(counts(20, 400)):
        made = case(seed)
        catalog = read_schema(made.schema)
        for name, rows in made.inputs.items():
            extent = catalog.find(name)
            for version in [v for _, v in rows] if name == "kinds" else [rows]:
                text = as_csv(version, made.schema, name)
                if name == "kinds":
                    one = table_of(to_recorded_table(version, name), extent)
                    other = table_of(read_csv(text.encode()), extent)
                    assert [c.tolist() for c in one[0].values()] == [c.tolist() for c in other[0].values()]
                elif version:
                    one, other = (
                        batch_of(r, extent) for r in (to_recorded_table(version, name), read_csv(text.encode()))
                    )
                    assert listed(one) == listed(other)
        path = tmp_path / "case.test"
        path.write_text(golden(made.schema, made.inputs, made.queries, what="expected 1\ngot 2"))
        found = read_golden(path)
        assert found.schema.strip() == made.schema.strip() and found.cases[0].text == made.query


def judge(failing):
    return lambda schema, inputs, queries: Outcome("disagree" if failing(inputs, queries) else "agree", report="small")


def test_shrinking_leaves_what_makes_it_fail():
    inputs = {"road": list(range(40)), "kinds": [(0, list("abc")), (5, list("xyz"))]}
    failing = lambda inputs, queries: {7, 31} <= set(inputs["road"]) and any("y" in v for _, v in inputs["kinds"])  # noqa: E731
    (_, small, queries), outcome = shrink(
        "", inputs, ["q", ("r", 3)], Outcome("disagree", report="large"), judge(failing)
    )
    assert small == {"road": [7, 31], "kinds": [(5, ["y"])]} and len(queries) == 1
    assert outcome.report == "small"


def test_shrinking_ends():
    tries = []
    judged = lambda *case: tries.append(1) or Outcome("disagree", report="")  # noqa: E731
    shrink("", {"road": list(range(10_000))}, ["q"], Outcome("disagree"), judged, most=50)
    assert len(tries) <= 50


def test_a_hunt_counts_and_stops(monkeypatch):
    verdicts = iter(["agree", "not yet", "agree", "disagree", "agree", "disagree", "agree"])
    full = iter([True, True, False, False, False, False, False])
    monkeypatch.setattr(hunt, "agree", lambda *case, seconds: Outcome(next(verdicts), "why", non_empty=next(full)))
    monkeypatch.setattr(hunt, "shrink", lambda *case: (case[:3], Outcome("disagree", report="the case")))
    printed = []
    made = lambda seed: None if seed == "1.2" else dataclasses.replace(case(seed), traits={"late", "revised"})  # noqa: E731
    counted, reasons, traits = hunt.hunt(1, 100, stop=2, say=printed.append, make=made)
    assert counted == {"agree": 3, "not yet": 1, "disagree": 2} and reasons == {"not yet: why": 1}
    assert traits == {"late": 6, "revised": 6, "late or revised": 6, "non-empty": 2}
    assert len(printed) == 2 and printed[0].endswith("the case")
    assert "agree                3   50.0%" in hunt.shares(counted, reasons, traits)


def test_what_is_asked_of_a_maker_is_in_its_cases():
    made = {name: [m for m in (make(f"s.{n}") for n in range(40)) if m] for name, make in hunt.MAKERS.items()}
    words = {"looping": "WindowIs", "asked_of_history": "history", "since": " SINCE ", "within": " DELIVER WITHIN "}
    for name, word in words.items():
        texts = [m.query if isinstance(m.query, str) else m.query[0] for m in made[name]]
        assert sum(word.lower() in text.lower() for text in texts) > 0.6 * len(texts) > 10, name
    assert any(" IN (SELECT" in m.query for m in made["once"])
    assert any("history" in m.query[0] for m in made["scanning_history"])


def test_a_case_that_takes_too_long_is_ended(monkeypatch):
    def endless(*case):
        while True:
            try:
                sum(range(1000))
            except Exception:
                pass

    monkeypatch.setattr(compare, "_agree", endless)
    assert compare.agree(SCHEMA, {}, [], seconds=0.05).verdict == "too slow"
