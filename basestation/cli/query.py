"""moteloom query: submit, list, show, pause, resume, replace, stop and watch the queries of a running station."""

import argparse
import json
import sys
import urllib.parse
from collections.abc import Mapping
from typing import Any

from basestation.cli.station_arguments import add_station, client_of, run_verb

HELP = "submit, list, show, pause, resume, replace, stop or watch queries of a running station"
EXAMPLE = "moteloom query submit 'SELECT site, temperature FROM lab WHERE temperature > 25'"
WAIT_SECONDS = 20
STATES = "deploying", "running", "paused", "draining", "finished", "stopped", "failed"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""exit codes: 0 done, 2 refused, 3 a file that cannot be taken, 4 no station answers

example:
  {EXAMPLE}
  moteloom query submit --dry-run 'SELECT AVG(temperature) FROM lab [NOW]'
  moteloom query watch 1
  moteloom query submit --name warm 'SELECT site FROM lab [NOW] WHERE temperature > 25'
  moteloom query replace warm 'SELECT site FROM lab [NOW] WHERE temperature > 20'"""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    submit = verbs.add_parser("submit", help="submit a query; prints its number")
    _add_text(submit)
    submit.add_argument(
        "--dry-run", action="store_true", help="show its plan and what it would cost the motes; nothing runs"
    )
    list_verb = verbs.add_parser("list", help="all queries and their states")
    list_verb.add_argument("--state", choices=STATES, metavar="STATE", help=f"only these: {', '.join(STATES)}")
    list_verb.add_argument("--owner", metavar="USER", help="only those of a user")
    list_verb.add_argument("--extent", metavar="EXTENT", help="only those that read an extent")
    for name, help in (
        ("show", "one query"),
        ("account", "the counts of a query, and its share of time, state, messages and energy"),
        ("pause", "let a query run no more until it is resumed"),
        ("resume", "run a paused or failed query again, for the windows from now on"),
        ("stop", "stop a query; its results stay"),
        ("watch", "print answers as they come"),
        ("replace", "submit a query in the place of another, at one tick; prints its number"),
    ):
        verb = verbs.add_parser(name, help=help)
        verb.add_argument("which", metavar="NUMBER|NAME")
        if name == "watch":
            _add_watch(verb)
        elif name == "replace":
            _add_text(verb)
        elif name == "stop":
            verb.add_argument(
                "--drain",
                action="store_true",
                help="first take the readings of windows up to now that are on their way",
            )
    for verb in verbs.choices.values():
        add_station(verb)


def _add_text(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("query", nargs="?", metavar="QUERY", help="SNEEql text")
    group.add_argument("-f", "--file", metavar="FILE", help="read the text from a file; `-` is standard input")
    parser.add_argument("--name", metavar="NAME", help="a name for it; no two of your queries that run have the same")
    parser.add_argument(
        "--active", metavar="HOURS", help="run at these hours only, such as '06:00-18:00 mon-fri Europe/Berlin'"
    )
    parser.add_argument("--watch", action="store_true", help="go on as `watch` does")
    _add_watch(parser)


def _add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--after", type=int, default=0, metavar="N", help="begin behind the update with this number")
    parser.add_argument("--epochs", action="store_true", help="show the coverage of each epoch of a stream too")
    parser.add_argument("--count", type=int, metavar="N", help="end after so many updates")


def run(options: argparse.Namespace) -> int:
    return run_verb(_VERBS, options)


def _submit(options: argparse.Namespace) -> int:
    from basestation.cli.query_arguments import query_text

    text, _ = query_text(options)
    where = "/v1/queries" if options.verb == "submit" else f"{_path(options)}/replace"
    if options.verb == "submit" and options.dry_run:
        return _print_dry_run(client_of(options).post(where, text, name=options.name, dry_run="true"), options)
    found = client_of(options).post(where, text, name=options.name, active=options.active)
    if options.watch:
        return _watch(argparse.Namespace(**vars(options) | {"which": str(found["number"])}))
    print(json.dumps(found) if options.output == "json" else found["number"])
    return 0


def _print_dry_run(found: dict[str, Any], options: argparse.Namespace) -> int:
    from basestation.explain import render_statement

    if options.output == "json":
        print(json.dumps(found))
        return 0
    print(render_statement(found["plan"]))
    for name, title in ("now", "now"), ("with_query", "with this query"):
        if found["cost"] is not None:
            print(f"{title + ':':<17}{_cost(found['cost'][name])}")
    print(f"motes that get other work: {', '.join(map(str, found['changed_motes'])) or 'none'}")
    return 0


def _cost(cost: dict[str, Any]) -> str:
    """The work of all motes in an hour, and how long the first battery lasts."""
    if "refused" in cost:
        return str(cost["refused"])
    days = "" if cost["days"] is None else f", the first battery is empty after {cost['days']:,.0f} days"
    return f"{cost['messages']:,.0f} messages, {cost['bytes']:,.0f} bytes, {cost['joules']:.3g} J an hour{days}"


def _path(options: argparse.Namespace) -> str:
    return f"/v1/queries/{urllib.parse.quote(options.which, safe='')}"


def _list(options: argparse.Namespace) -> int:
    after, is_last = 0, False
    while not is_last:
        page = client_of(options).get(
            "/v1/queries", after=after, state=options.state, owner=options.owner, extent=options.extent
        )
        has_others = len({query["owner"] for query in page["queries"]}) > 1
        for query in page["queries"]:
            print(
                json.dumps(query)
                if options.output == "json"
                else f"{query['number']:>4}  {query['state']:<10} {_named(query, has_others)}{_one_line(query['text'])}"
            )
        is_last = not page["queries"]
        after = page["next"]
    return 0


def _show(options: argparse.Namespace) -> int:
    _print_query(client_of(options).get(_path(options)), options)
    return 0


def _account(options: argparse.Namespace) -> int:
    found = client_of(options).get(f"{_path(options)}/account")
    if options.output == "json":
        print(json.dumps(found))
        return 0
    for name, value in found.items():
        shown = "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
        print(f"{name.replace('_', ' '):<18}{shown:>14}")
    return 0


def _change(options: argparse.Namespace) -> int:
    drain = "true" if options.verb == "stop" and options.drain else None
    _print_query(client_of(options).post(f"{_path(options)}/{options.verb}", drain=drain), options)
    return 0


def _watch(options: argparse.Namespace) -> int:
    left = options.count
    query = client_of(options).query(options.which)
    for updates in query.pages(options.after, wait=WAIT_SECONDS):
        for update in (each.line for each in updates):
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
    reason = f" ({query['reason']})" if query["reason"] else ""
    print(f"query {query['number']}, {_named(query)}{query['state']}{reason}, submitted {query['submitted']}")
    print(f"  {_one_line(query['text'])}")
    print("  " + ", ".join(f"{column['name']}:{column['type']}" for column in query["columns"]))
    if query["active"]:
        print(f"  runs {query['active']}")
    if query["awaited"]:
        print(f"  it runs once these motes have confirmed their part: {', '.join(map(str, query['awaited']))}")
    if query["lifetime_violation"]:
        print(f"  {query['lifetime_violation']}")


def _line(update: Mapping[str, Any]) -> str:
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
            none = "the same rows" if update["revision"] else "no rows"
            return f"{update['time']}{revision}  [{_coverage(update['coverage'])}]  {'; '.join(rows) or none}"
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


def _named(query: dict[str, Any], is_of_several: bool = False) -> str:
    """The name of a query before a text; with its owner, so that an operator can address it, in a list with several owners."""
    owner = f"{query['owner']}." if is_of_several and query["owner"] is not None else ""
    return f"{owner}{query['name']}: " if query["name"] else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


_VERBS = {"submit": _submit, "replace": _submit, "list": _list, "show": _show, "account": _account, "watch": _watch}
_VERBS |= dict.fromkeys(("stop", "pause", "resume"), _change)
