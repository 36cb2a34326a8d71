"""moteloom explain: what a query means and how it would be run, without running it; or run by simulated motes, beside it."""

import argparse
import json
import re
import sys

from basestation.cli.query_arguments import (
    BAD_INPUT,
    REFUSED,
    add_query,
    print_diagnostics,
    print_input_error,
    query_text,
    read,
)
from basestation.cli.simulation import Progress, parse_span

HELP = "show what a query means, how it is run, and what motes would do for it"
EXAMPLE = """moteloom explain --schema examples/roadbridge/schema.sneeql \\
    'SELECT site, temp FROM road WHERE temp < 0'
  moteloom explain -c examples/lab54/deployment.toml --analyze --for 1h \\
    'SELECT AVG(temp) FROM lab [NOW]'"""
MISUSED = 2
_READINGS = re.compile(r"(?P<extent>[^=]+)=(?P<file>.+)", re.DOTALL)


def configure(parser):
    parser.epilog = f"""--schema tells of meaning, rewrites, operators and memory; -c of motes as well:
  what each does and when, messages, energy, lifetime
exit codes: 0 explained, 2 refused, or not to be run, simulated or drawn on those
  motes, 3 a file that cannot be taken

examples:
  {EXAMPLE}"""
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--schema", metavar="FILE", help="the extents that can be asked")
    asked.add_argument("-c", "--config", metavar="DEPLOYMENT", help="a deployment's file, in the place of a schema")
    parser.add_argument(
        "--readings",
        action="append",
        default=[],
        type=_readings,
        metavar="EXTENT=FILE",
        help="readings of an extent, as replay takes them, in which to count what passes and what groups there are",
    )
    parser.add_argument(
        "--analyze",
        action="store_true",
        help="run it on simulated motes, and show what they did beside what was predicted",
    )
    parser.add_argument(
        "--world",
        metavar="SCENARIO",
        help="simulate in the world and radio of a scenario's file; else a world is made up",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of all chance; default: the scenario's own, or 1")
    parser.add_argument(
        "--for",
        dest="span",
        type=parse_span,
        metavar="SPAN",
        help="such as 90s, 24h; default: an hour, at least 20 rounds",
    )
    parser.add_argument(
        "--map", metavar="FILE", help="draw who sends to whom and what each uses, all queries together (SVG)"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="json is one object a line")
    add_query(parser)


def _readings(text):
    match = _READINGS.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not EXTENT=FILE")
    return match["extent"], match["file"]


def run(args):
    from acquisition.errors import InputError
    from basestation.language.diagnostics import Diagnostic, DiagnosticError
    from basestation.planner.binder import bind_text
    from gateway.toml import ConfigError

    as_json = args.output == "json"
    if misused := _misused(args):
        print(f"moteloom explain: {misused}", file=sys.stderr)
        return MISUSED
    try:
        catalog, deployment = _asked(args)
        deployment, around = _around(args, deployment) if args.analyze else (deployment, None)
        statistics = _statistics(args, catalog)
        text, name = query_text(args)
        bound = bind_text(text, catalog, name)
        can = True
        for told, text in _told(bound, deployment, catalog, statistics, around, args):
            print(json.dumps(told, ensure_ascii=False) if as_json else text(told))
            can = can and _can(told)
        if args.analyze and not told["type"] == "analysis":
            print_input_error(InputError("SN514", "there is nothing to simulate: motes do nothing for this"), as_json)
            can = False
        if args.map is not None and (why := _draw(args.map, bound, deployment, catalog, statistics)):
            print_input_error(InputError("SN514", f"there is nothing to draw: {why}"), as_json)
            can = False
    except InputError as error:
        print_input_error(error, as_json)
        return BAD_INPUT
    except ConfigError as faulty:
        print_diagnostics(map(Diagnostic.of, faulty.faults), as_json)
        return BAD_INPUT
    except DiagnosticError as refused:
        print_diagnostics(refused.diagnostics, as_json)
        return REFUSED
    return 0 if can else REFUSED


def _can(told):
    """Whether what was told of can be run where it was asked for."""
    motes = told.get("motes") if told["type"] in ("plan", "together") else told
    return motes is None or "refused" not in motes


def _misused(args):
    """What is asked of no deployment, or of no simulation."""
    if args.config is None and (args.analyze or args.readings or args.map):
        return "--analyze, --readings and --map are about the motes of a deployment (-c)"
    if not args.analyze and (args.world, args.seed, args.span) != (None, None, None):
        return "--world, --seed and --for are about a simulation (--analyze)"
    return None


def _told(bound, deployment, catalog, statistics, around, args):
    """What there is to say, each with how it is said as text."""
    from basestation.explain import explain_statement, explain_workload, render_statement, render_workload

    for number, plan in enumerate(bound, 1):
        yield explain_statement(plan, number, deployment, catalog, statistics), render_statement
    if deployment is not None:
        together = explain_workload(bound, deployment, catalog, statistics)
        if together is not None:
            yield together, render_workload
    if around is not None:
        from basestation.testbed.analysis import format_analysis

        analysis = _analysis(bound, around, catalog, statistics, args)
        if analysis is not None:
            yield analysis, format_analysis


def _draw(path, bound, deployment, catalog, statistics):
    """Of all queries together; where motes do nothing for them, or cannot, why there is nothing to draw."""
    from acquisition.errors import InputError
    from basestation.explain import draw_map, explain_motes

    motes = explain_motes(_of_plans(bound), deployment, catalog, statistics)
    if motes is None:
        return "motes do nothing for this"
    if why := motes.get("refused") or motes.get("idle"):
        return why
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(draw_map(motes, deployment))
    except OSError as why:
        raise InputError("SN501", f"cannot be written: {why.strerror}", path) from why
    return None


def _of_plans(bound):
    """Those that are no corrections."""
    from basestation.planner.plan import Plan

    return [plan for plan in bound if isinstance(plan, Plan)]


def _around(args, deployment):
    """The world in which motes are to be simulated, behind the deployment as they find it there."""
    from acquisition.errors import InputError
    from basestation.testbed.testbed import deployment_of, scenario_around

    try:
        around = scenario_around(deployment, args.world)
        return deployment_of(around), around
    except OSError as why:
        raise InputError("SN501", f"cannot be read: {why.strerror}", args.world) from why


def _analysis(bound, around, catalog, statistics, args):
    """Of all queries together."""
    from basestation.testbed.analysis import analyse

    progress = Progress(1.0)
    try:
        return analyse(_of_plans(bound), around, catalog, args.seed, args.span, progress.at, statistics)
    finally:
        progress.end()


def _asked(args):
    """The Catalog of what can be asked, and the Deployment that is to sense it; None where only a schema is given."""
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


def _statistics(args, catalog):
    """Of the readings that are given; without any, guesses."""
    from acquisition.errors import InputError
    from acquisition.extent import ExtentKind
    from acquisition.sources.batch_conversion import batch_of
    from acquisition.sources.python_values import read_file
    from basestation.planner.recorded_statistics import collect_statistics
    from innet.placement.statistics import GUESS

    batches = {}
    for name, file in args.readings:
        extent = catalog.find(name)
        if extent is None or extent.kind is not ExtentKind.SENSED:
            raise InputError("SN510", f"there is no sensed extent `{name}`", file)
        batches[name] = batch_of(read_file(file), extent, catalog.tick_ms)
    return collect_statistics(batches, catalog) if batches else GUESS
