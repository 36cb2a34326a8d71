"""moteloom errors: the catalogue of errors, or one of them with its example."""

import argparse
import json
import sys

HELP = "explain an error code, or list all of them"
EXAMPLE = "moteloom errors SN202"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.epilog = f"example:\n  {EXAMPLE}"
    parser.add_argument("code", nargs="?", metavar="CODE", help="such as SN202; without it, list all")
    parser.add_argument("-o", "--output", choices=("text", "json", "markdown"), default="text")


def run(args: argparse.Namespace) -> int:
    """Print the catalogue or one error; the exit code is 2 for an unknown code."""
    from basestation.errors import CATALOGUE
    from gateway.source import did_you_mean

    code = args.code.upper() if args.code else None
    if code is not None and code not in CATALOGUE:
        near = did_you_mean(code, CATALOGUE)
        print(f"moteloom errors: unknown error code {args.code}{'; ' + near if near else ''}", file=sys.stderr)
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
        _print_error(code)
    else:
        for each in codes:
            print(f"{each}  {CATALOGUE[each].kind:<7} {CATALOGUE[each].title}")
    return 0


def _print_error(code: str) -> None:
    from basestation.cli.error_page import render_example
    from basestation.errors import CATALOGUE

    entry = CATALOGUE[code]
    print(f"{code} ({entry.kind}): {entry.title}\n\n{entry.explanation}\n\nFor example:\n\n{render_example(code)}")
