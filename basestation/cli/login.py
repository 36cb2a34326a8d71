"""moteloom login: a link that lets one browser in, so that no token is typed into a page or stands in a URL."""

import argparse
import json
import sys

from basestation.cli.station_arguments import add_station, client_of, print_station_error

HELP = "print a link that lets one browser read a running station; it counts once, for a minute"
EXAMPLE = "moteloom login"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""The browser gets a cookie for 12 hours, with the rights of the token that this command uses.
exit codes: 0 done, 2 refused, 4 no station answers

example:
  {EXAMPLE}
  moteloom login --url https://station.example:8137 --token moteloom_..."""
    add_station(parser)


def run(options: argparse.Namespace) -> int:
    from moteloom.client import StationError

    try:
        client = client_of(options)
        found = client.post("/v1/tickets")
    except StationError as error:
        return print_station_error(error, options.output == "json")
    link = f"{client.url}{found['path']}"
    print(json.dumps({"link": link, "seconds": found["seconds"]}) if options.output == "json" else link)
    print(f"open it within {found['seconds']:.0f} s, in one browser", file=sys.stderr)
    return 0
