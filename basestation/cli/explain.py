"""moteloom explain: what a query means and how it would be run, without running it."""

import json

from basestation.cli.asking import BAD_INPUT, REFUSED, add_query, query_text, read, tell, tell_input

HELP = "show what a query means, how it is rewritten, what it would keep in memory, and what motes would do for it"
EXAMPLE = "moteloom explain --schema examples/roadbridge/schema.sneeql 'SELECT site, temp FROM road WHERE temp < 0'"


def configure(parser):
    parser.epilog = f"example:\n  {EXAMPLE}"
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--schema", metavar="FILE", help="the extents that can be asked")
    asked.add_argument("-c", "--config", metavar="DEPLOYMENT", help="a deployment's file, in the place of a schema")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="json is one object a line")
    add_query(parser)


def run(args):
    from acquisition.errors import InputError
    from basestation.explain import as_text, explained
    from basestation.language.diagnostics import Diagnostic, Refused
    from basestation.planner.bind import bind_text
    from gateway.toml import Faulty

    try:
        catalog, deployment = _asked(args)
        text, name = query_text(args)
        bound = bind_text(text, catalog, name)
    except InputError as error:
        tell_input(error, args.output == "json")
        return BAD_INPUT
    except Faulty as faulty:
        tell(map(Diagnostic.of, faulty.faults), args.output == "json")
        return BAD_INPUT
    except Refused as refused:
        tell(refused.diagnostics, args.output == "json")
        return REFUSED
    for number, plan in enumerate(bound, 1):
        told = explained(plan, number, deployment, catalog)
        print(json.dumps(told, ensure_ascii=False) if args.output == "json" else as_text(told))
    return 0


def _asked(args):
    """The Catalog of what can be asked, and the Deployment that is to sense it; None where only a schema is given."""
    from acquisition.errors import InputError
    from basestation.planner.catalog import read_schema
    from basestation.planner.deployed import read_deployed
    from innet.deployment.description import read_deployment

    if args.config is None:
        return read_schema(read(args.schema), args.schema), None
    try:
        deployment = read_deployment(args.config)
    except OSError as why:
        raise InputError("SN501", f"cannot be read: {why.strerror}", args.config) from why
    return read_deployed(deployment), deployment
