"""Runs a case of a golden file with the engine and with the oracle.

As in `moteloom replay`, queries begin before the clock starts and corrections run at the end. For a case with only corrections,
the answer shows their effect on each corrected extent: `SELECT *`, or the history at the end if only that changes.
"""

import re
from dataclasses import dataclass

from acquisition.extent import LatePolicy
from basestation.language import syntax
from basestation.language.parser import parse
from basestation.planner.catalog import read_schema
from basestation.replay.driver import NotExecutableError
from basestation.replay.inputs import read_recording
from gateway.diagnostics import DiagnosticError
from gateway.source import Source
from tests.agreement.compare import judged, replayed
from tests.agreement.report import golden as report
from tests.golden.answer_lines import ledger_lines, lines_of
from tests.golden.recordings import for_engine, for_oracle
from tests.oracles.recompute import run

EVERY_TICK = 200
CONFIRMED = ("agree", "order", "refused")


@dataclass
class CaseStatements:
    """The statements of a case, and the queries before them that show the effect of corrections."""

    statements: list  # (text, clock tick or None)
    shown: tuple = ()

    def heads(self):
        """The heading of each statement's lines."""
        alone = len(self.statements) == 1
        for number, (text, _) in enumerate(self.statements, 1):
            if number <= len(self.shown):
                yield number, [f"of {text}"]
            else:
                yield number, [] if alone else [f"of statement {number - len(self.shown)}"]


def case_statements(golden, case):
    """The statements to run for a case."""
    catalog = read_schema(golden.schema)
    end = read_recording(catalog, for_engine(golden)).end()
    parsed = parse(Source(case.text)).statements
    found = [(_text(case.text, each.span), None if isinstance(each, _QUERY) else end, each) for each in parsed]
    names = dict.fromkeys(each.name.text for _, clock, each in found if clock is not None)
    shown = []
    if all(clock is not None for _, clock, _ in found):
        for name in names:
            live = catalog.find(name).late is LatePolicy.REVISE
            shown.append((f"SELECT * FROM {name}", None) if live else (f"SELECT * FROM {name}.HISTORY", end))
    return CaseStatements([*shown, *((text, clock) for text, clock, _ in found)], tuple(text for text, _ in shown))


_QUERY = syntax.QueryStatement | syntax.Explain


def _text(text, span):
    return text[span.start : span.end]


def run_engine(golden, asked, every_tick=False):
    """The engine's result."""
    return replayed(golden.schema, for_engine(golden), asked.statements, every_tick=every_tick)


def answer_of(golden, case):
    """The section `answer` of a case; `later: …` if this version cannot run it, `refused: …` for an error."""
    asked = case_statements(golden, case)
    try:
        outcome = run_engine(golden, asked)
    except NotExecutableError as why:
        return "later: " + "; ".join(dict.fromkeys(_reason(d) for d in why.diagnostics))
    except DiagnosticError as why:
        return "\n".join(f"refused: {d.code} {d.message}" for d in why.diagnostics)
    lines = []
    for number, head in asked.heads():
        if number in outcome.plans:
            lines += head + lines_of(outcome.result, number, outcome.plans[number])
    usual = set(golden.ledger())
    lines += [line for line in ledger_lines(outcome.result.ledger) if line not in usual]
    return "\n".join(lines) or "nothing"


def _reason(diagnostic):
    return re.sub(" cannot be executed yet$", "", diagnostic.message)


def ledger_of(golden):
    """The section `ledger`: the last clock tick of the file and its deliveries by fate."""
    outcome = replayed(golden.schema, for_engine(golden), [])
    return "\n".join([f"until {outcome.result.until}", *ledger_lines(outcome.result.ledger)])


def compare_with_oracle(golden, case):
    """Compare engine and oracle on a case; each has its own reader of the file.

    Compares the clock ticks of updates too, unless the file is too long for the oracle to evaluate every tick.
    """
    asked = case_statements(golden, case)
    schema, inputs = for_oracle(golden)
    short = golden.until() <= EVERY_TICK
    queries = [(text, clock or 0) for text, clock in asked.statements]
    return judged(
        lambda: run(schema, inputs, queries, every_tick=short),
        lambda every_tick: run_engine(golden, asked, every_tick),
        lambda what: report(schema, inputs, queries, what=what),
        clocks=short,
    )


def ordered_rows(golden, case):
    """The rows of a one-off query in order, from the engine and from the oracle."""
    asked = case_statements(golden, case)
    schema, inputs = for_oracle(golden)
    try:
        outcome = run_engine(golden, asked)
    except NotExecutableError:
        return [], []
    answer = run(schema, inputs, [(text, clock or 0) for text, clock in asked.statements]).answers[0]
    return outcome.result.windows()[0].added, list(answer.windows[0].added)
