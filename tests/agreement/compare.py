"""agree: one case through the engine and through the oracle, and the first thing that they do not say alike.

    outcome = agree(schema, {"road": [{"_tick": 0, "site": 1, "temp": 7}]}, ["SELECT temp FROM road"])
    assert outcome.verdict == "agree", outcome.report

Both are driven through every clock tick, so that the clock ticks of updates can be compared; then the engine once more
through those alone in which something is delivered, as a replay does it, which must not change the answers.
"""

import signal
import traceback
from contextlib import contextmanager
from dataclasses import dataclass

from acquisition.errors import InputError
from basestation.replay.driver import NotExecutableError, Replay
from basestation.replay.inputs import read_recording
from basestation.replay.result import Result
from basestation.replay.statements import read_catalog, read_statements
from basestation.updates.update import QueryFailure
from gateway.diagnostics import DiagnosticError
from tests.agreement.history import difference, of_oracle, of_replay
from tests.agreement.report import golden
from tests.oracles.errors import NotCoveredError
from tests.oracles.errors import RejectedError as OracleRefused
from tests.oracles.generate import says_something
from tests.oracles.recompute import run

VERDICTS = ("agree", "order", "refused", "not yet", "not covered", "too slow", "disagree")
"""`order`: alike but for the order inside one window, which 6.4 forgives. `refused`: by both."""


@dataclass(frozen=True)
class Outcome:
    verdict: str
    what: str = ""  # what differs, what is not covered, what cannot be executed yet
    report: str = ""  # of a disagreement: all that is needed to see it again
    non_empty: bool = False  # whether the oracle's answer to the first statement has rows

    def __bool__(self):
        return self.verdict in ("agree", "order", "refused")


@dataclass
class Told:
    """Return the updates of a replay, each list with its clock tick."""

    result: Result
    clocks: dict  # query -> the clock tick of each window, tuple and mark that it said
    plans: dict  # query -> its plan


def replayed(schema, inputs, queries, until=None, every_tick=False):
    """The engine's side. A statement without a clock tick is given at 0, as the oracle has it."""
    texts = [q if isinstance(q, tuple) else (q, 0) for q in queries]
    catalog = read_catalog(schema)
    statements = read_statements(texts, catalog)
    recording = read_recording(catalog, inputs, statements)
    if recording.catalog is not catalog:  # `at sites all` are the known motes
        statements = read_statements(texts, recording.catalog)
    replay = Replay(recording, statements, until, every_tick)
    result = Result(replay.queries)
    clocks = {query.number: [] for query in replay.queries}
    for updates in replay.updates():
        result.add(updates)
        for update in updates:
            if not isinstance(update, QueryFailure):
                clocks[update.query] += [replay.clock] * (1 if isinstance(update, QueryFailure) else len(update))
    result.finish(replay.until, replay.ledger())
    return Told(result, clocks, {given.number: given.bound for given in statements if given.is_query})


class TooSlow(BaseException):
    """The processor time of a case is over; no `except Exception` on the way may take it for a failure."""


@contextmanager
def seconds_of_processor(limit):
    """Raises TooSlow when this process has computed for so long; None for no limit. Waiting for others does not count."""

    def stop(*_):
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        # Raised in a callback of the garbage collector it is lost, so it comes again.
        signal.setitimer(signal.ITIMER_VIRTUAL, limit or 0, 1)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def agree(schema, inputs, queries, until=None, seconds=None):
    """The Outcome of a case: `inputs` and `queries` as the oracle's `run` takes them.

    The oracle forms every combination of every product, which for a few cases takes for ever: `seconds` ends those.
    """
    try:
        with seconds_of_processor(seconds):
            return _agree(schema, inputs, queries, until)
    except TooSlow:
        return Outcome("too slow")


def _agree(schema, inputs, queries, until):
    return judged(
        lambda: run(schema, inputs, queries, until, every_tick=True),
        lambda every_tick: replayed(schema, inputs, queries, until, every_tick),
        lambda what: golden(schema, inputs, queries, until, what),
    )


def judged(oracle, engine, report, clocks=True):
    """The Outcome of what the oracle's run gives and what the engine tells with every clock tick ended, and without.

    Without `clocks`, when an update is given is not compared, and the engine ends only the clock ticks that it must.
    """

    def disagree(what):
        return Outcome("disagree", what, report(what))

    try:
        expected = oracle()
    except NotCoveredError as why:
        return Outcome("not covered", str(why))
    except OracleRefused as why:
        expected = why
    try:
        sparse = engine(False)
        got = engine(True) if clocks else None
    except NotExecutableError as why:
        return Outcome("not yet", why.diagnostics[0].message)
    except (DiagnosticError, InputError) as why:
        if isinstance(expected, OracleRefused):
            return Outcome("refused", f"{expected} | {why}")
        return disagree(f"the engine refuses: {why}")
    except Exception:
        return disagree(f"the engine fails\n{traceback.format_exc()}")
    if isinstance(expected, OracleRefused):
        return disagree(f"the oracle refuses: {expected}")
    return _compared(expected, [(got, True), (sparse, False)] if clocks else [(sparse, False)], disagree)


def _compared(expected, replays, disagree):
    got = replays[0][0]
    if expected.until != got.result.until:
        return disagree(f"the end\nexpected {expected.until}\ngot      {got.result.until}")
    forgiven = False
    for number, answer in enumerate(expected.answers, 1):
        if answer is None:
            continue  # a correction
        for told, clocks in replays:
            want = of_oracle(answer, clocks)
            have = of_replay(told.result, told.clocks[number], number, clocks)
            what = difference(want, have)
            if what is None:
                continue
            if answer.kind != "stream" or want.without_order() != have.without_order() or want.marks != have.marks:
                way = "" if clocks else ", without the clock ticks in which nothing is delivered"
                return disagree(f"query {number}{way}: {what}")
            forgiven = True
    what = _ledgers(expected.ledger, got.result.ledger)
    if what:
        return disagree(what)
    return Outcome(
        "order" if forgiven else "agree",
        non_empty=any(says_something(a) for a in expected.answers[:1] if a is not None),
    )


def _ledgers(expected, got):
    for name in sorted({*expected, *got}):
        one, other = ({k: v for k, v in ledger.get(name, {}).items() if v} for ledger in (expected, got))
        if one != other:
            return f"the ledger of {name}\nexpected {dict(sorted(one.items()))}\ngot      {dict(sorted(other.items()))}"
    return None
