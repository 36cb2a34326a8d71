"""moteloom events: what happened to a running station: new states of queries, promises, the link, the disk."""

import argparse
import json
import sys
from typing import Any

from basestation.cli.station_arguments import add_station, client_of, print_station_error

HELP = "show what happened to a running station, and follow it"
EXAMPLE = "moteloom events --follow"
WAIT_SECONDS = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""exit codes: 0 done, 2 refused, 4 no station answers

example:
  {EXAMPLE}"""
    parser.add_argument("--follow", action="store_true", help="go on with the events that come, until Ctrl-C")
    parser.add_argument("--after", type=int, default=0, metavar="N", help="begin behind the event with this number")
    parser.add_argument("--query", type=int, metavar="NUMBER", help="only events about this query")
    parser.add_argument("--count", type=int, metavar="N", help="end after so many events")
    add_station(parser)


def run(options: argparse.Namespace) -> int:
    from moteloom.client import StationError

    try:
        return _print_events(options)
    except StationError as error:
        return print_station_error(error, options.output == "json")


def _print_events(options: argparse.Namespace) -> int:
    client, after, left, wait = client_of(options), options.after, options.count, 0
    while True:
        page = client.get("/v1/events", after=after, query=options.query, wait=wait)
        after = page["next"]
        for event in page["events"]:
            print(json.dumps(event) if options.output == "json" else _line(event))
            if left is not None and (left := left - 1) <= 0:
                return 0
        sys.stdout.flush()
        if not page["events"]:
            if not options.follow:
                return 0
            wait = WAIT_SECONDS


def _line(event: dict[str, Any]) -> str:
    """An event as one line: time, what happened, its query, why; then whatever else it states."""
    known = ("number", "time", "event", "query", "why")
    about = f" {event['query']}" if event.get("query") is not None else ""
    why = f": {event['why']}" if event.get("why") else ""
    more = "".join(f" {key}={value}" for key, value in event.items() if key not in known and value is not None)
    what, _, state = event["event"].partition(" ")
    named = f"{what}{about} {state}" if about else event["event"]
    return f"{event['number']:>5}  {event['time']}  {named}{why}{more}"
