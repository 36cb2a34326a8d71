"""`moteloom explain`: shows what a query means and how it runs; with --analyze, beside a simulated run."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from basestation.cli.picture_file import parse_picture, write_picture
from basestation.cli.query_arguments import (
    BAD_INPUT,
    REFUSED,
    add_query,
    print_diagnostics,
    print_input_error,
    query_text,
    read,
)
from basestation.cli.simulation import ProgressBar, parse_span

HELP = "show what a query means, how it runs, and what motes do for it"
EXAMPLE = """moteloom explain --schema examples/roadbridge/schema.sneeql \\
    'SELECT site, temp FROM road WHERE temp < 0'
  moteloom explain --schema examples/roadbridge/schema.sneeql --analyze \\
    --readings road=examples/roadbridge/recording/road.csv 'SELECT AVG(temp) FROM road [NOW]'
  moteloom explain -c examples/lab54/deployment.toml --analyze --for 1h \\
    'SELECT AVG(temp) FROM lab [NOW]'"""
MISUSED = 2
LEAST_MEMORY = 700_000_000
if TYPE_CHECKING:
    from acquisition.extent import Catalog
    from basestation.explain import EngineInput
    from basestation.planner.plan import Correction, Plan
    from basestation.testbed.scenarios import Scenario
    from innet.deployment import Deployment
    from innet.placement.statistics import Statistics

Explanation: TypeAlias = dict[str, Any]
"""A JSON object."""
_READINGS = re.compile(r"(?P<extent>[^=]+)=(?P<file>.+)", re.DOTALL)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = f"""--schema shows meaning, rewrites, operators and memory; -c shows the motes as well:
  what each does and when, messages, energy, lifetime
exit codes: 0 explained, 2 wrong query, or one that these motes cannot run, simulate
  or draw, 3 wrong file, 1 output cannot be written or memory ran out, 130 interrupted

examples:
  {EXAMPLE}"""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--schema", metavar="FILE", help="the declarations of the extents")
    source.add_argument("-c", "--config", metavar="DEPLOYMENT", help="the file of a deployment, which has a schema")
    parser.add_argument(
        "--readings",
        action="append",
        default=[],
        type=_readings,
        metavar="EXTENT=FILE",
        help="recorded readings of an extent, as for replay: for estimates of selectivities, and with --analyze to run the query",
    )
    parser.add_argument(
        "--analyze",
        action="store_true",
        help="run the query: on simulated motes (-c), with what they did beside the prediction; over --readings, with counters",
    )
    parser.add_argument(
        "--world",
        metavar="SCENARIO",
        help="take sensor values and radio from the file of a scenario; default: generated ones",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="the seed of the simulation; default: that of the scenario, or 1"
    )
    parser.add_argument(
        "--for",
        dest="span",
        type=parse_span,
        metavar="SPAN",
        help="how long to simulate, for example 90s or 24h; default: an hour, at least 20 rounds",
    )
    parser.add_argument(
        "--map",
        type=parse_picture,
        metavar="FILE",
        help="draw the routing tree and the energy of each mote, for all queries together; FILE.svg or FILE.png",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="json is one object for each line"
    )
    add_query(parser)


def _readings(text: str) -> tuple[str, str]:
    match = _READINGS.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not EXTENT=FILE")
    return match["extent"], match["file"]


def run(args: argparse.Namespace) -> int:
    """Run the command; the exit code."""
    from acquisition.errors import InputError
    from basestation.planner.binder import bind_text
    from gateway.diagnostics import DiagnosticError
    from gateway.toml import ConfigError

    as_json = args.output == "json"
    if misused := _misused(args):
        print(f"moteloom explain: {misused}", file=sys.stderr)
        return MISUSED
    try:
        catalog, deployment = _source(args)
        around = None
        if args.analyze and deployment is not None:
            deployment, around = _around(args, deployment)
        statistics = _statistics(args, catalog)
        text, name = query_text(args)
        bound = bind_text(text, catalog, name)
        recorded = None
        if args.analyze and args.readings:
            catalog, recorded = _recorded(text, name, catalog, args)
            bound = bind_text(text, catalog, name)
        can, last = True, None
        for explanation, render in _explanations(bound, deployment, catalog, statistics, recorded, around, args):
            print(json.dumps(explanation, ensure_ascii=False) if as_json else render(explanation))
            can, last = can and _can_run(explanation), explanation["type"]
        if args.analyze and deployment is not None and last != "analysis":
            print_input_error(InputError("SN514", "there is nothing to simulate: motes do nothing for this"), as_json)
            can = False
        if deployment is None or args.map is None:
            return 0 if can else REFUSED
        if why := _draw(args.map, bound, deployment, catalog, statistics):
            print_input_error(InputError("SN514", f"there is nothing to draw: {why}"), as_json)
            can = False
    except InputError as error:
        print_input_error(error, as_json)
        return BAD_INPUT
    except ConfigError as error:
        print_diagnostics(error.diagnostics, as_json)
        return BAD_INPUT
    except DiagnosticError as error:
        print_diagnostics(error.diagnostics, as_json)
        return REFUSED
    return 0 if can else REFUSED


def _can_run(explanation: Explanation) -> bool:
    """Whether the motes can run what is explained."""
    motes = explanation.get("motes") if explanation["type"] in ("plan", "together") else explanation
    return motes is None or "refused" not in motes


def _misused(args: argparse.Namespace) -> str | None:
    """The error for an option without the option that it depends on, or None."""
    if args.config is None and args.map:
        return "--map needs the motes of a deployment (-c)"
    if args.config is None and args.analyze and not args.readings:
        return "--analyze needs the motes of a deployment (-c) or recorded --readings"
    if args.config is None and args.readings and not args.analyze:
        return "--readings need the motes of a deployment (-c) or --analyze"
    simulated = args.analyze and args.config is not None
    if not simulated and (args.world, args.seed, args.span) != (None, None, None):
        return "--world, --seed and --for need a simulation (-c and --analyze)"
    return None


def _explanations(
    bound: "Sequence[Plan | Correction]",
    deployment: "Deployment | None",
    catalog: "Catalog",
    statistics: "Statistics",
    recorded: "EngineInput | None",
    around: "Scenario | None",
    args: argparse.Namespace,
) -> Iterator[tuple[Explanation, Callable[[Any], str]]]:
    """Each explanation with the function that renders it as text."""
    from basestation.explain import explain_statement, explain_workload, render_statement, render_workload

    for number, plan in enumerate(bound, 1):
        yield explain_statement(plan, number, deployment, catalog, statistics, recorded), render_statement
    if deployment is not None:
        workload = explain_workload(bound, deployment, catalog, statistics)
        if workload is not None:
            yield workload, render_workload
    if around is not None:
        from basestation.testbed.analysis import format_analysis

        analysis = _analysis(bound, around, catalog, statistics, args)
        if analysis is not None:
            yield analysis, format_analysis


def _draw(
    path: Path,
    bound: "Sequence[Plan | Correction]",
    deployment: "Deployment",
    catalog: "Catalog",
    statistics: "Statistics",
) -> str | None:
    """Draw the motes for all queries together; the reason if there is nothing to draw, else None."""
    from basestation.explain import draw_map, explain_motes, plan_motes

    plans = _of_plans(bound)
    motes = explain_motes(plans, plan_motes(plans, deployment, catalog, statistics), deployment)
    if motes is None:
        return "motes do nothing for this"
    if why := motes.get("refused") or motes.get("idle"):
        return str(why)
    write_picture(path, draw_map(motes, deployment))
    return None


def _of_plans(bound: "Sequence[Plan | Correction]") -> "list[Plan]":
    """The plans, without corrections."""
    from basestation.planner.plan import Plan

    return [plan for plan in bound if isinstance(plan, Plan)]


def _around(args: argparse.Namespace, deployment: "Deployment") -> "tuple[Deployment, Scenario]":
    """The deployment as the simulated motes find it, and the scenario to simulate."""
    from acquisition.errors import InputError
    from basestation.testbed.scenarios import deployment_of, scenario_around

    try:
        around = scenario_around(deployment, args.world)
        return deployment_of(around), around
    except OSError as why:
        raise InputError("SN501", f"cannot be read: {why.strerror}", args.world) from why


def _analysis(
    bound: "Sequence[Plan | Correction]",
    around: "Scenario",
    catalog: "Catalog",
    statistics: "Statistics",
    args: argparse.Namespace,
) -> Explanation | None:
    """The analysis of all queries together; None if motes do nothing for them."""
    from basestation.testbed.analysis import analyse

    progress = ProgressBar(1.0)
    try:
        return analyse(_of_plans(bound), around, catalog, args.seed, args.span, progress.show, statistics)
    finally:
        progress.end()


def _source(args: argparse.Namespace) -> "tuple[Catalog, Deployment | None]":
    """The catalog of the schema or deployment, and the deployment if there is one."""
    from acquisition.errors import InputError
    from basestation.planner.catalog import read_schema
    from basestation.planner.deployed_catalog import read_deployed_catalog
    from innet.deployment.toml_reader import read_deployment

    if args.config is None:
        return read_schema(read(args.schema), args.schema), None
    try:
        deployment = read_deployment(args.config)
    except OSError as why:
        raise InputError("SN501", f"cannot be read: {why.strerror}", args.config) from why
    return read_deployed_catalog(deployment), deployment


def _recorded(
    text: str, name: str | None, catalog: "Catalog", args: argparse.Namespace
) -> "tuple[Catalog, EngineInput]":
    """The recorded inputs of --readings, and the catalog with the recorded sites for `at sites all`."""
    from basestation.explain import EngineInput
    from basestation.replay.inputs import read_recording
    from basestation.replay.statements import read_statements

    folder = Path(args.schema if args.config is None else args.config).parent
    found = read_recording(catalog, dict(args.readings), read_statements([text], catalog, name), folder)
    return found.catalog, EngineInput(found.batches, found.versions)


def _statistics(args: argparse.Namespace, catalog: "Catalog") -> "Statistics":
    """Statistics of the recorded readings; guesses without readings."""
    from acquisition.errors import InputError
    from acquisition.extent import ExtentKind
    from acquisition.sources.batch_conversion import batch_of
    from acquisition.sources.python_values import read_file
    from basestation.planner.recorded_statistics import collect_statistics
    from innet.placement.statistics import GUESS

    if args.config is None:
        return GUESS
    batches: dict[str, Any] = {}
    for name, file in args.readings:
        extent = catalog.find(name)
        if extent is None or extent.kind is not ExtentKind.SENSED:
            raise InputError("SN510", f"there is no sensed extent `{name}`", file)
        batches[name] = batch_of(read_file(file), extent, catalog.tick_ms)
    return collect_statistics(batches, catalog) if batches else GUESS
