"""The link of a station or gateway, from the arguments of its command: simulated motes, a serial line, or a broker."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from basestation.station.journal import Journal
    from basestation.testbed.live_motes import MoteScenario
    from gateway.broker_settings import BrokerSettings
    from gateway.transports import Transport


def read_scenario(path: str) -> "MoteScenario":
    """The scenario in a file. InputError where it cannot be read, ConfigError where it is wrong."""
    from acquisition.errors import InputError
    from basestation.testbed.live_motes import MoteScenario

    try:
        return MoteScenario(path)
    except OSError as why:
        raise InputError("SN501", f"cannot be read: {why.strerror}", path) from why


def find_broker(url: str | None, config: str | None) -> "BrokerSettings | None":
    """The broker of `--link URL` or of the table [link] of a deployment; None where there is neither.

    User and certificates of the table go with a URL only if that names the table's own host: no other broker learns them.
    """
    from dataclasses import replace

    from gateway.broker_settings import parse_broker_url
    from innet.deployment.toml_reader import read_link

    table = None if config is None else read_link(config)
    if url is None:
        return table
    given = parse_broker_url(url)
    if table is None or (table.host, table.port, table.has_tls) != (given.host, given.port, given.has_tls):
        return given
    return replace(table, prefix=given.prefix)


def open_link(options: argparse.Namespace) -> "Transport":
    """The opened transport to the motes. TransportError where there is none."""
    from gateway.errors import TransportError

    wire: Transport
    if _is_serial(options.link):
        from gateway.transports.serial import SerialTransport

        wire = SerialTransport(options.link, options.baud)
    elif (settings := find_broker(options.link, options.config)) is not None:
        from gateway.transports.mqtt import MqttTransport

        wire = MqttTransport(settings)
    else:
        raise TransportError(f"{options.config} has no table [link]: name the link with --link, or take --simulate")
    wire.open()
    return wire


def _is_serial(link: str | None) -> bool:
    from gateway.broker_settings import is_broker_url

    return link is not None and not is_broker_url(link)


def describe_link(options: argparse.Namespace) -> str:
    """The link of a station for its banner."""
    if options.simulate is not None:
        return f"simulated motes, {options.speed:g} times real time"
    settings = None if _is_serial(options.link) else find_broker(options.link, options.config)
    return options.link or "" if settings is None else describe_broker(settings)


def make_publisher(options: argparse.Namespace, journal: "Journal") -> "AbstractContextManager[object]":
    """The publisher of answers of `--publish`; nothing where there is no such argument. TransportError without a broker."""
    from contextlib import nullcontext

    from gateway.errors import TransportError

    if options.publish is None:
        if options.home_assistant:
            raise TransportError("--home-assistant needs --publish: its sensors are answers on a broker")
        return nullcontext()
    from basestation.station.result_publisher import ResultPublisher

    url = options.publish or (None if _is_serial(options.link) else options.link)
    settings = find_broker(url, options.config)
    if settings is None:
        raise TransportError(
            "--publish needs a broker: --publish mqtt://host/prefix, or a table [link] in the deployment"
        )
    return ResultPublisher(journal, settings, options.data, options.home_assistant)


def describe_broker(settings: "BrokerSettings") -> str:
    """The broker, and how the connection is protected, for a banner."""
    user = f"as {settings.user!r}" if settings.user else "without a user"
    return f"{settings.url}, {user}, {'TLS' if settings.has_tls else 'no TLS'}"
