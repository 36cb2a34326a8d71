"""Compiled programs: each mote sends and folds what its operators demand, whatever else it runs."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from acquisition.schedule import Sampling, Schedule, SensorChannel
from acquisition.ticks import EpochGrid
from innet.costs.hardware import Processor
from innet.errors import ProgramError
from innet.operators.acquire import Acquire, find_acquires
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.mote_expression import Instruction, MoteConstant, SensorValue, SiteNumber, all_of, make_instruction
from innet.operators.mote_select import MoteSelect
from innet.operators.scalar_evaluation import BINARY, UNARY, choose_value
from innet.operators.site_join import SiteJoin
from innet.operators.slices import SlicePattern
from innet.placement.placement import PlacedOperator, conditions, place_at_all_sites, select_sites
from innet.program.compiler import compile_programs
from innet.program.interpreter import ProgramOutcome, TickSample, run
from innet.program.mote_program import MoteProgram
from innet.program.opcodes import NO_SLOT
from innet.program.table_memory import TableMemory

TEMP, VOLT, LOAD = SensorValue("field", "temp"), SensorValue("field", "volt"), SensorValue("road", "load")
HOT, FULL = make_instruction("GT", TEMP, MoteConstant(3000)), make_instruction("GE", VOLT, MoteConstant(5))


def sampling(number, extent, *attributes, interval=10):
    return Sampling(number, extent, EpochGrid(0, interval), tuple(SensorChannel(name, 1, 16) for name in attributes))


FIELD, ROAD = sampling(0, "field", "temp", "volt"), sampling(1, "road", "load")
SCHEDULES = [Schedule(3, 5, (FIELD,)), Schedule(4, 2, (FIELD, ROAD))]


def field(*attributes, interval=10, where=None):
    acquire = Acquire("field", interval, attributes)
    return acquire if where is None else MoteSelect(acquire, where)


def sent(child, *attributes):
    return Deliver(child, "field", attributes)


def by_site(placed, schedules=SCHEDULES, **options):
    return {(p.site, p.sampling): p for p in compile_programs(placed, schedules, **options)}


def text(program):
    """Return the instructions alone."""
    return [line.split(None, 2)[2] for line in program.disassemble().splitlines()]


@pytest.mark.promise("placement")
def test_value_of_several_queries_is_sent_once():
    first, second = sent(field("temp"), "temp"), sent(field("temp", "volt", interval=20), "temp", "volt")
    third = Deliver(Acquire("road", 10, ("load",)), "road", ("load",))
    programs = by_site(place_at_all_sites([first, second, third], {"field": (3, 4), "road": (4,)}))
    assert set(programs) == {(3, 0), (4, 0), (4, 1)}
    assert text(programs[3, 0]) == ["WANT", "LOAD 0", "OUT 0", "LOAD 1", "OUT 1", "SEND", "HALT"]
    assert [programs[key].version for key in programs] == [5, 2, 2]
    assert programs[3, 0].body == programs[4, 0].body


def test_shared_conditions_are_computed_once():
    a = sent(field("temp", "volt", where=all_of([HOT, FULL])), "temp")
    b = Fold(field("temp", where=HOT), "field", SlicePattern(60, 0, 0), (), (("SUM", TEMP),))
    [program] = compile_programs([PlacedOperator(a, (3,)), PlacedOperator(b, (3,), 7, (), 2)], SCHEDULES[:1])
    assert text(program) == [
        "TABLE 7 1 0 0 2 60 0 0", "KEEP 1  SUM",
        "LOAD 0", "LIT16 3000", "GT", "STORE 0",
        "WANT", "FETCH 0", "LOAD 1", "LIT8 5", "GE", "AND", "SKIP 5  to 47", "LOAD 0", "OUT 0", "SEND",
        "MARK 7", "FETCH 0", "SKIP 6  to 60", "ENTER 7", "LOAD 0", "FOLD 0", "HALT",
    ]  # fmt: skip


def test_coarser_query_skips_other_ticks():
    [program] = compile_programs(
        [PlacedOperator(sent(field("temp", interval=30, where=HOT), "temp"), (3,))], SCHEDULES[:1]
    )
    outcomes = [run(program, TickSample(tick, (4000, 1)), TableMemory()) for tick in (0, 10, 30)]
    assert outcomes == [
        ProgramOutcome((4000, None), True),
        ProgramOutcome(None, False),
        ProgramOutcome((4000, None), True),
    ]
    assert run(program, TickSample(60, (1, 1)), TableMemory()).filtered


def test_join_reads_both_samplings():
    joined = SiteJoin(field("temp"), Acquire("road", 10, ("load",)), make_instruction("EQ", TEMP, LOAD))
    sides = [Deliver(joined, "field", ("temp",)), Deliver(joined, "road", ("load",))]
    programs = by_site(place_at_all_sites(sides, {"field": (4,), "road": (4,)}))
    for temp, load in ((5, 5), (5, 6), (None, 5)):
        field_says = run(programs[4, 0], TickSample(0, (temp, 1), {1: (load,)}), TableMemory())
        road_says = run(programs[4, 1], TickSample(0, (load,), {0: (temp, 1)}), TableMemory())
        assert (field_says.reading, road_says.reading) == (((5, None), (5,)) if temp == load else (None, None))
    assert run(programs[4, 0], TickSample(0, (5, 1)), TableMemory()).filtered  # the other extent has no sample


@pytest.mark.promise("placement")
def test_peer_sampling_gets_empty_program():
    """The mote counts its readings as folded, as they are; half a pair is neither folded nor filtered."""
    joined = SiteJoin(field("temp"), Acquire("road", 10, ("load",)), make_instruction("EQ", TEMP, LOAD))
    fold = PlacedOperator(Fold(joined, "field", SlicePattern(60, 0, 0), (), (("MAX", LOAD),)), (4,), 7, (), 2)
    programs = by_site([fold])
    assert text(programs[4, 1]) == ["HALT"]
    assert not run(programs[4, 1], TickSample(0, (5,), {0: (5, 1)}), TableMemory()).is_due
    memory = TableMemory()
    memory.install([programs[4, 0]])
    for tick, peers in ((0, {1: (5,)}), (10, {1: (6,)}), (20, {})):
        run(programs[4, 0], TickSample(tick, (5, 1), peers), memory)
    assert [(partial.bare, partial.readings) for _, partial in memory.take(60)] == [(False, 1), (True, 1)]


def test_merging_mote_declares_table_only():
    fold = Fold(field("temp"), "field", SlicePattern(60, 0, 0), (), (("SUM", TEMP),))
    programs = by_site([PlacedOperator(fold, (3,), 7, (8,), 2)])
    assert text(programs[8, 0]) == [f"TABLE 7 1 {NO_SLOT} 0 2 60 0 0", "KEEP 1  SUM", "HALT"]
    assert (programs[8, 0].channels, programs[8, 0].tables[0].slot) == (0, None)


def test_unsampled_attribute_is_refused():
    with pytest.raises(ProgramError, match="site 3, `deliver wind of field`: `wind` of field is not sampled"):
        compile_programs([PlacedOperator(sent(field("wind"), "wind"), (3,))], SCHEDULES)
    with pytest.raises(ProgramError, match="site 3: `wind` of field is not sampled"):
        where = make_instruction("GT", SensorValue("field", "wind"), MoteConstant(1))
        compile_programs([PlacedOperator(sent(field("temp", where=where), "temp"), (3,))], SCHEDULES)
    with pytest.raises(ProgramError, match="site 9, `deliver temp of field`: field is not sampled"):
        compile_programs([PlacedOperator(sent(field("temp"), "temp"), (9,))], [*SCHEDULES, Schedule(9, 1, ())])


def deep(depth):
    return TEMP if depth == 0 else make_instruction("ADD", TEMP, deep(depth - 1))


@pytest.mark.promise("reconciled")
@pytest.mark.parametrize(
    ("operator", "processor", "said"),
    [
        (
            sent(field("temp", where=make_instruction("GT", deep(9), MoteConstant(1))), "temp"),
            None,
            "more than 8 values on the stack",
        ),
        (sent(field("temp"), "temp"), Processor(1, 1, 1, 8, 100), "their next version need 14 bytes, the mote has 8"),
        (
            Fold(field("temp"), "field", SlicePattern(60, 0, 0), (SiteNumber(),), (("SUM", TEMP),)),
            Processor(1, 1, 1, 1000, 50),
            "tables of partials need 130 bytes, the mote has 50",
        ),
    ],
)
def test_program_beyond_limits_names_site_and_operator(operator, processor, said):
    placed = PlacedOperator(operator, (3,), 7 if isinstance(operator, Fold) else 0, (), 5)
    with pytest.raises(ProgramError, match=said) as raised:
        compile_programs([placed], SCHEDULES, processor and {3: processor})
    assert (raised.value.site, raised.value.operator) == (3, operator.label())


def test_program_at_limit_is_accepted():
    placed = PlacedOperator(sent(field("temp"), "temp"), (3,))
    assert len(compile_programs([placed], SCHEDULES, {3: Processor(1, 1, 1, 14, 0)})) == 1


# --- several operators -----------------------------------------------------------------------------------------------

OPERAND = st.sampled_from([TEMP, VOLT, LOAD, SiteNumber(), MoteConstant(3), MoteConstant(-2), MoteConstant(None)])
TERM = st.builds(make_instruction, st.sampled_from(["EQ", "NE", "LT", "LE", "GT", "GE"]), OPERAND, OPERAND)
CONDITION = st.one_of(
    TERM,
    st.builds(lambda a, b: make_instruction("OR", a, b), TERM, TERM),
    TERM.map(lambda t: make_instruction("NOT", t)),
)


@st.composite
def operators(draw):
    """Operators over the two extents that share some of their few conditions."""
    pool = draw(st.lists(CONDITION, min_size=1, max_size=3))
    found = []
    for number in range(draw(st.integers(1, 4))):
        chosen = draw(st.lists(st.sampled_from(pool), max_size=2))
        interval = draw(st.sampled_from([10, 20, 30]))
        child = Acquire("field", interval, ("temp", "volt"))
        if any(LOAD in walk(term) for term in chosen):
            child = SiteJoin(child, Acquire("road", 10, ("load",)), all_of(chosen))
        elif chosen:
            child = MoteSelect(child, all_of(chosen))
        if draw(st.booleans()):
            found.append(
                PlacedOperator(Deliver(child, "field", draw(st.sampled_from([("temp",), ("temp", "volt")]))), (4,))
            )
        else:
            keys = draw(st.lists(st.sampled_from([SiteNumber(), VOLT]), max_size=1))
            fold = Fold(child, "field", SlicePattern(60, 0, 0), tuple(keys), (("SUM", TEMP), ("MAX", VOLT)))
            found.append(PlacedOperator(fold, (4,), number + 1, (), 50))
    found = [placed for placed in found if select_sites(placed.operator, placed.sites)]  # otherwise it runs nowhere
    assume(found)
    return found


def walk(expression):
    return [expression, *(inner for part in expression.parts for inner in walk(part))]


def value_of(expression, known):
    """Evaluate an expression over known values."""
    match expression:
        case MoteConstant(value):
            return value
        case Instruction(name, parts):
            values = [value_of(part, known) for part in parts]
            return (choose_value if name == "PICK" else UNARY.get(name) or BINARY[name])(*values)
    return known[expression]


VALUE = st.one_of(st.none(), st.integers(-4, 4))


@pytest.mark.promise("placement")
@given(operators(), st.lists(st.tuples(VALUE, VALUE, VALUE, st.booleans()), min_size=1, max_size=8))
def test_shared_program_serves_each_operator(placed, rows):
    program = next(p for p in compile_programs(placed, SCHEDULES[1:]) if p.sampling == 0)
    memory = TableMemory()
    memory.install([program])
    expected = {p.number: [0, 0, 0] for p in placed if isinstance(p.operator, Fold)}  # readings, taken, their sum
    for epoch, (temp, volt, load, here) in enumerate(rows):
        tick = 10 * epoch
        known = {TEMP: temp, VOLT: volt, LOAD: load, SiteNumber(): 4}
        outcome = run(program, TickSample(tick, (temp, volt), {1: (load,)} if here else {}), memory)
        due = [p for p in placed if tick % interval_of(p) == 0]
        takes = [
            p for p in due if (here or not joins(p)) and all(value_of(t, known) == 1 for t in conditions(p.operator))
        ]
        sending = [p for p in takes if isinstance(p.operator, Deliver)]
        assert outcome.is_due == any(isinstance(p.operator, Deliver) for p in due)
        assert (outcome.reading is not None) == bool(sending)
        if outcome.reading is not None:
            names = {name for p in placed if isinstance(p.operator, Deliver) for name in p.operator.sent}
            assert outcome.reading == (temp if "temp" in names else None, volt if "volt" in names else None)
        for p in due:
            if p.number and (here or not joins(p)):  # half a pair is neither taken nor filtered
                expected[p.number][0] += 1
                expected[p.number][1] += p in takes
                expected[p.number][2] += (temp or 0) if p in takes else 0
    found = {number: [0, 0, 0] for number in expected}
    for number, partial in memory.take(10**6):
        found[number][0] += partial.readings
        if not partial.bare:
            found[number][1] += partial.readings
            found[number][2] += partial.states[0][1]
    assert found == expected


def interval_of(placed):
    return find_acquires(placed.operator)["field"].interval


def joins(placed):
    return isinstance(placed.operator.child, SiteJoin)


@pytest.mark.promise("placement")
@given(operators(), st.data())
def test_program_of_a_site_depends_on_no_other_site(placed, data):
    """Sites that compute the same share the work; they also differ in versions, in slots, and in the tables that they only merge."""
    sites = (4, 5, 6, 7)
    schedules = [Schedule(site, site % 3, (FIELD, ROAD) if site < 7 else (FIELD,)) for site in sites]
    chosen = st.lists(st.sampled_from(sites[:3]), min_size=1, unique=True)
    spread = [
        replace(each, sites=tuple(sorted(data.draw(chosen))), merging=(7,) if isinstance(each.operator, Fold) else ())
        for each in placed
    ]
    whole = compile_programs(spread, schedules)
    extra = Sampling(FIELD.number, "field", FIELD.epochs, (*FIELD.channels, SensorChannel("more", 3, 16)))
    for site in sites:
        schedule = next(each for each in schedules if each.site == site)
        others = [Schedule(each.site, 9, (extra, ROAD)) for each in schedules if each.site != site]
        alone = [each for each in compile_programs(spread, [*others, schedule]) if each.site == site]
        found = [each for each in whole if each.site == site]
        assert found == alone and [each.tables for each in found] == [each.tables for each in alone]
        for program in found:
            assert MoteProgram(site, program.sampling, program.version, program.channels, program.code) == program


def test_program_at_a_site_needs_a_slot_that_there_is():
    fold = Fold(Acquire("field", 10, ("temp",)), "field", SlicePattern(60, 0, 0), (), (("SUM", TEMP),))
    [program, _] = compile_programs([PlacedOperator(fold, (3, 4), 1, (), 2)], SCHEDULES)
    assert program.at_site(9, 7, [NO_SLOT]).tables[0].slot is None
    with pytest.raises(ProgramError, match="expected a slot below 2, found 2"):
        program.at_site(9, 7, [2])
