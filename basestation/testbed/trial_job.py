"""The process of a trial that a client of a station ordered: one query on simulated motes, or over rows.

python -m basestation.testbed.trial_job < order        # `basestation.jobs.process`
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TextIO

from basestation.jobs.process import JobReport, Order, run_jobs
from basestation.replay.driver import Replay
from basestation.replay.inputs import read_recording
from basestation.replay.json_output import JsonOutput
from basestation.replay.statements import read_statements
from basestation.replay.tick_times import TickTimes, is_dated
from basestation.testbed.scenario_checks import check_scenario
from basestation.testbed.scenarios import scenario_around
from basestation.testbed.trials import TrialRun, format_line
from basestation.updates.update import QueryFailure
from gateway.diagnostics import Diagnostic, DiagnosticError
from simulator.scenario import ScenarioQuery

NAME = "trial"
"""The name of the query among the figures."""


def carry_out(order: Order, results: TextIO, report: JobReport) -> None:
    """Carry out an order of `basestation.station.job_control`."""
    if order.body["rows"] is None:
        _simulate(order.body, results, report)
    else:
        _replay(order.body, results, report)


def _simulate(order: Mapping[str, Any], results: TextIO, report: JobReport) -> None:
    """The answers on simulated motes, and a line with the figures of the run."""
    around = scenario_around(order["deployment"], order["scenario"])
    scenario = replace(around, queries=(ScenarioQuery(NAME, order["text"], 0, None),))
    wrong = check_scenario(scenario, order["is_always_on"])
    if wrong:
        raise wrong[NAME]
    run = TrialRun(scenario, order["seed"], always_on=order["is_always_on"], answers=results)
    trial = run.run(order["ms"], lambda ms: report(ms / order["ms"]))
    if NAME in trial.refused:
        raise trial.refused[NAME]
    results.write(format_line(trial.as_json(scenario.name)) + "\n")


def _replay(order: Mapping[str, Any], results: TextIO, report: JobReport) -> None:
    """The answers over rows, as `moteloom replay -o json` gives them."""
    catalog = order["catalog"]
    statements = read_statements([order["text"]], catalog)
    recording = read_recording(catalog, order["rows"], statements, order["folder"])
    if recording.catalog is not catalog:
        statements = read_statements([order["text"]], recording.catalog)
    recording.check()
    last = recording.end()
    run = Replay(recording, statements, last, begin=recording.begin(), ask=last)
    times = TickTimes(catalog.tick_ms, is_local=False) if is_dated(run.begin, catalog.tick_ms) else None
    output = JsonOutput(run.queries, times)
    results.write(output.begin())
    for updates in run.updates():
        for update in updates:
            if isinstance(update, QueryFailure):
                [given] = statements
                raise DiagnosticError(
                    [Diagnostic(update.code, update.message, given.source, given.bound.statement.span)]
                )
        results.write(output.updates(updates))
        report((run.clock - run.begin + 1) / (run.until - run.begin + 1))
    results.write(output.end(run.until, run.ledger()))


if __name__ == "__main__":
    run_jobs(carry_out)
