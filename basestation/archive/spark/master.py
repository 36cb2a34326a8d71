"""Where Spark runs: on this machine, on a standalone cluster, or behind a server of Spark Connect, as a URL says."""

import os
import re
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from basestation.archive.spark.java import SparkUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT_S = 10
"""A master that accepts no connection for so long does not answer."""
REGISTER_S = 60
"""Spark itself gives up on a master that accepts connections and does not register a program for so long."""
WORKERS_S = 30
"""A cluster that gives no worker for so long has none free."""
_LOCAL = re.compile(r"local\[([1-9]\d{0,2}|\*)\]")
_CLUSTER = re.compile(r"spark://([\w.-]+:\d{1,5})(,[\w.-]+:\d{1,5})*")
_CONNECT = re.compile(r"sc://[\w.-]+:\d{1,5}(/;\S*)?")


@dataclass(frozen=True, slots=True)
class SparkMaster:
    """The URL of a master, and how many cores of this machine run tasks; None where a cluster runs them."""

    url: str
    cores: int | None

    @property
    def name(self) -> str:
        """The URL without its parameters, which may hold a token: for messages."""
        return _name(self.url)

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The hosts and ports of a cluster: a master, and those that stand by for it; or of a server of Spark Connect."""
        listed = self.url.partition("://")[2].partition("/")[0]
        pairs = (each.rpartition(":") for each in listed.split(","))
        return [(host, int(port)) for host, _, port in pairs]

    @property
    def is_connect(self) -> bool:
        """Whether it is a server of Spark Connect, which has a Spark of its own."""
        return self.url.startswith("sc://")


HERE = SparkMaster("local[2]", 2)


def parse_master(text: str) -> SparkMaster:
    """Read `local[2]`, `local[*]`, `spark://host:7077` or `sc://host:15002`. ValueError for anything else."""
    if found := _LOCAL.fullmatch(text):
        return SparkMaster(text, os.cpu_count() or 1 if found[1] == "*" else int(found[1]))
    if _CLUSTER.fullmatch(text) or _CONNECT.fullmatch(text):
        return SparkMaster(text, None)
    raise ValueError(f"expected `local[N]`, `spark://host:port` or `sc://host:port`, found `{_name(text)}`")


def _name(url: str) -> str:
    return url.partition(";")[0].removesuffix("/")


def find_own_address(master: SparkMaster) -> str:
    """The address under which a cluster reaches this machine. SparkUnavailableError where no master accepts a connection."""
    reasons = []
    for address in master.addresses:
        try:
            with socket.create_connection(address, timeout=CONNECT_S) as connection:
                return str(connection.getsockname()[0])
        except OSError as why:
            reasons.append(why.strerror or str(why))
    what = "server of Spark Connect" if master.is_connect else "Spark master"
    raise SparkUnavailableError(
        f"no {what} answers at {master.name} within {CONNECT_S} s ({reasons[0]}); start it, or use `--master local[2]`"
    )


def wait_for_workers(session: "SparkSession", master: SparkMaster) -> None:
    """Wait until a worker of the cluster runs a process for this session. SparkUnavailableError where none does."""
    context = session.sparkContext._jsc.sc()
    deadline = time.monotonic() + WORKERS_S
    while context.getExecutorMemoryStatus().size() < 2:  # the driver counts as one
        if time.monotonic() > deadline:
            raise SparkUnavailableError(
                f"the cluster {master.name} gives no worker within {WORKERS_S} s: all are busy or away, or `--memory` is more than they have"
            )
        time.sleep(0.1)
    session.conf.set("spark.sql.shuffle.partitions", str(max(2, session.sparkContext.defaultParallelism)))
