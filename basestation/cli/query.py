"""moteloom query: submit, list, show, stop and watch the queries of a running station."""

import argparse
import json
import sys
from typing import Any

from basestation.cli.station_arguments import add_station, client_of, print_station_error

HELP = "submit, list, show, stop or watch queries of a running station"
EXAMPLE = "moteloom query submit 'SELECT site, temperature FROM lab WHERE temperature > 25'"
WAIT_SECONDS = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""exit codes: 0 done, 2 refused, 3 a file that cannot be taken, 4 no station answers

example:
  {EXAMPLE}
  moteloom query watch 1"""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    submit = verbs.add_parser("submit", help="submit a query; prints its number")
    group = submit.add_mutually_exclusive_group(required=True)
    group.add_argument("query", nargs="?", metavar="QUERY", help="SNEEql text")
    group.add_argument("-f", "--file", metavar="FILE", help="read the text from a file; `-` is standard input")
    submit.add_argument("--watch", action="store_true", help="go on as `watch` does")
    verbs.add_parser("list", help="all queries and their states")
    for name, help in (
        ("show", "one query"),
        ("stop", "stop a query; its results stay"),
        ("watch", "print answers as they come"),
    ):
        verb = verbs.add_parser(name, help=help)
        verb.add_argument("number", type=int, metavar="NUMBER")
        if name == "watch":
            _add_watch(verb)
    _add_watch(submit)
    for verb in verbs.choices.values():
        add_station(verb)


def _add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--after", type=int, default=0, metavar="N", help="begin behind the update with this number")
    parser.add_argument("--epochs", action="store_true", help="show the coverage of each epoch of a stream too")
    parser.add_argument("--count", type=int, metavar="N", help="end after so many updates")


def run(options: argparse.Namespace) -> int:
    from acquisition.errors import InputError
    from basestation.cli.query_arguments import BAD_INPUT, print_input_error
    from basestation.client.http import StationError

    try:
        return _VERBS[options.verb](options)
    except StationError as error:
        return print_station_error(error, options.output == "json")
    except InputError as error:
        print_input_error(error, options.output == "json")
        return BAD_INPUT


def _submit(options: argparse.Namespace) -> int:
    from basestation.cli.query_arguments import query_text

    text, _ = query_text(options)
    found = client_of(options).post("/v1/queries", text)
    if options.watch:
        return _watch(argparse.Namespace(**vars(options) | {"number": found["number"]}))
    print(json.dumps(found) if options.output == "json" else found["number"])
    return 0


def _list(options: argparse.Namespace) -> int:
    after, is_last = 0, False
    while not is_last:
        page = client_of(options).get("/v1/queries", after=after)
        for query in page["queries"]:
            print(
                json.dumps(query)
                if options.output == "json"
                else f"{query['number']:>4}  {query['state']:<10} {_one_line(query['text'])}"
            )
        is_last = not page["queries"]
        after = page["next"]
    return 0


def _show(options: argparse.Namespace) -> int:
    _print_query(client_of(options).get(f"/v1/queries/{options.number}"), options)
    return 0


def _stop(options: argparse.Namespace) -> int:
    _print_query(client_of(options).post(f"/v1/queries/{options.number}/stop"), options)
    return 0


def _watch(options: argparse.Namespace) -> int:
    left = options.count
    for updates in client_of(options).updates(options.number, options.after, WAIT_SECONDS):
        for update in updates:
            if update["type"] == "epoch" and options.output == "table" and not options.epochs:
                continue
            print(json.dumps(update) if options.output == "json" else _line(update))
            if left is not None and (left := left - 1) <= 0:
                return 0
            if update["type"] == "ended":
                return 0
        sys.stdout.flush()
    return 0


def _print_query(query: dict[str, Any], options: argparse.Namespace) -> None:
    if options.output == "json":
        print(json.dumps(query))
        return
    print(f"query {query['number']}, {query['state']}, submitted {query['submitted']}\n  {_one_line(query['text'])}")
    print("  " + ", ".join(f"{column['name']}:{column['type']}" for column in query["columns"]))
    if query["awaited"]:
        print(f"  motes that have not confirmed their part yet: {', '.join(map(str, query['awaited']))}")
    if query["lifetime_violation"]:
        print(f"  {query['lifetime_violation']}")


def _line(update: dict[str, Any]) -> str:
    """An update as one line: time, coverage, rows; rows that a revision takes back have a minus."""
    match update["type"]:
        case "tuple":
            sign = "" if update["weight"] > 0 else "- "
            return f"{update['time']}  {sign}{_row(update['row'])}"
        case "window":
            rows = [f"- {_row(row)}" for row in update.get("removed", ())]
            sign = "+ " if "added" in update else ""
            rows += [f"{sign}{_row(row)}" for row in update.get("rows", update.get("added", ()))]
            revision = f" revision {update['revision']}" if update["revision"] else ""
            return f"{update['time']}{revision}  [{_coverage(update['coverage'])}]  {'; '.join(rows) or 'no rows'}"
        case "epoch":
            return f"{update['time']}  [{_coverage(update['coverage'])}]"
        case "ended":
            return f"{update['time']}  ended: {update['code']}: {update['message']}"
        case _:
            return json.dumps(update)


def _row(values: list[Any]) -> str:
    return ", ".join("null" if value is None else str(value) for value in values)


def _coverage(coverage: dict[str, list[int] | None]) -> str:
    return ", ".join(f"{name} {of[0]} of {of[1]}" for name, of in coverage.items() if of) or "no due readings"


def _one_line(text: str) -> str:
    return " ".join(text.split())


_VERBS = {"submit": _submit, "list": _list, "show": _show, "stop": _stop, "watch": _watch}
