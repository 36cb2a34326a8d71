"""moteloom explain: what a query means and how it would be run, without running it."""

import json

from basestation.cli.asking import BAD_INPUT, REFUSED, add_query, add_schema, query_text, read, tell, tell_input

HELP = "show what a query means, how it is rewritten, and what it would keep in memory"
EXAMPLE = "moteloom explain --schema examples/roadbridge/schema.sneeql 'SELECT site, temp FROM road WHERE temp < 0'"


def configure(parser):
    parser.epilog = f"example:\n  {EXAMPLE}"
    add_schema(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="json is one object a line")
    add_query(parser)


def run(args):
    from acquisition.errors import InputError
    from basestation.explain import as_text, explained
    from basestation.language.diagnostics import Refused
    from basestation.planner.bind import bind_text
    from basestation.planner.catalog import read_schema

    try:
        catalog = read_schema(read(args.schema), args.schema)
        text, name = query_text(args)
        bound = bind_text(text, catalog, name)
    except InputError as error:
        tell_input(error, args.output == "json")
        return BAD_INPUT
    except Refused as refused:
        tell(refused.diagnostics, args.output == "json")
        return REFUSED
    for number, plan in enumerate(bound, 1):
        told = explained(plan, number)
        print(json.dumps(told, ensure_ascii=False) if args.output == "json" else as_text(told))
    return 0
