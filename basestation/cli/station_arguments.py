"""Arguments and error output of the commands that talk to a running station."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from moteloom.station_address import CERTIFICATE_FILE as CERTIFICATE_FILE
from moteloom.station_address import DATA as DATA
from moteloom.station_address import TOKEN_FILE as TOKEN_FILE
from moteloom.station_address import URL
from moteloom.station_address import URL_FILE as URL_FILE

if TYPE_CHECKING:
    from moteloom.client import StationClient, StationError

REFUSED, UNREACHABLE = 2, 4


def add_station(parser: argparse.ArgumentParser) -> None:
    """The arguments --url, --token, --data and -o."""
    parser.add_argument(
        "--url",
        default=os.environ.get("MOTELOOM_URL"),
        help=f"the station (MOTELOOM_URL); default: that of --data, or {URL}",
    )
    parser.add_argument(
        "--token",
        default=os.environ.get("MOTELOOM_TOKEN"),
        help="its token (MOTELOOM_TOKEN); default: the one in --data",
    )
    parser.add_argument(
        "--ca",
        type=Path,
        metavar="FILE",
        default=os.environ.get("MOTELOOM_CA"),
        help="trust these authorities or this certificate (MOTELOOM_CA); default: the system's, and that of --data",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(DATA),
        metavar="DIR",
        help="its data directory, if it is on this machine; default: %(default)s",
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="json is one object a line")


def parse_port(text: str) -> int:
    """A port of TCP."""
    if not (text.isascii() and text.isdecimal() and int(text[:6]) < 65_536):
        raise argparse.ArgumentTypeError(f"`{text[:20]}` is no port between 0 and 65535")
    return int(text)


def client_of(options: argparse.Namespace) -> "StationClient":
    """The client that the arguments describe."""
    from moteloom.client import connect

    return connect(options.url, options.token, data=options.data, ca=options.ca)


def run_verb(verbs: Mapping[str, Callable[[argparse.Namespace], int]], options: argparse.Namespace) -> int:
    """Carry out the verb that the arguments name, and print why it cannot be done; the exit code."""
    from acquisition.errors import InputError
    from basestation.cli.query_arguments import BAD_INPUT, print_input_error
    from moteloom.client import StationError

    try:
        return verbs[options.verb](options)
    except StationError as error:
        return print_station_error(error, options.output == "json")
    except InputError as error:
        print_input_error(error, options.output == "json")
        return BAD_INPUT


def print_station_error(error: "StationError", as_json: bool) -> int:
    """Print why a request failed; the exit code of it."""
    if as_json:
        print(json.dumps(error.problem or {"title": str(error)}, ensure_ascii=False))
    elif diagnostics := error.problem.get("diagnostics"):
        for each in diagnostics:
            print(each["rendered"], end="\n\n", file=sys.stderr)
    else:
        detail = error.problem.get("detail")
        print(f"moteloom: {error}{f'; {detail}' if detail else ''}", file=sys.stderr)
    return REFUSED if error.problem else UNREACHABLE
