"""moteloom run: a station that lives until it is stopped, and is where it was when it starts again."""

import argparse
import os
import signal
import sqlite3
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.cli.simulation import parse_span
from basestation.cli.station_arguments import DATA, URL_FILE
from basestation.cli.station_interface import add_interface, publish_certificate, read_interface

if TYPE_CHECKING:
    from basestation.cli.station_interface import Interface
    from basestation.station.durable import DurableStation
    from basestation.station.journal import Journal
    from basestation.station.service_manager import ServiceManager
    from basestation.testbed.live_motes import LiveMotes, MoteScenario
    from gateway.transports import Transport
    from innet.deployment import Deployment

HELP = "run a station: it accepts queries, directs motes, answers, and survives power cuts"
EXAMPLE = "moteloom run --simulate examples/lab54/calm.scenario.toml --speed 10"
LOG_LEVEL = "info"
FAILED, REFUSED, BAD_INPUT = 1, 2, 3
JOB_MODULES = {"trial": "basestation.testbed.trial_job", "history": "basestation.station.history_job"}
"""By kind of job, the module of its process."""
LEAST_MEMORY = 700_000_000
CLOCK_BACK_MS = 60_000
"""A machine whose clock is that far behind the journal has had it set back."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""The station keeps what it acknowledged in --data and goes on there when it starts again.
Submit queries with `moteloom query submit`, or over HTTP (POST /v1/queries).
exit codes: 0 stopped, 1 the link, port or data directory cannot be used,
  2 the schema refused, 3 a file that cannot be taken, 130 interrupted before it was ready

example:
  {EXAMPLE}"""
    parser.add_argument("-c", "--config", metavar="DEPLOYMENT", help="the deployment's file; default: the scenario's")
    link = parser.add_mutually_exclusive_group()
    link.add_argument("--simulate", metavar="SCENARIO", help="simulated motes of a scenario, in this process")
    link.add_argument(
        "--link", metavar="LINK",
        help="gateways behind a broker: mqtt://host:1883/prefix; or a radio on a serial line: /dev/ttyUSB0; "
        "default: [link] of the deployment",
    )  # fmt: skip
    parser.add_argument(
        "--archive", type=parse_span, default=3_600_000, metavar="SPAN",
        help="move readings into Parquet files under --data so often, such as 10min; default: 1h",
    )  # fmt: skip
    parser.add_argument(
        "--publish", metavar="URL", nargs="?", const="",
        help="publish answers on a broker as flat JSON: mqtt://host:1883/prefix; default: the broker of the link",
    )  # fmt: skip
    parser.add_argument(
        "--home-assistant", action="store_true",
        help="with --publish: Home Assistant finds each column of the answers as a sensor (MQTT discovery)",
    )  # fmt: skip
    parser.add_argument(
        "--speed", type=_speed, default=1.0, metavar="N", help="with --simulate: so many times real time"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="with --simulate: default is the scenario's own")
    parser.add_argument("--baud", type=int, default=115_200, help="of the serial line; default: %(default)s")
    parser.add_argument(
        "--data", type=Path, default=Path(DATA), metavar="DIR", help="what is kept; default: %(default)s"
    )
    parser.add_argument(
        "--agenda", action="store_true", help="motes sleep outside their slots; else they always listen"
    )
    parser.add_argument(
        "--keep-results",
        type=_count,
        default=100_000,
        metavar="N",
        help="updates kept of each query; default: %(default)s",
    )
    parser.add_argument(
        "--keep-days", type=_count, metavar="N", help="and no older than so many days; default: any age"
    )
    parser.add_argument(
        "--keep-mb", type=_count, default=1_000, metavar="N", help="of all results; default: %(default)s"
    )
    add_interface(parser)


def _count(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text[:12]) < 10**9):
        raise argparse.ArgumentTypeError(f"`{text[:20]}` is no whole number from 1 on")
    return int(text)


def _speed(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.01 <= found <= 1_000:
        raise argparse.ArgumentTypeError(f"`{text}` is no speed between 0.01 and 1000")
    return found


def run(options: argparse.Namespace) -> int:
    from acquisition.errors import InputError
    from basestation.cli.query_arguments import print_diagnostics, print_input_error
    from basestation.station.journal_file import JournalError
    from basestation.station.rest_server import PortError
    from gateway.diagnostics import DiagnosticError
    from gateway.errors import TransportError
    from gateway.toml import ConfigError

    if options.config is options.simulate is options.link is None:
        print("moteloom: a station needs motes: --simulate SCENARIO, or -c FILE and --link", file=sys.stderr)
        return REFUSED
    try:
        return _run(options)
    except ConfigError as error:
        print_diagnostics(error.diagnostics, as_json=False)
        return BAD_INPUT
    except DiagnosticError as refused:
        print_diagnostics(refused.diagnostics, as_json=False)
        return REFUSED
    except InputError as error:
        print_input_error(error, as_json=False)
        return BAD_INPUT
    except (JournalError, PortError, TransportError) as error:
        help = getattr(error, "help", None)
        print(f"moteloom: {error}{f'; {help}' if help else ''}", file=sys.stderr)
        return FAILED
    except sqlite3.Error as error:
        print(f"moteloom: {options.data} cannot be used: {error}; free space on its disk", file=sys.stderr)
        return FAILED


def _run(options: argparse.Namespace) -> int:
    from basestation.cli.station_link import make_publisher
    from basestation.jobs.table import JobTable
    from basestation.station.access_file import open_station_access
    from basestation.station.archive_maintenance import ArchiveMaintenance
    from basestation.station.archive_recovery import open_archive
    from basestation.station.assembly import make_factory, read_archive_limits, read_spark_settings
    from basestation.station.declared_extents import find_declared
    from basestation.station.durable import DurableStation
    from basestation.station.file_check import FileCheck
    from basestation.station.full_collections import FullCollections
    from basestation.station.journal import Journal
    from basestation.station.journal_file import PROGRAM
    from basestation.station.limit_enforcer import LimitEnforcer
    from basestation.station.live_control import LiveControl
    from basestation.station.past_reader import PastReader
    from basestation.station.rest_server import RestServer
    from basestation.station.retention import DAY_MS, Budget
    from basestation.station.runner import Runner, ScaledClock
    from basestation.station.service_manager import ServiceManager
    from gateway.cli import own_version

    interface = read_interface(options)
    journal = Journal(options.data)
    try:
        deployment, scenario = _deployment(options)
        make = make_factory(deployment, options.agenda)
        wall_ms = time.time_ns() // 1_000_000
        settings = read_archive_limits(options.config, make.catalog)
        spark = read_spark_settings(options.config)
        archive = open_archive(options.data, make.catalog.tick_ms, journal)
        durable = DurableStation(journal, make, wall_ms)
        durable.limits = interface.query_limits or durable.limits
        durable.read_past = PastReader(durable, archive)
        make.check(durable.station, find_declared(journal))
        journal.state_fact(PROGRAM, own_version())
        now_ms = max(wall_ms, durable.last_ms)
        if now_ms > wall_ms + CLOCK_BACK_MS and options.speed == 1:
            durable.note(now_ms, "the clock of this machine was set back", ms=now_ms - wall_ms)
        wire, motes = _link(options, scenario, journal, now_ms)
        durable.connect(wire)
        clock = ScaledClock(_seconds, now_ms, options.speed)
        manager = ServiceManager(os.environ)
        age_ms = None if options.keep_days is None else options.keep_days * DAY_MS
        budget = Budget(
            options.keep_results, options.keep_mb * 1_000_000, age_ms, numbers_of_user=interface.results_of_user
        )
        collections = FullCollections()
        runner = Runner(
            durable,
            clock,
            motes,
            on_progress=manager.progress,
            budget=budget,
            archive=ArchiveMaintenance(durable, archive, settings, options.archive),
            file_check=FileCheck(journal.path),
            enforcer=LimitEnforcer(durable, _seconds),
            collections=collections,
        )
        access, first_token = (None, None) if options.no_token else open_station_access(options.data)
        publisher = make_publisher(options, journal)
        with (
            collections,
            access or nullcontext(),
            publisher,
            JobTable(options.data / "jobs", JOB_MODULES, kept_s={"history": spark.idle_s}) as jobs,
            RestServer(
                LiveControl(runner, jobs, options.simulate, spark),
                access,
                interface.host,
                interface.port,
                interface.certificate,
                interface.limits,
            ) as server,
        ):
            publish_certificate(interface, options.data)
            (options.data / URL_FILE).write_text(server.url + "\n", encoding="utf-8")
            _greet(options, deployment, durable, server.url, interface, first_token)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: runner.stop())
            signal.signal(
                signal.SIGHUP, lambda *_: runner.post(lambda now_ms: _reload(options, durable, manager, now_ms))
            )
            manager.ready()
            try:
                runner.run()
            finally:
                manager.stopping()
                wire.close()
            (options.data / URL_FILE).unlink(missing_ok=True)
        if options.log != "json":  # the log has it
            print("stopped; everything is kept", file=sys.stderr)
        return 0
    finally:
        journal.close()


def _deployment(options: argparse.Namespace) -> "tuple[Deployment, MoteScenario | None]":
    """The deployment, and the scenario of simulated motes if there are some."""
    from basestation.cli.station_link import read_scenario
    from gateway.errors import TransportError
    from innet.deployment.toml_reader import read_deployment

    scenario = None if options.simulate is None else read_scenario(options.simulate)
    if options.config is not None:
        return read_deployment(options.config), scenario
    if scenario is None:
        raise TransportError("a station on a real link needs its deployment: -c FILE")
    return scenario.deployment, scenario


def _reload(options: argparse.Namespace, durable: "DurableStation", manager: "ServiceManager", now_ms: int) -> None:
    """Read the deployment again, and note what changed, or why it cannot be read; the station goes on as it was."""
    from acquisition.errors import InputError
    from basestation.station.declared_extents import find_declared
    from basestation.station.reload import describe_changes
    from gateway.diagnostics import DiagnosticError

    manager.reloading()
    world = durable.station.world
    try:
        fresh, _ = _deployment(options)
        changes = describe_changes(world.deployment or fresh, world.catalog, fresh, find_declared(durable.journal))
    except (DiagnosticError, InputError, OSError) as why:
        durable.note(now_ms, "reading the deployment again fails", why=str(why))
    else:
        for change in changes:
            durable.note(now_ms, "a change of the deployment is not taken", why=change)
        durable.note(now_ms, "the deployment was read again", changes=len(changes))
    manager.ready()


def _link(
    options: argparse.Namespace, scenario: "MoteScenario | None", journal: "Journal", now_ms: int
) -> "tuple[Transport, LiveMotes | None]":
    """The transport to the motes, and the simulated motes if there are some."""
    if scenario is not None:
        boot = int(journal.fact("simulated_boot") or 0) + 1
        journal.state_fact("simulated_boot", str(boot))
        motes = scenario.start(now_ms, boot, options.seed)
        return motes.wire, motes
    from basestation.cli.station_link import open_link

    return open_link(options), None


def _seconds() -> float:
    """Seconds of a clock that is never set; where the system has one, it also counts while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _greet(
    options: argparse.Namespace, deployment: "Deployment", durable: "DurableStation", url: str, interface: "Interface",
    first_token: str | None,
) -> None:  # fmt: skip
    """Say what runs. The first token is shown once, to a person at a terminal: a log must not have it."""
    from basestation.cli.station_link import describe_link
    from gateway.cli import own_version
    from gateway.log import get_log

    live = len(durable.station.world.live)
    if options.log == "json":
        get_log(__name__).info(
            "station ready", version=own_version(), deployment=deployment.name, motes=len(deployment.motes), link=describe_link(options),
            data=str(options.data), queries=live, replayed=durable.replayed, interface=url, token=not options.no_token,
            tls=interface.certificate is not None,
        )  # fmt: skip
        return
    print(
        f"moteloom {own_version()}: {deployment.name or 'station'} with {len(deployment.motes)} motes\n"
        f"  link       {describe_link(options)}\n"
        f"  data       {options.data} ({live} queries, {durable.replayed} looks taken again)\n"
        f"  interface  {url}, {interface.describe(options.data)}\n"
        f"  stop       Ctrl-C",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    if first_token is not None and sys.stderr.isatty():
        print(f"  token      {first_token}, shown once", file=sys.stderr, flush=True)
