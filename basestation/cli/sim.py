"""moteloom sim: a scenario in virtual time: a station and simulated motes, once or under many seeds."""

import argparse
import csv
import json
import math
import re
import sys
from dataclasses import asdict
from pathlib import Path

from basestation.cli.query_arguments import BAD_INPUT, REFUSED, print_diagnostics, print_input_error
from basestation.cli.simulation import Progress, parse_span

HELP = "run a scenario of simulated motes: answers, what they cost, and how sure that is"
EXAMPLE = "moteloom sim run examples/lab54/calm.scenario.toml --for 1h --out lab"


def configure(parser):
    parser.epilog = f"""with --out each seed has a folder there: answers.jsonl, motes.csv, ledger.json,
  trace.txt
exit codes: 0 done, 2 the deployment's schema or a query refused, or not to be
  swept, 3 a file that cannot be taken

example:
  {EXAMPLE}"""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    run_ = verbs.add_parser("run", help="run one; `moteloom sim run --help` says how", description=HELP, epilog=parser.epilog,
                            formatter_class=parser.formatter_class)  # fmt: skip
    run_.add_argument(
        "scenario", metavar="SCENARIO", help="a scenario's TOML file; docs/simulator.md says what is in it"
    )
    run_.add_argument(
        "--for", dest="span", type=parse_span, required=True, metavar="SPAN", help="such as 90s, 30min, 24h, 7d"
    )
    run_.add_argument(
        "--seeds", type=parse_seeds, metavar="A..B", help="such as 7 or 1..30; default: the scenario's own"
    )
    run_.add_argument("--out", type=Path, metavar="DIR", help="where answers, figures and traces are written")
    run_.add_argument(
        "--agenda", action="store_true", help="motes sleep but for the slots of an agenda; else they always listen"
    )
    run_.add_argument(
        "--swept", action="store_true", help="many rounds at once, under an agenda; all is asked at the beginning"
    )
    run_.add_argument(
        "-o", "--output", choices=("table", "json", "csv"), default="table", help="json is one object a line"
    )


def parse_seeds(text):
    found = re.fullmatch(r"(\d{1,18})(?:\.\.(\d{1,18}))?", text)
    if not found or (found[2] and int(found[2]) < int(found[1])):
        raise argparse.ArgumentTypeError(f"`{text}` is neither a seed, such as 7, nor a range of them, such as 1..30")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


def run(args):
    from acquisition.errors import InputError
    from basestation.testbed.testbed import not_vectorisable_error
    from gateway.diagnostics import DiagnosticError
    from gateway.toml import ConfigError

    as_json = args.output == "json"
    try:
        scenario = _scenario(args.scenario)
        trials = _run(scenario, args)
    except ConfigError as faulty:
        print_diagnostics(faulty.diagnostics, as_json)
        return BAD_INPUT
    except not_vectorisable_error() as why:
        print_input_error(InputError("SN515", f"cannot be swept: {why}", args.scenario), as_json)
        return REFUSED
    except OSError as why:  # a disk that is full does not say where
        print_input_error(
            InputError("SN501", f"cannot be written: {why.strerror}", str(why.filename or args.out)), as_json
        )
        return BAD_INPUT
    except InputError as why:
        print_input_error(why, as_json)
        return BAD_INPUT
    except DiagnosticError as refused:
        print_diagnostics(refused.diagnostics, as_json)
        return REFUSED
    _print(scenario, trials, args)
    refused = {name: why for trial in trials for name, why in trial.refused.items()}
    for name, why in refused.items():
        if not as_json:
            print(f"moteloom sim: query `{name}` was refused:", file=sys.stderr)
        print_diagnostics(why.diagnostics, as_json, query=name)
    return REFUSED if refused else 0


def _scenario(path):
    from acquisition.errors import InputError
    from basestation.testbed.testbed import load_scenario

    try:
        return load_scenario(path)
    except OSError as why:
        raise InputError("SN501", f"cannot be read: {why.strerror}", path) from why


def _run(scenario, args):
    from basestation.testbed.trials import TrialRun

    chosen = args.seeds or range(scenario.seed, scenario.seed + 1)
    progress = Progress(args.span * len(chosen))
    trials = []
    try:
        for at, seed in enumerate(chosen):
            folder = args.out / f"seed-{seed}" if args.out else None
            trying = TrialRun(scenario, seed, folder, args.swept, args.agenda)
            trials.append(trying.run(args.span, _line, lambda ms, before=at * args.span: progress.at(before + ms)))
            if folder:
                _write_figures(folder, trials[-1])
    finally:
        progress.end()
    return trials


def _line(told):
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _write_figures(folder, trial):
    with (folder / "motes.csv").open("w", newline="") as file:
        rows = [asdict(mote) for mote in trial.motes]
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    told = {
        "ledger": trial.ledger,
        "readings": trial.accounts,
        "merged, of whom is not told": trial.unattributed,
        "errors": trial.errors,
        "figures": _plain(trial.figures()),
    }
    (folder / "ledger.json").write_text(json.dumps(told, indent=2) + "\n")


def _plain(figures):
    """JSON has no infinity: a lifetime without end is null."""
    return {name: value if math.isfinite(value) else None for name, value in figures.items()}


def _print(scenario, trials, args):
    from basestation.testbed.trials import summarise

    summary = summarise(trials)
    if args.output == "json":
        for trial in trials:
            told = {"type": "run", "scenario": scenario.name, "seed": trial.seed, "figures": _plain(trial.figures()),
                    "ledger": trial.ledger,
                    "decided": [asdict(each) | {"query": name} for name, each in trial.decided]}  # fmt: skip
            print(_line(told))
        told = {name: _plain(asdict(each)) for name, each in summary.items()}
        print(_line({"type": "summary", "scenario": scenario.name, "seeds": len(trials), "figures": told}))
    elif args.output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["scenario", "seed", *summary])
        for trial in trials:
            writer.writerow([scenario.name, trial.seed, *(_number(value) for value in trial.figures().values())])
    else:
        _table(scenario, trials, summary)


def _table(scenario, trials, summary):
    from basestation.explain.text_layout import format_table, wrap_prose

    several = len(trials) > 1
    first, last = trials[0].seed, trials[-1].seed
    print(f"{scenario.name}, {f'seeds {first}..{last}' if several else f'seed {first}'}")
    rows = [("", "mean", "± 95 %", "least", "most")] if several else []
    for name, each in summary.items():
        told = [each.mean, each.margin, each.least, each.most] if several else [each.mean]
        rows.append((name, *map(_figure, told)))
    print("\n".join(f"  {line}".rstrip() for line in format_table(rows, left=1)))
    for trial in trials:
        for name, each in trial.decided:
            if not each.is_switch:
                told = f"{name}, from tick {each.tick:,} on" + (f" (seed {trial.seed})" if several else "")
                print("\n".join(f"  {line}" for line in wrap_prose(f"{told}: {each.reason}")))


def _figure(value):
    """As people read it: whole from a thousand on, else with up to four digits."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "endless"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1_000 else f"{value:.4g}"


def _number(value):
    """As programs read it."""
    if not math.isfinite(value):
        return "" if math.isnan(value) else "inf"
    return f"{value:.0f}" if value == int(value) else f"{value:.10g}"
