"""`moteloom sim`: simulates a scenario in virtual time, a station and its motes, once or under many seeds."""

import argparse
import csv
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.cli.picture_file import open_picture_file, parse_picture, write_picture
from basestation.cli.query_arguments import BAD_INPUT, MOST_ERRORS, REFUSED, print_diagnostics, print_input_error
from basestation.cli.simulation import ProgressBar, parse_span
from gateway.cli.terminal import printable

if TYPE_CHECKING:
    from basestation.testbed.scenarios import Scenario
    from basestation.testbed.trials import Summary, Trial
    from gateway.diagnostics import DiagnosticError

HELP = "simulate the motes and the station of a scenario: answers, their cost, and confidence intervals"
EXAMPLE = """moteloom sim run examples/lab54/calm.scenario.toml --for 1h --out lab
  moteloom sim run examples/lab54/calm.scenario.toml --for 1h --seeds 1..8 --jobs 2
  moteloom sim run examples/lab54/day.scenario.toml --for 24h --swept --plot day.svg"""

LEAST_MEMORY = 700_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""--out writes a folder for each seed: answers.jsonl, motes.csv, ledger.json, trace.txt;
files of a run that did not end have the suffix .part. The scenario is checked before anything runs.

exit codes: 0 done, 2 the deployment's schema or a query was refused, or the
  scenario cannot be swept, 3 a file cannot be read or written, or no mote reaches
  a gateway, 1 output cannot be written or memory ran out, 130 interrupted

example:
  {EXAMPLE}"""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    run_ = verbs.add_parser("run", help="run a scenario; `moteloom sim run --help` lists the options", description=HELP,
                            epilog=parser.epilog, formatter_class=parser.formatter_class)  # fmt: skip
    run_.add_argument("scenario", metavar="SCENARIO", help="the scenario's TOML file; docs/simulator.md lists its keys")
    run_.add_argument(
        "--for", dest="span", type=parse_span, required=True, metavar="SPAN",
        help="the simulated time, such as 90s, 30min, 24h, 7d",
    )  # fmt: skip
    run_.add_argument("--seeds", type=parse_seeds, metavar="A..B", help="such as 7 or 1..30; default: the scenario's")
    run_.add_argument("--jobs", type=parse_jobs, default=1, metavar="N", help="so many seeds at a time; default: 1")
    run_.add_argument("--out", type=Path, metavar="DIR", help="write answers, figures and traces to this folder")
    run_.add_argument("--plot", type=parse_picture, metavar="FILE",
                      help="draw coverage, energy and answers over time, a line for each seed; FILE.svg or FILE.png")  # fmt: skip
    modes = run_.add_mutually_exclusive_group()
    modes.add_argument(
        "--always-on",
        action="store_true",
        help="motes always listen; else they sleep outside of the slots of an agenda, as `moteloom explain` assumes",
    )
    modes.add_argument(
        "--swept", action="store_true",
        help="simulate many rounds at once, under an agenda; all queries are submitted at the beginning",
    )  # fmt: skip
    run_.add_argument(
        "-o", "--output", choices=("table", "json", "csv"), default="table", help="json prints one object a line"
    )


def parse_seeds(text: str) -> range:
    """The seeds of `7` or `1..30`. Raises ArgumentTypeError for anything else."""
    found = re.fullmatch(r"(\d{1,18})(?:\.\.(\d{1,18}))?", text)
    if not found or (found[2] and int(found[2]) < int(found[1])):
        raise argparse.ArgumentTypeError(f"expected a seed such as 7, or a range such as 1..30, found `{text}`")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


def parse_jobs(text: str) -> int:
    """A number of processes. Raises ArgumentTypeError for anything else."""
    if not (text.isdecimal() and 1 <= int(text[:6]) <= 1_024):
        raise argparse.ArgumentTypeError(f"expected a number of processes from 1 to 1024, found `{text[:20]}`")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from acquisition.errors import InputError
    from basestation.testbed.scenarios import NotVectorisableError
    from gateway.diagnostics import DiagnosticError
    from gateway.toml import ConfigError

    as_json = args.output == "json"
    try:
        scenario = _read_scenario(args.scenario)
        if wrong := _check(scenario, args):
            _print_refused(wrong, as_json)
            return REFUSED
        open_picture_file(args.plot)
        trials = _run(scenario, args)
        if args.plot is not None:
            _draw(args.plot, scenario, trials)
    except KeyboardInterrupt:
        if args.out:
            print(f"moteloom sim: interrupted; unfinished files under {args.out} end in .part", file=sys.stderr)
        raise
    except ConfigError as error:
        print_diagnostics(error.diagnostics, as_json)
        return BAD_INPUT
    except NotVectorisableError as error:
        print_input_error(InputError("SN515", f"cannot be swept: {error}", args.scenario), as_json)
        return REFUSED
    except OSError as error:  # if a disk is full, the error has no file name
        file, help = str(error.filename or args.out), "unfinished files end in .part"
        print_input_error(InputError("SN501", f"cannot be written: {error.strerror}", file, help=help), as_json)
        return BAD_INPUT
    except InputError as error:
        print_input_error(error, as_json)
        return BAD_INPUT
    except DiagnosticError as error:
        print_diagnostics(error.diagnostics, as_json)
        return REFUSED
    _print(scenario, trials, args)
    refused = {name: why for trial in trials for name, why in trial.refused.items()}
    _print_refused(refused, as_json)
    return REFUSED if refused else 0


def _read_scenario(path: str) -> "Scenario":
    from acquisition.errors import InputError
    from basestation.testbed.scenarios import read_scenario

    try:
        return read_scenario(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError("SN501", f"cannot be read: {why}", path) from error


def _check(scenario: "Scenario", args: argparse.Namespace) -> "dict[str, DiagnosticError]":
    """The errors of queries that cannot run; says on standard error which motes cannot be reached."""
    from basestation.explain.motes import numbers
    from basestation.testbed.scenario_checks import check_scenario, unreached_motes

    wrong = check_scenario(scenario, args.always_on)
    if not wrong and (unreached := unreached_motes(scenario)):
        print(f"moteloom sim: no route to a gateway from {numbers(unreached)}; their readings cannot arrive",
              file=sys.stderr)  # fmt: skip
    return wrong


def _draw(path: Path, scenario: "Scenario", trials: "Sequence[Trial]") -> None:
    """Draw the chart of all trials."""
    from basestation.testbed.timeline_chart import draw_timelines

    seeds = f"seed {trials[0].seed}" if len(trials) == 1 else f"seeds {trials[0].seed} to {trials[-1].seed}"
    write_picture(path, draw_timelines(f"{scenario.name}, {seeds}", [trial.timeline for trial in trials]))


def _print_refused(refused: "Mapping[str, DiagnosticError]", as_json: bool) -> None:
    """Print the errors of all queries as JSON, or of the first as text."""
    for number, (name, why) in enumerate(refused.items()):
        if number == MOST_ERRORS and not as_json:
            print(f"{len(refused) - number:,} more queries were refused; `-o json` prints all", file=sys.stderr)
            break
        if not as_json:
            print(f"moteloom sim: query `{printable(name)}` was refused:", file=sys.stderr)
        print_diagnostics(why.diagnostics, as_json, query=name)


def _run(scenario: "Scenario", args: argparse.Namespace) -> "list[Trial]":
    from basestation.testbed.trial_pool import TrialOrder, run_trials

    seeds = args.seeds or range(scenario.seed, scenario.seed + 1)
    progress = ProgressBar(args.span * len(seeds))
    order = TrialOrder(scenario, args.span, args.out, args.swept, args.always_on)
    trials = run_trials(order, seeds, args.jobs, progress.show)
    try:
        return list(trials)
    finally:
        trials.close()
        progress.end()


def _print(scenario: "Scenario", trials: "Sequence[Trial]", args: argparse.Namespace) -> None:
    from basestation.testbed.trials import finite, format_line, summarise

    summary = summarise(trials)
    if args.output == "json":
        for trial in trials:
            print(format_line(trial.as_json(scenario.name)))
        figures = {name: finite(asdict(each)) for name, each in summary.items()}
        print(format_line({"type": "summary", "scenario": scenario.name, "seeds": len(trials), "figures": figures}))
    elif args.output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["scenario", "seed", *summary])
        for trial in trials:
            writer.writerow([scenario.name, trial.seed, *(_plain(value) for value in trial.figures().values())])
    else:
        _print_table(scenario, trials, summary, args.span)


def _print_table(
    scenario: "Scenario", trials: "Sequence[Trial]", summary: "Mapping[str, Summary]", length_ms: int
) -> None:
    from basestation.explain.text_layout import format_table, wrap_prose

    several = len(trials) > 1
    first, last = trials[0].seed, trials[-1].seed
    print(f"{scenario.name}, {f'seeds {first}..{last}' if several else f'seed {first}'}")
    rows: list[tuple[str, ...]] = [("", "mean", "± 95 %", "least", "most")] if several else []
    for name, each in summary.items():
        figures = [each.mean, each.margin, each.least, each.most] if several else [each.mean]
        rows.append((name, *map(_readable, figures)))
    print("\n".join(f"  {line}".rstrip() for line in format_table(rows, left=1)))
    for query in scenario.queries:
        if query.at_ms >= length_ms:
            late = f"{query.name}: never submitted, since `at` is after the end; a longer --for includes it"
            print("\n".join(f"  {line}" for line in wrap_prose(late)))
    for note in dict.fromkeys(note for trial in trials for note in trial.notes()):
        print("\n".join(f"  {line}" for line in wrap_prose(note)))
    for trial in trials:
        for name, decided in trial.decided:
            if not decided.is_switch:
                seed = f" (seed {trial.seed})" if several else ""
                text = f"{name}, from tick {decided.tick:,} on{seed}: {decided.reason}"
                print("\n".join(f"  {line}" for line in wrap_prose(text)))


def _readable(value: float) -> str:
    """A figure for people: whole from a thousand on, else with up to four digits."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "endless"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1_000 else f"{value:.4g}"


def _plain(value: float) -> str:
    """A figure for programs."""
    if not math.isfinite(value):
        return "" if math.isnan(value) else "inf"
    return f"{value:.0f}" if value == int(value) else f"{value:.10g}"
