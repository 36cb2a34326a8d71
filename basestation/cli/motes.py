"""moteloom motes: what a running station knows of each mote, from its data."""

import argparse
import json
import sys
import urllib.parse
from typing import Any

from basestation.cli.station_arguments import add_station, client_of, print_station_error

HELP = "show what a running station knows of each mote"
EXAMPLE = "moteloom motes"
COUNTED = ("due", "delivered", "merged", "filtered", "lost")
"""Of the station's ledger (docs/semantics.md): readings by extent and mote."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""exit codes: 0 done, 2 refused, 4 no station answers

example:
  {EXAMPLE}"""
    parser.add_argument("--latest", metavar="EXTENT", help="instead: the newest value of each attribute at each site")
    add_station(parser)


def run(options: argparse.Namespace) -> int:
    from moteloom.client import StationError

    try:
        if options.latest is not None:
            path = f"/v1/extents/{urllib.parse.quote(options.latest, safe='')}/latest"
            motes = client_of(options).get(path)["sites"]
        else:
            motes = client_of(options).get("/v1/motes")["motes"]
    except StationError as error:
        return print_station_error(error, options.output == "json")
    if options.output == "json":
        for mote in motes:
            print(json.dumps(mote))
        return 0
    if options.latest is not None:
        _show_latest(motes)
        if not motes:
            print(
                f"no reading of {options.latest} has come on its own; a query such as SELECT * FROM {options.latest} brings them",
                file=sys.stderr,
            )
        return 0
    print("mote  parent  state    heard                 missed    due  delivered  merged  filtered  lost")
    for mote in motes:
        of = {name: sum(readings.get(name, 0) for readings in mote["readings"].values()) for name in COUNTED}
        parent = "-" if mote["parent"] is None else mote["parent"]
        missed = f"{mote['missed']['readings']} of {mote['missed']['of']}"
        counts = f"{of['due']:>5}  {of['delivered']:>9}  {of['merged']:>6}  {of['filtered']:>8}  {of['lost']:>4}"
        print(f"{mote['mote']:>4}  {parent:>6}  {mote['state']:<7}  {_second(mote['heard']):<20}  {missed:<8}{counts}")
    return 0


def _show_latest(sites: list[dict[str, Any]]) -> None:
    for site in sites:
        values = (f"{name} {of['value']} ({_second(of['time'])})" for name, of in site["values"].items())
        print(f"{site['site']:>4}  {site['state']:<7}  {', '.join(values)}")


def _second(time: str | None) -> str:
    """A time without its fraction of a second."""
    return "never" if time is None else f"{time[:19]}Z"
