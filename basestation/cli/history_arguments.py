"""Parts that the commands over archives share: where Spark runs, and how errors end them."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.cli.query_arguments import BAD_INPUT, REFUSED, print_diagnostics

if TYPE_CHECKING:
    from basestation.archive.spark.master import SparkMaster
    from basestation.archive.spark.session import SparkSession
    from basestation.station.history_question import HistoryQuestion

FAILED, NOT_EXECUTABLE = 1, 4


def refuse(reason: str) -> int:
    print(f"moteloom: {reason}", file=sys.stderr)
    return REFUSED


def print_errors(call: Callable[[], int], as_json: bool) -> int:
    """The exit code of a command over archives. An error becomes its message on standard error, and its code."""
    import pyarrow as pa

    from acquisition.errors import InputError
    from basestation.archive.spark.java import SparkUnavailableError
    from basestation.archive.spark.session import SparkFailedError
    from basestation.history.archive_views import DamagedFileError
    from basestation.history.refusal import SparkRefusedError
    from basestation.station.history_question import HistoryQuestionError
    from basestation.station.journal_file import JournalError
    from gateway.diagnostics import DiagnosticError

    try:
        return call()
    except DiagnosticError as error:
        print_diagnostics(error.diagnostics, as_json)
        return REFUSED
    except SparkRefusedError as error:
        message, code = f"Spark cannot answer this exactly: {error}; docs/history.md lists what it can", NOT_EXECUTABLE
    except HistoryQuestionError as error:
        message, code = str(error), REFUSED
    except DamagedFileError as error:
        remedy = "`moteloom archive verify` looks at all files, `moteloom history --skip-damaged` leaves it out"
        message, code = f"{error}; {remedy}", BAD_INPUT
    except (InputError, pa.ArrowInvalid) as error:
        message, code = str(error), BAD_INPUT
    except JournalError as error:
        message, code = f"{error}; {error.help}", FAILED
    except (SparkUnavailableError, SparkFailedError) as error:
        message, code = str(error), FAILED
    print(f"moteloom: {message}", file=sys.stderr)
    return code


def parse_data(text: str) -> Path:
    """The folder of an archive. A URL of this machine names one; other URLs are refused."""
    scheme, colon, rest = text.partition("://")
    if not colon:
        return Path(text.removeprefix("file:"))
    if scheme == "file" and rest.startswith("/"):
        return Path(rest)
    raise argparse.ArgumentTypeError(
        f"expected a folder that this machine reads, found `{text}`; mount the store as a folder (docs/history.md)"
    )


def print_gaps(question: "HistoryQuestion") -> None:
    """Name the files and days that an answer lacks."""
    from basestation.history.file_checks import list_days

    for path, damage in question.skipped.items():
        print(f"moteloom: left out {path}: {damage}", file=sys.stderr)
    for extent, days in question.missing.items():
        if days:
            print(
                f"moteloom: no reading of `{extent}` on {len(days)} days of the range: {list_days(days)}",
                file=sys.stderr,
            )


@contextmanager
def open_spark(args: argparse.Namespace) -> "Iterator[SparkSession]":
    """The Spark that the arguments name, with a bar of its progress, stopped in the end."""
    from basestation.archive.spark.progress import show_progress
    from basestation.archive.spark.session import start_session

    begun = time.monotonic()
    starting = f"connecting to {args.master.name}" if args.master.is_connect else "starting Spark, which takes some 7 s"
    print(starting, file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="moteloom-spark-") as scratch:
        session = start_session(Path(scratch), args.master, args.memory, is_background=True)
        try:
            print(f"Spark is there after {time.monotonic() - begun:.1f} s", file=sys.stderr)
            with show_progress(session, sys.stderr) if args.progress or sys.stderr.isatty() else nullcontext():
                yield session
        finally:
            session.stop()


def add_spark(parser: argparse.ArgumentParser, has_connect: bool = True) -> None:
    """The arguments `--memory` and `--master`; `has_connect`: the latter may be a server of Spark Connect."""
    parser.add_argument(
        "--memory",
        type=_memory,
        default="512m",
        metavar="SIZE",
        help="the heap of Spark, such as 2g, of each worker too; default: %(default)s",
    )
    parser.add_argument(
        "--master",
        type=_master if has_connect else _own_master,
        default="local[2]",
        metavar="URL",
        help="local[N]: N cores of this machine; spark://host:port: a cluster that reads the same --data"
        + ("; sc://host:port: a server of Spark Connect" if has_connect else "")
        + "; default: %(default)s",
    )


def _memory(text: str) -> str:
    from basestation.archive.spark.session import heap_mb

    try:
        heap_mb(text)
    except ValueError as why:
        raise argparse.ArgumentTypeError(str(why)) from None
    return text


def _master(text: str) -> "SparkMaster":
    from basestation.archive.spark.master import parse_master

    try:
        return parse_master(text)
    except ValueError as why:
        raise argparse.ArgumentTypeError(str(why)) from None


def _own_master(text: str) -> "SparkMaster":
    found = _master(text)
    if found.is_connect:
        raise argparse.ArgumentTypeError(
            "a server of Spark Connect cannot call back into this program, as the pipeline needs: "
            f"expected `local[N]` or `spark://host:port`, found `{found.name}`"
        )
    return found
