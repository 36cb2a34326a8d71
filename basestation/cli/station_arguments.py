"""Arguments and error output of the commands that talk to a running station."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl

    from basestation.client.http import StationClient, StationError

DATA = "moteloom-data"
TOKEN_FILE, URL_FILE, CERTIFICATE_FILE = "token", "url", "certificate.pem"
REFUSED, UNREACHABLE = 2, 4
THIS_MACHINE = "localhost", "127.0.0.1", "::1"
URL = "http://127.0.0.1:8137"


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
    from basestation.client.http import StationClient

    own = _read(options.data / URL_FILE) or URL
    url = options.url or own
    token = options.token
    if token is None and (url.rstrip("/") == own or _is_here(url)):
        token = _read(options.data / TOKEN_FILE)  # no other machine learns it unless it is given for that one
    return StationClient(url, token, _trust(options, url.rstrip("/") == own))


def _trust(options: argparse.Namespace, is_own: bool) -> "ssl.SSLContext | None":
    """The certificates to trust; None for the system's.

    The station of --data is known by its very certificate, whatever name that is for.
    """
    path = options.ca or (options.data / CERTIFICATE_FILE if is_own else None)
    if path is None or (options.ca is None and not path.exists()):
        return None
    import ssl

    from basestation.client.http import StationError

    try:
        context = ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as why:
        raise StationError(f"the certificates in {path} cannot be used: {why.strerror or why}") from why
    if options.ca is None:
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _is_here(url: str) -> bool:
    try:
        return urlsplit(url).hostname in THIS_MACHINE
    except ValueError:  # not a URL; the request says so
        return False


def _read(path: Path) -> str | None:
    """A file that a station wrote into its data directory; None where it is not on this machine or not readable."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return None


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
