"""The REST interface of a station, from the arguments of `moteloom run` and the tables [rest] and [limits] of its deployment."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.cli.station_arguments import CERTIFICATE_FILE, TOKEN_FILE, parse_port

if TYPE_CHECKING:
    from basestation.rest.limits import RequestLimits
    from basestation.station.certificate import Certificate
    from basestation.station.query_limits import QueryLimits

HOST, PORT = "127.0.0.1", 8137


@dataclass(frozen=True, slots=True)
class Interface:
    """Where the interface listens, how its connections are protected, and how much a token may ask."""

    host: str
    port: int
    certificate: "Certificate | None"
    limits: "RequestLimits"
    has_tokens: bool
    query_limits: "QueryLimits | None" = None
    results_of_user: int | None = None

    def describe(self, data: Path) -> str:
        """The protection of the interface, for the banner."""
        from gateway.broker_settings import is_loopback

        admitted = f"with the token in {data / TOKEN_FILE}" if self.has_tokens else "without a token, on this machine"
        if self.certificate is not None:
            return f"{admitted}, TLS by {self.certificate.certificate}"
        if is_loopback(self.host):
            return f"{admitted}, no TLS"
        return f"{admitted}, NO TLS: tokens and results cross the network unencrypted"


def add_interface(parser: argparse.ArgumentParser) -> None:
    """The arguments --host, --port, --certificate, --key, --no-tls and --no-token; the deployment has the defaults."""
    parser.add_argument("--host", help=f"address of the REST interface; default: [rest] of the deployment, or {HOST}")
    parser.add_argument("--port", type=parse_port, help=f"its port, 0 for a free one; default: [rest], or {PORT}")
    parser.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="its certificate for TLS with the chain, PEM; read again when it changes",
    )
    parser.add_argument("--key", type=Path, metavar="FILE", help="the key of the certificate, PEM without a password")
    parser.add_argument(
        "--no-tls", action="store_true", help="serve other machines without TLS, where a proxy or a tunnel encrypts"
    )
    parser.add_argument("--no-token", action="store_true", help="admit every request on this machine without a token")


def read_interface(options: argparse.Namespace) -> Interface:
    """The interface that the arguments and the deployment describe. TransportError where it would be open to strangers."""
    from basestation.rest.limits import RequestLimits
    from basestation.station.assembly import check_exposure
    from basestation.station.certificate import Certificate
    from basestation.station.query_limits import QueryLimits
    from gateway.errors import TransportError
    from innet.deployment.interface_settings import InterfaceSettings
    from innet.deployment.toml_reader import read_interface as read_tables

    given = InterfaceSettings() if options.config is None else read_tables(options.config)
    files = (options.certificate, options.key)
    if (options.certificate is None) != (options.key is None):
        raise TransportError("--certificate and --key need each other")
    certificate, key = files if options.certificate is not None else (given.certificate, given.key)
    host = options.host or given.host or HOST
    port = options.port if options.port is not None else PORT if given.port is None else given.port
    has_tls = certificate is not None
    check_exposure(host, not options.no_token, has_tls, options.no_tls or given.has_no_tls)
    usual = RequestLimits()
    limits = RequestLimits(
        given.requests_per_second or usual.requests_per_second,
        given.burst or usual.burst,
        given.open_requests or usual.open_requests,
        usual.body_bytes if given.body_kb is None else given.body_kb * 1_000,
        usual.upload_bytes if given.upload_mb is None else given.upload_mb * 1_000_000,
    )
    tls = None if certificate is None or key is None else Certificate(certificate, key)
    most = QueryLimits()
    query_limits = QueryLimits(
        given.queries or most.queries,
        given.queries_of_user or most.of_user,
        None if given.state_mb is None else given.state_mb * 1_000_000,
        None if given.state_mb_of_user is None else given.state_mb_of_user * 1_000_000,
        given.cpu_share,
        given.cpu_share_of_user,
    )
    return Interface(host, port, tls, limits, not options.no_token, query_limits, given.results_of_user)


def publish_certificate(interface: Interface, data: Path) -> None:
    """Let commands on this machine find the certificate, so that they trust exactly this one."""
    path = data / CERTIFICATE_FILE
    path.unlink(missing_ok=True)
    if interface.certificate is not None:
        os.symlink(interface.certificate.certificate.absolute(), path)
