"""moteloom errors: the catalogue of errors, or one of them with its example."""

import json
import sys

HELP = "explain an error code, or list all of them"
EXAMPLE = "moteloom errors SN202"


def configure(parser):
    parser.epilog = f"example:\n  {EXAMPLE}"
    parser.add_argument("code", nargs="?", metavar="CODE", help="such as SN202; without it, all are listed")
    parser.add_argument("-o", "--output", choices=("text", "json", "markdown"), default="text")


def run(args):
    from basestation.errors import CATALOGUE
    from gateway.source import did_you_mean

    code = args.code.upper() if args.code else None
    if code is not None and code not in CATALOGUE:
        near = did_you_mean(code, CATALOGUE)
        print(f"moteloom errors: there is no error {args.code}{'; ' + near if near else ''}", file=sys.stderr)
        return 2
    codes = [code] if code else list(CATALOGUE)
    if args.output == "json":
        for each in codes:
            entry = CATALOGUE[each]
            print(
                json.dumps(
                    {
                        "code": each,
                        "kind": entry.kind,
                        "title": entry.title,
                        "explanation": entry.explanation,
                        "example": entry.example,
                    },
                    ensure_ascii=False,
                )
            )
    elif args.output == "markdown":
        from basestation.cli.error_page import render_page

        print(render_page(), end="")
    elif code:
        _one(code)
    else:
        for each in codes:
            print(f"{each}  {CATALOGUE[each].kind:<7} {CATALOGUE[each].title}")
    return 0


def _one(code):
    from basestation.cli.error_page import render_example
    from basestation.errors import CATALOGUE

    entry = CATALOGUE[code]
    print(f"{code} ({entry.kind}): {entry.title}\n\n{entry.explanation}\n\nFor example:\n\n{render_example(code)}")
