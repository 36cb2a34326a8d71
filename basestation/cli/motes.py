"""moteloom motes: what a running station knows of each mote, from its data."""

import argparse
import json

from basestation.cli.station_arguments import add_station, client_of, print_station_error

HELP = "show what a running station knows of each mote"
EXAMPLE = "moteloom motes"
COUNTED = ("due", "delivered", "merged", "filtered", "lost")
"""Of the station's ledger (docs/semantics.md): readings by extent and mote."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""exit codes: 0 done, 2 refused, 4 no station answers

example:
  {EXAMPLE}"""
    add_station(parser)


def run(options: argparse.Namespace) -> int:
    from basestation.client.http import StationError

    try:
        motes = client_of(options).get("/v1/motes")["motes"]
    except StationError as error:
        return print_station_error(error, options.output == "json")
    if options.output == "json":
        for mote in motes:
            print(json.dumps(mote))
        return 0
    print("mote  parent  state       due  delivered  merged  filtered  lost")
    for mote in motes:
        of = {name: sum(readings.get(name, 0) for readings in mote["readings"].values()) for name in COUNTED}
        parent = "-" if mote["parent"] is None else mote["parent"]
        state = "silent" if mote["is_silent"] else mote["state"]
        counts = f"{of['due']:>5}  {of['delivered']:>9}  {of['merged']:>6}  {of['filtered']:>8}  {of['lost']:>4}"
        print(f"{mote['mote']:>4}  {parent:>6}  {state:<10}{counts}")
    return 0
