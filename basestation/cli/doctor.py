"""moteloom doctor: look at everything that a station needs on this machine; each line is ok, a warning, or a failure."""

import argparse
import json
import os
import shutil
import socket
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from basestation.cli.station_arguments import DATA, URL_FILE, parse_port

HELP = "look at what a station needs on this machine: disk, store, port, clock, memory"
EXAMPLE = "moteloom doctor"
FAILED = 1
PORT = 8137
OK, WARNING, FAILURE = "ok", "warning", "failure"
LEAST_FREE, LOW_FREE = 50_000_000, 1_000_000_000
"""Bytes on the disk of the data directory."""
LOW_MEMORY = 300_000_000
SLOW_SYNC_MS = 50.0
"""A step commits once; slower syncs delay every answer by as much."""
SYNCS = 10
FIRST_YEAR, LAST_YEAR = 2025, 2100


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one check; `remedy` says how to mend it where it is not ok."""

    what: str
    level: str
    found: str
    remedy: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""exit codes: 0 nothing fails, 1 something does

example:
  {EXAMPLE}"""
    parser.add_argument("-c", "--config", metavar="DEPLOYMENT", help="also check this deployment")
    parser.add_argument(
        "--data", type=Path, default=Path(DATA), metavar="DIR", help="of the station; default: %(default)s"
    )
    parser.add_argument("--port", type=parse_port, default=PORT, help="of its interface; default: %(default)s")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="json is one object a line")


def run(options: argparse.Namespace) -> int:
    worst = OK
    for finding in _findings(options):
        if options.output == "json":
            named = {"what": finding.what, "level": finding.level, "found": finding.found, "remedy": finding.remedy}
            print(json.dumps(named), flush=True)
        else:
            remedy = f"; {finding.remedy}" if finding.remedy else ""
            print(f"{finding.level:<8} {finding.what:<11} {finding.found}{remedy}", flush=True)
        worst = max(worst, finding.level, key=(OK, WARNING, FAILURE).index)
    return FAILED if worst == FAILURE else 0


def _findings(options: argparse.Namespace) -> Iterator[Finding]:
    yield _python()
    yield _folder(options.data)
    yield _sync_speed(options.data)
    yield _store(options.data)
    yield _port(options.port, options.data)
    yield _clock(time.time())
    yield _memory(Path("/proc/meminfo"))
    yield _java(shutil.which)
    if options.config is not None:
        yield _deployment(options.config)


def _python() -> Finding:
    from gateway.cli import own_version

    versions = f"moteloom {own_version()}, Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"
    if sqlite3.sqlite_version_info < (3, 37):
        return Finding("program", FAILURE, versions, "SQLite 3.37 or newer is needed: take a newer Python")
    return Finding("program", OK, versions)


def _existing(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    folder = folder.absolute()
    return folder if folder.exists() else _existing(folder.parent)


def _folder(data: Path) -> Finding:
    folder = _existing(data)
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return Finding("data", FAILURE, f"{folder} cannot be written", "choose another with --data")
    free = shutil.disk_usage(folder).free
    found = f"{data}, {free / 1e9:.1f} GB free"
    if free < LEAST_FREE:
        return Finding("data", FAILURE, found, "free space: a station acknowledges nothing without")
    if free < LOW_FREE:
        return Finding("data", WARNING, found, "free space before it runs out")
    return Finding("data", OK, found)


def _sync_speed(data: Path) -> Finding:
    """The median time of a commit of 4 kB, measured in the folder."""
    path = _existing(data) / f".moteloom-doctor-{os.getpid()}"
    times = []
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            for _ in range(SYNCS):
                os.write(descriptor, bytes(4_096))
                begin = time.perf_counter()
                os.fsync(descriptor)
                times.append(1_000 * (time.perf_counter() - begin))
        finally:
            os.close(descriptor)
            path.unlink()
    except OSError as why:
        return Finding(
            "disk", FAILURE, f"{path.parent} cannot be written: {why.strerror}", "choose another with --data"
        )
    median = sorted(times)[SYNCS // 2]
    found = f"a commit takes {median:.1f} ms"
    if median > SLOW_SYNC_MS:
        return Finding("disk", WARNING, found, "answers come later by as much: a faster disk helps")
    return Finding("disk", OK, found)


def _store(data: Path) -> Finding:
    from basestation.station.journal_file import NAME, JournalError, check

    path = data / NAME
    if not path.exists():
        return Finding("store", OK, f"no {path} yet: the first start makes it")
    try:
        check(path)
    except JournalError as error:
        return Finding("store", FAILURE, str(error), error.help)
    return Finding("store", OK, f"{path} is whole, {path.stat().st_size / 1e6:.1f} MB")


def _port(port: int, data: Path) -> Finding:
    running = data / URL_FILE
    url = running.read_text(encoding="utf-8").strip() if running.exists() else ""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as why:
            if url.endswith(f":{port}"):
                return Finding("port", OK, f"the station of {data} listens at {url}")
            return Finding("port", FAILURE, f"127.0.0.1:{port}: {why.strerror}", "choose another with --port")
    return Finding("port", OK, f"127.0.0.1:{port} is free")


def _clock(now: float) -> Finding:
    year = time.gmtime(now).tm_year
    found = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return Finding("clock", FAILURE, found, "set the clock: readings get their times from it")
    if Path("/run/systemd/system").exists() and not Path("/run/systemd/timesync/synchronized").exists():
        return Finding("clock", WARNING, f"{found}, not synchronized by systemd", "run an NTP service")
    return Finding("clock", OK, found)


def _memory(path: Path) -> Finding:
    try:
        line = next(line for line in path.read_text().splitlines() if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return Finding("memory", WARNING, "this system does not say how much is free", "a station takes some 150 MB")
    free = int(line.split()[1]) * 1_024
    found = f"{free / 1e9:.1f} GB free"
    if free < LOW_MEMORY:
        return Finding("memory", WARNING, found, "a station takes some 150 MB, and as much while it writes a snapshot")
    return Finding("memory", OK, found)


def _java(which: Callable[[str], str | None]) -> Finding:
    found = which("java")
    if found is None:
        return Finding("java", WARNING, "not found", "only the archive on Spark needs it")
    return Finding("java", OK, found)


def _deployment(path: str) -> Finding:
    from basestation.planner.deployed_catalog import read_deployed_catalog
    from gateway.diagnostics import DiagnosticError
    from innet.deployment.toml_reader import read_deployment

    try:
        deployment = read_deployment(path)
        read_deployed_catalog(deployment)
    except OSError as why:
        return Finding("deployment", FAILURE, f"{path}: {why.strerror}", "name a deployment with -c")
    except DiagnosticError as error:
        count = len(error.diagnostics)
        return Finding("deployment", FAILURE, f"{path}: {error.diagnostics[0].message}" + (f" and {count - 1} more" if count > 1 else ""),
                       f"moteloom config check {path} shows where")  # fmt: skip
    return Finding("deployment", OK, f"{path}: {len(deployment.motes)} motes")
