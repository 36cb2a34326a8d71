"""Recompute: SNEEql from the definitions, from scratch at the end of every clock tick.

    result = run(schema, {"road": [{"_tick": 0, "site": 1, "temp": 7}]}, ["SELECT temp FROM road"])
    result.answers[0].updates, result.answers[0].current(), result.ledger

A query is a text, or (text, clock tick): REVISE, DELETE and INSERT are carried out then; a one-off query is evaluated
then; a continuous one that begins in the past (SINCE) is asked then.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from basestation.language import syntax
from basestation.language.parser import parse
from gateway.source import Source
from tests.oracles.answers import Answer, StreamAnswer, WindowAnswer
from tests.oracles.binding import QueryBinder, is_stream
from tests.oracles.deliveries import Log, Table, delivery_of, last_moment
from tests.oracles.errors import NotCoveredError, RejectedError
from tests.oracles.one_off import OneOff
from tests.oracles.schema import read_schema, ticks
from tests.oracles.statements import carry_out


@dataclass
class QueryContext:
    """One statement's circumstances: when it was asked, where it starts, what it asks for (11)."""

    tick_ms: int
    asked: int = 0
    start: int = 0
    from_the_past: bool = False
    acquire: int | None = None
    within: int | None = None
    run_for: int | None = None
    error: object = None  # the error that ended a loop (10.8)
    grids: set = field(default_factory=set)  # every slide and scan of the query


@dataclass
class World:
    extents: dict
    logs: dict
    tables: dict


@dataclass
class Result:
    answers: list  # one per statement; None for REVISE, DELETE and INSERT
    ledger: dict  # extent -> counts
    until: int


def read_query(text):
    parsed = parse(Source(text))
    if parsed.diagnostics:
        raise RejectedError(parsed.diagnostics[0].kind, parsed.diagnostics[0].message)
    return parsed.statements


def run(schema, inputs, queries, until=None, tick_ms=1000, every_tick=None):
    """`every_tick` False leaves out clock ticks at which nothing can happen (the default for long replays)."""
    extents = read_schema(schema, tick_ms)
    asked = [(s, q[1] if isinstance(q, tuple) else 0) for q in queries
             for s in read_query(q[0] if isinstance(q, tuple) else q)]  # fmt: skip
    inputs = {name: inputs.get(name, []) for name in extents}
    if until is None:
        until = last_moment(extents, inputs, [clock for _, clock in asked])
    world = make_world(extents, inputs, asked, until)
    live = [ask(statement, clock, world, tick_ms) for statement, clock in asked]
    if every_tick is None:
        every_tick = until <= 1000 or any(isinstance(s, syntax.QueryStatement) and s.loops for s, _ in asked)
    clocks = range(until + 1) if every_tick else steps(world, inputs, [a for a in live if a], until)
    for clock in clocks:
        for query in live:
            if query and clock >= query.context.asked and query.answer.error is None:
                query.step(clock)
    answers = [query.answer if query else None for query in live]
    return Result(answers, {name: dict(log.ledger) for name, log in world.logs.items()}, until)


def make_world(extents, inputs, asked, until):
    logs, tables = {}, {}
    for name, extent in extents.items():
        if extent.kind == "stored":
            tables[name] = Table(extent, inputs[name])
            continue
        acts = [
            (clock, carry_out(statement, extent)) for statement, clock in asked
            if not isinstance(statement, syntax.QueryStatement | syntax.Explain) and statement.name.text == name
        ]  # fmt: skip
        logs[name] = Log(extent, inputs[name], until, acts)
    return World(extents, logs, tables)


class RunningQuery:
    """A query that is being answered."""

    def __init__(self, context, query, limit):
        self.context = context
        columns = [(c.name, c.type) for c in query.columns]
        self.answer = Answer("stream" if is_stream(query) else "window", columns)
        self._steps = StreamAnswer(query, self.answer, limit) if is_stream(query) else WindowAnswer(query, self.answer)

    def step(self, clock):
        self._steps.step(clock)
        if self.context.error is not None:
            self.answer.error = (clock, self.context.error.kind, self.context.error.message)


def ask(statement, clock, world, tick_ms):
    if isinstance(statement, syntax.Explain):
        raise NotCoveredError("10.1", "EXPLAIN")
    if not isinstance(statement, syntax.QueryStatement):
        if statement.name.text not in world.extents:
            raise RejectedError("name", f"no extent is called {statement.name.text}")
        if statement.name.text in world.tables:
            raise RejectedError("static", "a stored extent is not revised by statements")
        return None
    clauses = statement.clauses
    if clauses.lifetime:
        raise NotCoveredError("11", "LIFETIME needs the motes' energy model")
    context = QueryContext(tick_ms, clock)
    context.acquire = ticks(clauses.acquire_every, tick_ms) if clauses.acquire_every else None
    context.within = ticks(clauses.deliver_within, tick_ms) if clauses.deliver_within else None
    context.run_for = ticks(clauses.run_for, tick_ms) if clauses.run_for else None
    if statement.since:
        context.start, context.from_the_past = start_of(statement.since, clock, tick_ms), True
    elif clock:
        context.start = clock
    limit = context.start + context.run_for if context.run_for is not None else None
    query = QueryBinder(world, context, statement.loops).query(statement.query, limit, top=True)
    if statement.loops and not _has_select_on_top(statement.query):
        raise RejectedError("static", "loops belong to a query with FROM")
    if isinstance(query, OneOff) and (statement.since or context.run_for is not None):
        raise RejectedError("static", "a one-off query is answered once; the clause is for continuous ones")
    if clock and not statement.since and not isinstance(getattr(query, "inner", query), OneOff):
        raise NotCoveredError("1.1", "a continuous query that is accepted after tick 0")
    check_within(statement.query, world, context)
    return RunningQuery(context, query, limit)


def _has_select_on_top(query):
    while isinstance(query, syntax.ConverterQuery):
        query = query.query
    return isinstance(query, syntax.Select)


def start_of(since, clock, tick_ms):
    """10.7: a tick, an RFC 3339 time (UTC if it says nothing), or NOW - n unit."""
    start = since.start
    if isinstance(start, str):
        try:
            moment = datetime.fromisoformat(start)
        except ValueError:
            raise RejectedError("static", f"{start} is no time") from None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        milliseconds = round(moment.timestamp() * 1000)
        if milliseconds % tick_ms:
            raise RejectedError("static", "SINCE is no whole tick")
        start = milliseconds // tick_ms
    elif isinstance(start, syntax.Duration):
        start = clock - ticks(start, tick_ms)
    if start < 0:
        raise RejectedError("static", "SINCE before the first reading; the first possible tick is 0")
    return start


def check_within(query, world, context):
    """11: on a `late append` or `late drop` extent DELIVER WITHIN must be at least `wait`."""
    names = [source.name.text for source in extents_in(query) if not source.history]
    if (context.within or context.acquire) and all(world.extents[name].kind != "sensed" for name in names):
        raise RejectedError("static", "the clause is about sampling, and the query reads no sensed extent")  # 11
    if context.within is None:
        return
    for name in names:
        extent = world.extents[name]
        if extent.kind != "stored" and extent.late != "revise" and context.within < extent.wait:
            raise RejectedError("static", f"{name} waits {extent.wait}, longer than DELIVER WITHIN")


def extents_in(node):
    """Every extent in a FROM of a query, nested ones too."""
    if isinstance(node, syntax.ExtentSource):
        return [node]
    found = []
    for name in getattr(node, "__dataclass_fields__", ()):
        value = getattr(node, name)
        for item in value if isinstance(value, tuple) else (value,):
            found += extents_in(item)
    return found


def steps(world, inputs, queries, until):
    """The clock ticks at which something can happen: deliveries, and where a watermark passes a moment of interest."""
    happening = {0, until, *(q.context.asked for q in queries)}
    moments = set()
    for name, log in world.logs.items():
        happening |= {delivery_of(row) for row in inputs[name]}
        happening |= {clock for r in log.readings for clock, _ in r.archived} | {r.delivered for r in log.readings}
        moments |= {r.arrival for r in log.readings}
        if log.extent.interval:
            moments |= set(range(0, until + 1, log.extent.interval))
    for query in queries:
        for slide in query.context.grids:
            moments |= set(range(0, until + 1, slide))
    moments |= happening
    happening |= moments  # what only needs the clock
    for log in world.logs.values():
        before = log.watermark(-1)
        for clock in range(until + 1):
            mark = log.watermark(clock)
            if any(m in moments for m in range(before + 1, mark + 1)):
                happening.add(clock)
            before = mark
    for query in queries:
        if query.context.within is not None:
            happening |= {m + query.context.within for m in moments}
    return sorted(clock for clock in happening if 0 <= clock <= until)
