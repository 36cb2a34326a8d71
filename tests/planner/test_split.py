"""What may move into the network and why the rest stays; what moved means there exactly what it means at the base."""

import dataclasses
import json
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acquisition.instants import Epochs
from acquisition.schedule import Sampling, Schedule, channel_of
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.node import walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.vector import vector_of
from basestation.execution.arrived import arrived
from basestation.execution.folding import Folding
from basestation.execution.tuples import Tuples
from basestation.explain import as_text, explained
from basestation.planner.bind import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.rewrite import rewrite
from basestation.planner.split import raw_of, split
from gateway.frame import Frame, Kind, MoteId
from innet.deployment import Deployment, SensorSpec, Site
from innet.operators import outline
from innet.operators.expression import Measured, SiteNumber
from innet.operators.fold import Fold
from innet.operators.ranges import Interval
from innet.payload import decode_all, encode_partials
from innet.placement.place import united_folds
from innet.placement.placement import Placed, taking
from innet.program.compile import compile_programs
from innet.program.interpreter import Sampled, run
from innet.program.memory import Memory
from innet.program.vectorised import Columns, Lane, run_many

CATALOG = read_schema("""
f: sensed (site:integer, time:integer, v:integer, u:integer, x:float {scale 2}, y:float {scale 1}, z:float, s:string)
   every 10 sec at sites 3, 4, 9 wait 5 sec late revise by 1 hour
g: sensed (site:integer, n:integer) every 10 sec at sites 3, 4, 9
far: sensed (site:integer, n:integer) every 10 sec at sites 3, 5
app: sensed (site:integer, n:integer) every 10 sec at sites 3 late append
drop: sensed (site:integer, n:integer) every 10 sec at sites 3 late drop
short: sensed (site:integer, n:integer) every 10 sec at sites 3 late revise by 30 sec
p: pushed (a:integer)
""")
SITES = (3, 4, 9)


def split_of(text, raw=None, corrected=frozenset()):
    (plan,) = bind_text(text, CATALOG)
    better, _ = rewrite(plan)
    return split(plan, better.root, raw, corrected), better.root


def told(text, **asked):
    """The codes of what stays, `moves` for what does not, from the top of the plan."""
    return [decision.code for decision in split_of(text, **asked)[0].decisions]


WINDOW = "[FROM NOW-60 TO NOW SLIDE 30 SEC]"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("SELECT v FROM f", ["moves"]),
        ("SELECT v FROM f WHERE v > 3", ["moves", "moves"]),
        ("SELECT v FROM f WHERE x * 1.8 + 32 > 80.5", ["moves", "moves"]),
        ("SELECT v FROM f WHERE z > 3", ["float", "moves"]),
        ("SELECT v FROM f WHERE x * y > 3", ["float", "moves"]),
        ("SELECT v FROM f WHERE s = 'a'", ["string", "moves"]),
        ("SELECT v FROM f WHERE LENGTH(s) = 2", ["function", "moves"]),
        ("SELECT v FROM f WHERE v + u > 3", ["wide", "moves"]),
        ("SELECT v FROM f WHERE v * 1e301 > 5", ["float", "moves"]),
        ("SELECT v FROM f WHERE v * 4611686018427387904 > 5", ["wide", "moves"]),
        ("SELECT v FROM f WHERE tick > 30", ["tick", "moves"]),
        ("SELECT v FROM f WHERE v > 3 AND tick > 30", ["moves", "moves"]),
        ("SELECT index, v FROM f WHERE v > 3", ["index", "moves"]),
        ("SELECT v FROM f WHERE SQRT(v) > 3", ["float", "moves"]),
        (f"SELECT AVG(v), COUNT(*) FROM f {WINDOW}", ["moves"]),
        (f"SELECT FIRST(v), LAST(u), STDEV(x) FROM f {WINDOW} WHERE x > 1 GROUP BY site, v", ["moves"]),
        (f"SELECT SUM(v + u) FROM f {WINDOW}", ["wide", "moves"]),
        (f"SELECT MAX(x * 2) FROM f {WINDOW}", ["float", "moves"]),
        (f"SELECT MEDIAN(v) FROM f {WINDOW}", ["readings", "moves"]),
        (f"SELECT COUNT(DISTINCT v) FROM f {WINDOW}", ["readings", "moves"]),
        (f"SELECT MIN(time) FROM f {WINDOW}", ["tick", "moves"]),
        (f"SELECT AVG(v) FROM f {WINDOW} WHERE z > 1", ["float", "float", "moves"]),
        ("SELECT AVG(v) FROM f [FROM NOW-5 TO NOW SLIDE 2 ROWS]", ["rows", "moves"]),
        ("SELECT AVG(v) FROM f [UNBOUNDED SLIDE 30 SEC]", ["moves"]),
        (f"SELECT AVG(v) FROM f {WINDOW} SINCE 100", ["since", "moves"]),
        (f"RSTREAM(SELECT AVG(v) FROM f {WINDOW})", ["moves"]),
        (f"RSTREAM(SELECT v, COUNT(*) FROM f {WINDOW} GROUP BY v)", ["order", "moves"]),
        (f"SELECT AVG(n) FROM app {WINDOW}", ["late", "moves"]),
        (f"SELECT AVG(n) FROM drop {WINDOW}", ["late", "moves"]),
        ("SELECT AVG(n) FROM drop [NOW]", ["moves"]),
        ("SELECT AVG(n) FROM short [FROM NOW-100 TO NOW SLIDE 60 SEC]", ["late", "moves"]),
        ("SELECT AVG(n) FROM short [FROM NOW-29 TO NOW SLIDE 30 SEC]", ["moves"]),
        (f"SELECT AVG(n), MAX(a) FROM g {WINDOW}, p {WINDOW}", ["nested", "moves"]),
        (f"SELECT AVG(a) FROM p {WINDOW}", []),
        ("SELECT f.v FROM f [NOW], f.HISTORY h [SCAN 1 HOUR] WHERE f.v > 2", ["history", "moves"]),
        ("SELECT AVG(v) FROM f [FROM NOW-20000 HOUR TO NOW SLIDE 20000 HOUR]", ["late", "moves"]),
    ],
)
def test_what_moves_and_what_stays(text, codes):
    assert told(text) == codes


JOIN = "(SELECT tick AS t, site, v FROM f) a [NOW], (SELECT tick AS t, site, n FROM {}) b [NOW] WHERE a.t = b.t AND {}"


@pytest.mark.parametrize(
    ("extent", "condition", "codes"),
    [
        ("g", "a.site = b.site", ["moves", "moves", "moves"]),
        ("g", "a.site = b.site AND a.v > b.n", ["moves", "moves", "moves", "moves"]),
        ("g", "a.v = b.n", ["join", "moves", "moves"]),
        ("far", "a.site = b.site", ["join", "moves", "moves"]),
    ],
)
def test_joins_of_one_site_and_tick(extent, condition, codes):
    assert told("SELECT a.v, b.n FROM " + JOIN.format(extent, condition)) == codes


def test_a_join_that_moves_is_a_condition_of_both_readings():
    found, _ = split_of("SELECT a.v, b.n FROM " + JOIN.format("g", "a.site = b.site AND a.v = b.n AND b.n > 4"))
    assert [(deliver.extent, [text for _, text in outline(deliver.child)]) for deliver in found.readings] == [
        (extent, ["join at the same site and tick where f.v = g.n", "acquire v of f every 10 ticks",
                  "select g.n > 4", "acquire n of g every 10 ticks"])
        for extent in ("f", "g")
    ]  # fmt: skip


def test_every_reason_is_a_sentence_about_what_was_asked():
    found, _ = split_of("SELECT v FROM f WHERE v + u > 3")
    assert found.decisions[0].reason == "f.v + f.u can be -4294967296 to 4294967294, and a mote computes with 32 bits"
    found, _ = split_of(f"SELECT COUNT(*) FROM short {WINDOW}".replace("60", "100").replace("30", "60"))
    assert found.decisions[0].reason.startswith("a slice reaches over ")


def test_corrections_need_the_readings():
    assert told("SELECT v FROM f WHERE v > 3", corrected=frozenset({"f"})) == ["corrected", "moves"]
    assert told(f"SELECT AVG(v) FROM f {WINDOW}", corrected=frozenset({"f"})) == ["corrected", "moves"]
    found, _ = split_of("SELECT v FROM f WHERE v > 3", corrected=frozenset({"f"}))
    assert [text for _, text in outline(found.readings[0])] == ["deliver v of f", "acquire v of f every 10 ticks"]


def test_what_sensors_can_give_lets_more_move():
    """16 bits each: their sum fits. The range of a sensor is told in its own scale."""
    sensors = {"v": SensorSpec(-(2**15), 2**15 - 1), "u": SensorSpec(0, 4095), "x": SensorSpec(-55, 125, scale=0)}
    sites = {
        3: Site(3, (0.0, 0.0, 0.0), "telosb", sensors),
        4: Site(4, (0.0, 0.0, 0.0), "telosb", {"u": SensorSpec(-5, 9)}),
    }
    raw = raw_of(Deployment("test", 1000, {}, sites, {}, ""), CATALOG)
    assert raw[Measured("f", "u")] == Interval(-5, 4095)
    assert raw[Measured("f", "x")] == Interval(-5500, 12500)
    assert told(f"SELECT SUM(v + u) FROM f {WINDOW} WHERE v * u > 3 AND x > u", raw=raw) == ["moves"]
    assert told(f"SELECT SUM(v * v * u) FROM f {WINDOW}", raw=raw) == ["wide", "moves"]


def test_of_one_expression_the_largest_state_holds_the_others():
    found, _ = split_of(f"SELECT COUNT(v), AVG(v), COUNT(*), STDEV(v), MAX(v), SUM(u) FROM f {WINDOW}")
    [feed] = found.feeds
    assert [kind for kind, _ in feed.fold.states] == ["VARIANCE", "MAX", "SUM"]
    assert feed.sources == (0, 0, None, 0, 1, 2)
    [feed] = split_of(f"SELECT STDEV(v), AVG(v), COUNT(v) FROM f {WINDOW}")[0].feeds
    assert (feed.fold.kinds, feed.sources) == (("VARIANCE",), (0, 0, 0))


def test_a_fold_takes_the_place_of_the_readings_below_it():
    found, _ = split_of(f"SELECT AVG(v) FROM f {WINDOW}")
    [feed] = found.feeds
    assert (found.readings, found.inside) == ((), (feed.fold,))
    assert [[text for _, text in outline(deliver)] for deliver in feed.instead] == [
        ["deliver v of f", "acquire v of f every 10 ticks"]
    ]
    found, _ = split_of(
        f"SELECT a.m, v FROM (RSTREAM(SELECT AVG(v) AS m FROM f {WINDOW})) a [FROM NOW TO NOW SLIDE 30 SEC], f [NOW]"
    )
    assert ([len(found.readings), len(found.feeds)]) == [1, 1]


def test_explain_tells_what_moves_and_why_the_rest_stays():
    (plan,) = bind_text("SELECT v FROM f WHERE z > 1 AND v > 2", CATALOG)
    told = json.loads(json.dumps(explained(plan)))
    assert [(d["moves"], d["code"]) for d in told["network"]] == [(True, "moves"), (True, "moves")]
    text = as_text(told)
    assert "\nin the network\n  StreamSelect " in text
    assert "    may run on motes: in part: `f.z` is a float without a scale, and a mote has integers only\n" in text
    (pushed,) = bind_text("SELECT a FROM p", CATALOG)
    assert "in the network" not in as_text(explained(pushed))


# --- it means the same -----------------------------------------------------------------------------------------------

SMALL = st.integers(-9, 9)
HARD = st.one_of(SMALL, st.sampled_from([2**31 - 1, -(2**31), 2050, -2049, 10, 100]), st.integers(-(2**31), 2**31 - 1))
VALUE = st.one_of(st.none(), HARD)
ROWS = st.lists(
    st.tuples(st.sampled_from(SITES), st.integers(0, 12), VALUE, VALUE, VALUE, VALUE), min_size=1, max_size=14,
    unique_by=lambda row: row[:2],
)  # fmt: skip
CONSTANT = st.one_of(
    SMALL.map(str), HARD.map(str), st.sampled_from(["0.5", "20.5", "-0.005", "1e9", "3.0", "0.1", "-7.25"])
)


@st.composite
def terms(draw, depth=2):
    """Text of a value: over columns, with arithmetic."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["v", "u", "x", "y", "site"]))
    inner, constant = draw(terms(depth - 1)), draw(CONSTANT)
    return draw(
        st.sampled_from([
            f"({inner} + {constant})", f"({constant} - {inner})", f"({inner} * {constant})", f"({inner} / {constant})",
            f"-({inner})", f"ABS({inner})", f"ROUND({inner})", f"CAST({inner} AS integer)", f"CAST({inner} AS float)",
            f"({inner} % {constant})", f"LEAST({inner}, {constant})", f"COALESCE({inner}, {constant})",
            f"NULLIF({inner}, {constant})", f"CASE WHEN {inner} > {constant} THEN {constant} ELSE {inner} END",
        ])
    )  # fmt: skip


@st.composite
def predicates(draw, depth=2):
    op = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    if depth == 0 or draw(st.booleans()):
        a, b = draw(terms()), draw(st.one_of(CONSTANT, terms(1)))
        return draw(
            st.sampled_from([
                f"{a} {draw(op)} {b}", f"{b} {draw(op)} {a}", f"{a} IS NULL", f"{a} IN ({b}, {draw(CONSTANT)}, NULL)",
                f"{a} BETWEEN {draw(CONSTANT)} AND {b}",
            ])
        )  # fmt: skip
    a, b = draw(predicates(depth - 1)), draw(predicates(depth - 1))
    return draw(st.sampled_from([f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})"]))


RAW = [None, {Measured("f", name): Interval(-(2**10), 2**10) for name in "vuxy"}]


def within(rows, raw):
    """The rows as sensors that give no more than that would give them."""
    if raw is None:
        return rows
    return [(*row[:2], *(None if n is None else max(-(2**10), min(n, 2**10)) for n in row[2:])) for row in rows]


def schedules(attributes):
    channels = tuple(channel_of(CATALOG.find("f").schema.find(name)) for name in attributes)
    sampling = Sampling(0, "f", Epochs(0, 10), channels)
    return [Schedule(site, 1, (sampling,)) for site in SITES]


def measured(root, rows):
    """The readings as the base station has them: Tuples with the columns of the plan's StreamAcquire."""
    [acquire] = [node for node in walk(root) if isinstance(node, StreamAcquire)]
    at = {"site": 0, "v": 2, "u": 3, "x": 4, "y": 5}
    columns = {}
    for column in acquire.attributes:
        entries = [10 * row[1] if column.name == "time" else row[at[column.name]] for row in rows]
        columns[column.id] = vector_of(entries, CATALOG.find("f").site_attribute.type)
    tick = np.array([10 * row[1] for row in rows], np.int64)
    site = np.array([row[0] for row in rows], np.int64)
    none = np.zeros(len(rows), np.int64)
    return Tuples(np.arange(len(rows)), tick, tick, none, site, none, site, np.zeros(len(rows), bool), columns)


def streamed(node, tuples):
    """Selections and projections of a stream, by the base station's own evaluation."""
    if isinstance(node, StreamAcquire):
        return tuples
    below = streamed(node.child, tuples)
    evaluation = Evaluation(below.columns, len(below))
    if isinstance(node, StreamSelect):
        return below.take(evaluation.of(node.predicate).true)
    assert isinstance(node, StreamProject)
    return below.with_columns({column.id: evaluation.as_type(e, column.type) for column, e in node.outputs})


@given(predicates(), ROWS, st.sampled_from(RAW))
def test_a_mote_sends_what_the_base_station_would_select(text, rows, raw):
    found, root = split_of(f"SELECT v, u, x, y FROM f WHERE {text}", raw)
    rows = within(rows, raw)
    [deliver] = found.readings
    programs = {p.site: p for p in compile_programs([Placed(deliver, taking(deliver, SITES))], schedules(deliver.sent))}
    sent = []
    for i, (site, epoch, *values) in enumerate(rows):
        taken = [dict(zip("vuxy", values, strict=True))[name] for name in deliver.sent]
        if site not in programs:  # a condition about the site alone excludes it
            continue
        outcome = run(programs[site], Sampled(10 * epoch, taken), Memory())
        assert outcome.wanted
        if outcome.reading is not None:
            assert outcome.reading == tuple(taken)
            sent.append(i)
    [select] = [node for node in walk(root) if isinstance(node, StreamSelect)] or [None]
    selected = [] if select is None else streamed(select, measured(root, rows)).ident.tolist()
    if select is None:
        assert sent == list(range(len(rows)))
    elif all(decision.code == "moves" and "in part" not in decision.reason for decision in found.decisions):
        assert sent == selected
    else:
        assert set(selected) <= set(sent)


@st.composite
def comparisons(draw):
    """A column, and a comparison of nothing but it with a constant, negated or not."""
    name = draw(st.sampled_from(["v", "x", "y", "site"]))
    term = draw(terms().filter(lambda text: not set(re.findall(r"\b[vuxy]\b", text)) - {name}))
    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    return name, f"{draw(st.sampled_from(['', 'NOT ']))}{term} {op} {draw(CONSTANT)}"


@given(comparisons())
@example(("x", "x % 0.5 > 0.2"))
@example(("x", "NOT x = 0.005"))
@example(("x", "NOT x <> 0.01"))
@example(("y", "-3 - y / -0.3 <= 0.1"))
@example(("v", "v * -0.1 + 0.3 < 0.7"))
def test_every_value_of_a_sensor_is_judged_alike(compared):
    """All values there are, and null."""
    name, text = compared
    found, root = split_of(f"SELECT v, u, x, y FROM f WHERE {text}", RAW[1])
    [deliver] = found.readings
    if found.decisions[0].code != "moves" or not (sites := taking(deliver, SITES)):
        return
    values = [None, *range(-(2**10), 2**10 + 1)]
    rows = [(sites[0], i, *(v if column == name else 1 for column in "vuxy")) for i, v in enumerate(values)]
    lanes = {
        column: Lane(np.array([row[at] or 0 for row in rows]), np.array([row[at] is not None for row in rows]))
        for at, column in enumerate("vuxy", 2)
    }
    program = next(p for p in compile_programs([Placed(deliver, sites)], schedules(deliver.sent)) if p.site == sites[0])
    tuples = measured(root, rows)
    outcomes = run_many(program, Columns(tuples.site, tuples.tick, [lanes[sent] for sent in deliver.sent]))
    [select] = [node for node in walk(root) if isinstance(node, StreamSelect)] or [None]
    selected = tuples.ident if select is None else streamed(select, tuples).ident
    assert np.array_equal(np.flatnonzero(outcomes.sent), selected)


AGGREGATE = st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX", "STDEV", "VARIANCE", "FIRST", "LAST"])


@st.composite
def aggregations(draw):
    """A query whose aggregation may move, and its windows."""
    listed = draw(
        st.lists(st.tuples(AGGREGATE, st.sampled_from(["v", "x", "site", "v + 1", "ABS(u)"])), min_size=1, max_size=4)
    )
    items = ["COUNT(*)", *(f"{name}({argument})" for name, argument in listed)]
    groups = draw(st.lists(st.sampled_from(["site", "u", "x"]), max_size=2, unique=True))
    begin, slide = draw(st.integers(0, 70)), draw(st.integers(1, 45))
    end = draw(st.integers(0, begin))
    point = "NOW" if end == 0 else f"NOW-{end}"
    frm = "NOW" if begin == 0 else f"NOW-{begin}"
    text = f"SELECT {', '.join([*groups, *items])} FROM f [FROM {frm} TO {point} SLIDE {slide} SEC]"
    if draw(st.booleans()):
        text += f" WHERE {draw(predicates(1))}"
    return text + (f" GROUP BY {', '.join(groups)}" if groups else "")


@given(aggregations(), ROWS, st.randoms(use_true_random=False))
def test_partials_finish_to_what_all_readings_give(text, rows, rng):
    """Window by window: the partials that motes made and merged, against all readings folded at the base station."""
    found, root = split_of(text, RAW[1])
    rows = within(rows, RAW[1])
    if not found.feeds:
        assert all(
            decision.code in ("float", "wide", "long", "function") for decision in found.decisions if not decision.moves
        )
        return
    [feed] = found.feeds
    [held] = united_folds([feed.fold, dataclasses.replace(feed.fold, states=OTHERS)])
    came = in_network(held, rows, rng)
    assert sum(partial.readings for partial in came) == sum(row[0] in taking(feed.fold, SITES) for row in rows)
    node = next(n for n in walk(root) if isinstance(n, SliceAggregation))
    folding = Folding(node)
    cells = arrived(feed, held, folding, np.asarray, framed(placed(held), came)) if came else folding.joined([])
    tuples = streamed(node.child, measured(root, rows))
    for window in list(range(0, 200, node.slide))[:: -(-200 // node.slide // 12)]:
        low, high = window + node.begin, window + node.end
        within_window = (tuples.tick >= low) & (tuples.tick <= high)
        inside = np.array([reaches(feed.fold, begin, low, high) for begin in cells.slice.tolist()], bool)
        assert bag(folding, folding.take(cells, inside)) == bag(folding, all_of(folding, tuples.take(within_window)))


OTHERS = (("VARIANCE", SiteNumber()), ("MIN", SiteNumber()))
"""What another query wants of the same tuples, slices and groups."""


def all_of(folding, tuples):
    """Every reading of one window, folded at the base station."""
    return folding.cells(np.zeros(len(tuples), np.int64), tuples, Stream())


def framed(placed, came):
    """The partials as the base station has them from frames."""
    payloads = encode_partials(placed.shape, came)
    frames = [Frame(Kind.PARTIAL, MoteId(3), 1, seq, payload) for seq, payload in enumerate(payloads)]
    [decoded], errors = decode_all(frames, {placed.number: placed.shape})
    assert not errors
    return decoded


class Stream:
    by_site = True


def reaches(fold, begin, low, high):
    """Whether a slice lies in a window: no slice lies in it in part."""
    ticks = fold.slices.ticks(fold.slices.number(begin), 10)
    inside = [low <= tick <= high for tick in ticks]
    assert all(inside) or not any(inside)
    return any(inside)


def placed(fold: Fold) -> Placed:
    sites = taking(fold, SITES)
    return Placed(fold, sites, 7, tuple(site for site in SITES if site not in sites), 2)


def in_network(fold: Fold, rows, rng):
    """What arrives of the readings: 9 hands over to 4, 4 to 3, 3 to the base; with room for two groups only."""
    sites, fold_at = taking(fold, SITES), placed(fold)
    names = tuple(sorted(fold.child.attributes))
    programs = {p.site: p for p in compile_programs([fold_at], schedules(names))}
    memories = {site: Memory() for site in SITES}
    for site in SITES:
        memories[site].install([programs[site]])
    came = []
    for tick in range(0, 400, 10):
        for site, epoch, *values in rows:
            if 10 * epoch == tick and site in sites:
                taken = [dict(zip("vuxy", values, strict=True))[name] for name in names]
                run(programs[site], Sampled(tick, taken), memories[site])
        for site, parent in ((9, 4), (4, 3), (3, None)):
            sent = [partial for _, partial in memories[site].take(tick)]
            rng.shuffle(sent)
            if parent is None:
                came += sent
            else:
                memories[parent].add(7, sent)
    return came


def bag(folding, cells):
    """The rows of one window over all these cells, whatever their order."""
    cells = folding.united(dataclasses.replace(cells, slice=np.zeros(len(cells), np.int64)))
    frame = folding.windows(cells, np.zeros(1, np.int64), np.zeros(1, np.int64))
    columns = [frame.columns[id].to_list() for id in frame.columns]
    return sorted(zip(*columns, strict=True), key=repr)
