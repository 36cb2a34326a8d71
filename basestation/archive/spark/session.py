"""Starts a Spark session that is small enough for a gateway, logs only errors and writes only to our folder."""

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.archive.spark.class_archive import class_options
from basestation.archive.spark.connect import open_remote_session
from basestation.archive.spark.java import SparkUnavailableError, find_java
from basestation.archive.spark.master import HERE, REGISTER_S, SparkMaster, find_own_address, wait_for_workers
from gateway.errors import MoteloomError
from innet.deployment.history_table import LEAST_MB

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import SparkSession as SparkSession

# Measured on two cores: the serial collector and the first compiler only take a second off the start of a session.
# Spark refuses heaps below 450 MB.
HEAP = "512m"


class SparkFailedError(MoteloomError):
    """Spark could not run a statement; the message is Spark's own, without its stack."""

    code = "spark-failed"


MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.ignoreMissingFiles": "false",  # a day that was compacted meanwhile is read again, never left out
    "spark.sql.ansi.enabled": "false",  # a division by zero is null (semantics 5.3)
    "spark.sql.parquet.aggregatePushdown": "false",
}
"""Settings on which the meaning of a statement depends."""
BESIDE_MB = 388
"""Of memory that Java takes beside its heap. With less available, Spark would push the station into swap: it is not started."""


def heap_mb(heap: str) -> int:
    """The size of a heap such as `512m` or `2g`. ValueError for another text, or less than Spark takes."""
    found = re.fullmatch(r"([1-9]\d{0,6})([mg])", heap)
    if found is None:
        raise ValueError(f"`{heap}` is no size of a heap: expected such as 512m or 2g")
    size = int(found[1]) * (1024 if found[2] == "g" else 1)
    if size < LEAST_MB:
        raise ValueError(f"expected a heap of {LEAST_MB}m or more, found `{heap}`")
    return size


def find_requirements(heap: str) -> Path:
    """The Java to use. SparkUnavailableError where Java, PySpark or free memory for a heap is missing, with the remedy."""
    java = find_java()
    if find_spec("pyspark") is None:
        raise SparkUnavailableError("history needs PySpark: pip install 'moteloom[history]'")
    available, needed = _available_mb(), heap_mb(heap) + BESIDE_MB
    if available is not None and available < needed:
        raise SparkUnavailableError(
            f"Spark needs {needed} MB of free memory, and {available} MB are available; give it a smaller heap "
            "(`--memory`, or `history.memory_mb` of the deployment), or ask on another machine with a copy of the archive"
        )
    return java


def start_session(
    state: Path,
    master: SparkMaster = HERE,
    heap: str = HEAP,
    is_background: bool = False,
    result_bytes: int | None = None,
    java_options: str | None = None,
) -> "SparkSession":
    """A session with its scratch files, and what Java prints, in `state`. SparkUnavailableError names the missing part.

    `is_background` lowers the priority of this process and of Java. A statement fails whose answer is larger than `result_bytes`.
    A server of Spark Connect has its own heap and limits. The `java_options` take the place of those that map the class archive.
    """
    if master.is_connect:
        return _open_remote(master)
    java = find_requirements(heap)
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkUnavailableError(f"history needs PySpark ({error}): pip install 'moteloom[history]'") from error
    address = "127.0.0.1" if master.cores else find_own_address(master)
    os.environ["JAVA_HOME"] = str(java)
    os.environ["SPARK_LOCAL_IP"] = address
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    options = {
        "spark.driver.memory": heap,
        # Where the heap is too small, Java ends: a Spark that goes on without some of its threads never answers.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError "
        + (class_options(java) if java_options is None else java_options),
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark keeps the plans of what it ran for pages that are off: a thousand statements fill a small heap.
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.log.level": "ERROR",
        **MEANING,
        "spark.sql.warehouse.dir": str(state / "spark" / "warehouse"),
        "spark.local.dir": str(state / "spark" / "scratch"),
    }
    if master.cores:
        options |= {
            "spark.default.parallelism": str(master.cores),
            "spark.sql.shuffle.partitions": str(master.cores),
        }
    else:
        options["spark.executor.memory"] = heap
    if result_bytes is not None:
        options["spark.driver.maxResultSize"] = str(result_bytes)
    builder = SparkSession.builder.master(master.url).appName("moteloom")
    for name, value in options.items():
        builder = builder.config(name, value)
    state.mkdir(parents=True, exist_ok=True)
    log = state / "spark.log"
    if is_background:
        os.nice(5)  # a station on this machine comes first
    try:
        with _stderr_into(log):
            session = builder.getOrCreate()
    except Exception as error:  # py4j and pyspark have no common base
        if not master.cores and "unresponsive" in log.read_text(encoding="utf-8", errors="replace"):
            raise SparkUnavailableError(
                f"no Spark master registers this program at {master.name} within {REGISTER_S} s; is its version the one of PySpark here?"
            ) from error
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        reason = next((line for line in said if "rror" in line), said[-1] if said else str(error))
        raise SparkUnavailableError(f"Spark does not start: {reason.strip()}") from error
    if not master.cores:
        try:
            wait_for_workers(session, master)
        except BaseException:
            session.stop()
            raise
    return session


def _open_remote(master: SparkMaster) -> "SparkSession":
    session = open_remote_session(master)
    for name, value in MEANING.items():
        session.conf.set(name, value)
    return session


def join_session(given: "SparkSession | None", master: SparkMaster, heap: str) -> "SparkSession":
    """A session with views and settings of its own, in the Spark of another session, of the program, or in a new one."""
    from pyspark.sql import SparkSession

    session = given or SparkSession.getActiveSession()
    if session is None:
        folder = tempfile.mkdtemp(prefix="moteloom-spark-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        session = start_session(Path(folder), master, heap)
    return branch_session(session)


def branch_session(session: "SparkSession") -> "SparkSession":
    """A session with views and settings of its own, in the Spark of another one."""
    own = session.newSession()
    for name, value in MEANING.items():
        own.conf.set(name, value)
    return own


@contextmanager
def report_failures() -> Iterator[None]:
    """Raise SparkFailedError where Spark fails inside, SparkUnavailableError where its process has ended.

    KeyboardInterrupt where Ctrl-C has cancelled its jobs.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            cause = cause.__context__
        if isinstance(error, Py4JNetworkError):
            raise SparkUnavailableError(
                "the process of Spark has ended, as it does where its heap is too small: ask for a shorter range, or give it more memory"
            ) from error
        raise SparkFailedError(f"Spark failed: {_find_reason(str(error)) or type(error).__name__}") from error


def _find_reason(text: str) -> str:
    """Of the text of an error, a class of Spark's errors with its message; else the innermost cause, or the first line."""
    if found := re.search(r"\[[A-Z][A-Z0-9_.]+\][^\n]*", text):
        return found.group(0)
    causes = re.findall(r"Caused by: (?:[\w.$]+: )?([^\n]+)", text)
    return str(causes[-1]) if causes else text.split("\n", 1)[0].strip()


@contextmanager
def _stderr_into(path: Path) -> Iterator[None]:
    """Let processes that start meanwhile, and this one, write standard error to a file: Java prints warnings at every start."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _available_mb() -> int | None:
    """The memory that new programs can use; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable:")), None)
