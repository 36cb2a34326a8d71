"""moteloom gateway: carries frames between a radio, or simulated motes, and a station behind an MQTT broker."""

import argparse
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.daemon import GatewayDaemon
    from gateway.transports import Transport

HELP = "connect a radio, or simulated motes, with a station behind an MQTT broker"
EXAMPLE = "moteloom gateway --radio /dev/ttyUSB0 --link mqtt://127.0.0.1:1883/lab54"
FAILED, REFUSED, BAD_INPUT = 1, 2, 3
DATA = "moteloom-gateway"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""The gateway keeps nothing: radios and motes keep what the station has not acknowledged. It runs until
Ctrl-C or SIGTERM, and connects again by itself.
exit codes: 0 stopped, 1 the radio or the link cannot be used, 3 a file that cannot be taken

example:
  {EXAMPLE}"""
    parser.add_argument("-c", "--config", metavar="DEPLOYMENT", help="the deployment's file, for its table [link]")
    radio = parser.add_mutually_exclusive_group(required=True)
    radio.add_argument("--radio", metavar="DEVICE", help="a serial line: /dev/ttyUSB0, or socket://host:port")
    radio.add_argument("--simulate", metavar="SCENARIO", help="simulated motes of a scenario, with all its gateways")
    parser.add_argument("--link", metavar="URL", help="mqtt://host:port/prefix, or mqtts://; default: that of [link]")
    parser.add_argument("--number", type=_number, default=0, help="of this gateway; default: %(default)s")
    parser.add_argument("--baud", type=int, default=115_200, help="of the serial line; default: %(default)s")
    parser.add_argument("--seed", type=int, metavar="N", help="with --simulate: default is the scenario's own")
    parser.add_argument(
        "--data", type=Path, default=Path(DATA), metavar="DIR",
        help="with --simulate: how often motes were switched on; default: %(default)s",
    )  # fmt: skip


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 65_535):
        raise argparse.ArgumentTypeError(f"`{text}` is no gateway's number between 0 and 65534")
    return int(text)


def run(options: argparse.Namespace) -> int:
    from acquisition.errors import InputError
    from basestation.cli.query_arguments import print_diagnostics, print_input_error
    from gateway.errors import TransportError
    from gateway.toml import ConfigError

    try:
        return _run(options)
    except ConfigError as error:
        print_diagnostics(error.diagnostics, as_json=False)
        return BAD_INPUT
    except InputError as error:
        print_input_error(error, as_json=False)
        return BAD_INPUT
    except TransportError as error:
        print(f"moteloom: {error}", file=sys.stderr)
        return FAILED


def _run(options: argparse.Namespace) -> int:
    from basestation.cli.station_link import describe_broker, find_broker
    from gateway.cli import own_version
    from gateway.daemon import GatewayDaemon
    from gateway.errors import TransportError
    from gateway.transports.mqtt import MqttGateway

    radio, numbers, before_look = _radio(options)
    settings = find_broker(options.link, options.config)
    if settings is None:
        raise TransportError("a gateway needs its broker: --link mqtt://host/prefix, or -c FILE with a table [link]")
    links = {number: MqttGateway(settings, number) for number in numbers}
    try:
        for link in links.values():
            link.open()
        daemon = GatewayDaemon(radio, links)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: daemon.stop())
        print(
            f"moteloom {own_version()}: gateway {', '.join(map(str, numbers))}\n"
            f"  radio      {options.simulate or options.radio}\n"
            f"  link       {describe_broker(settings)}\n"
            f"  stop       Ctrl-C",
            file=sys.stderr, flush=True,
        )  # fmt: skip
        daemon.run(before_look)
        _report(daemon)
    finally:
        for link in links.values():
            link.close()
        radio.close()
    return 0


def _report(daemon: "GatewayDaemon") -> None:
    counts = ", ".join(f"{daemon.counts[name]} {name}" for name in ("up", "down", "damaged", "dropped"))
    print(f"stopped; frames: {counts}", file=sys.stderr)


def _radio(options: argparse.Namespace) -> "tuple[Transport, list[int], Callable[[], None] | None]":
    """The opened radio, the numbers of its gateways, and what must be called before each look at it."""
    if options.simulate is None:
        from gateway.transports.serial import SerialTransport

        line = SerialTransport(options.radio, options.baud)
        line.open()
        return line, [options.number], None
    from basestation.cli.station_link import read_scenario

    scenario = read_scenario(options.simulate)
    begin_ms = _now_ms()
    motes = scenario.start(begin_ms, _next_boot(options.data), options.seed)
    return motes.wire, sorted(scenario.deployment.gateways), lambda: motes.advance(_now_ms())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _next_boot(folder: Path) -> int:
    """How often simulated motes have been switched on: they remember no numbers of frames, and none may come twice."""
    from acquisition.errors import InputError

    path = folder / "boot"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        boot = (int(path.read_text(encoding="utf-8")) if path.exists() else 0) + 1
        path.write_text(f"{boot}\n", encoding="utf-8")
    except (OSError, ValueError) as why:
        raise InputError("SN501", f"cannot be used: {getattr(why, 'strerror', None) or why}", str(path)) from why
    return boot
