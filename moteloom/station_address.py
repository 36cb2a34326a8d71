"""Where a station is, and the token for it: as given, from the environment, or from a data directory on this machine."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

URL = "http://127.0.0.1:8137"
DATA = "moteloom-data"
TOKEN_FILE, URL_FILE, CERTIFICATE_FILE = "token", "url", "certificate.pem"
THIS_MACHINE = "localhost", "127.0.0.1", "::1"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a station is, and the token for it."""

    url: str
    token: str | None
    ca: Path | None = None
    """A PEM file with the certificates to trust; None for the system's."""
    has_own_certificate: bool = False
    """Whether `ca` is the very certificate of the station, which is then known whatever name that is for."""


def find_station(url: str | None, token: str | None, data: str | Path | None, ca: str | Path | None = None) -> Address:
    """The address of a station: as given, as MOTELOOM_URL and MOTELOOM_TOKEN say, or that of a data directory on this machine.

    The token of a data directory goes to the station of the directory and to this machine only. `ca` is a PEM file with the
    certificates to trust; the station of a directory is known by its certificate there.
    """
    folder = Path(DATA if data is None else data)
    own = _read(folder / URL_FILE) or URL
    url = url or os.environ.get("MOTELOOM_URL") or own
    token = token or os.environ.get("MOTELOOM_TOKEN")
    if token is None and (url.rstrip("/") == own or is_here(url)):
        token = _read(folder / TOKEN_FILE)
    url = url.rstrip("/")
    certificate = folder / CERTIFICATE_FILE
    if ca is None and url == own and certificate.exists():
        return Address(url, token, certificate, has_own_certificate=True)
    return Address(url, token, None if ca is None else Path(ca))


def is_here(url: str) -> bool:
    """Whether a URL is of this machine."""
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
