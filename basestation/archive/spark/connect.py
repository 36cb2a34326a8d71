"""Spark Connect: sessions in the Spark of a server, over gRPC. This machine needs no Java for them."""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

from basestation.archive.spark.java import SparkUnavailableError
from basestation.archive.spark.master import CONNECT_S, SparkMaster, find_own_address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODULES = "grpc", "grpc_status", "google.rpc", "zstandard", "pandas"


def open_remote_session(master: SparkMaster) -> "SparkSession":
    """A session in the Spark behind a server. SparkUnavailableError where the client is not installed, or no server answers."""
    if find_spec("pyspark") is None:
        raise SparkUnavailableError("history needs PySpark: pip install 'moteloom[history]'")
    missing = [name for name in _MODULES if not _is_installed(name)]
    if missing:
        raise SparkUnavailableError(f"Spark Connect needs {', '.join(missing)}: pip install 'moteloom[connect]'")
    import grpc
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    find_own_address(master)
    [(host, port)] = master.addresses
    with grpc.insecure_channel(f"{host}:{port}") as channel:  # PySpark itself repeats its first request for ten minutes
        try:
            grpc.channel_ready_future(channel).result(timeout=CONNECT_S)
        except grpc.FutureTimeoutError:
            raise SparkUnavailableError(
                f"the server at {master.url} does not speak gRPC, as Spark Connect does; is the port right?"
            ) from None
    logging.getLogger("SQLQueryContextLogger").disabled = True  # each error as JSON, with the stack of Java
    try:
        session = SparkSession.builder.remote(master.url).appName("moteloom").getOrCreate()
        session.version  # noqa: B018  a server of another kind fails here
    except (PySparkException, grpc.RpcError) as error:
        reason = str(error).split("\n", 1)[0]
        raise SparkUnavailableError(f"the server at {master.url} opens no session: {reason}") from error
    return session


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of the package above it
        return False
