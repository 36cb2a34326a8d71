"""Spark Connect: sessions in the Spark of a server, over gRPC. This machine needs no Java for them."""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING

from basestation.archive.spark.java import SparkUnavailableError
from basestation.archive.spark.master import CONNECT_S, SparkMaster, find_own_address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODULES = "grpc", "grpc_status", "google.rpc", "zstandard", "pandas"
_NO_TLS = (
    "does not speak gRPC over TLS, with a certificate that this machine trusts, as `use_ssl=true` and `token=` ask for; "
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names a file with other authorities"
)


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
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    try:
        builder = DefaultChannelBuilder(master.url)
    except PySparkException:  # its text has the parameter that is wrong, which may be the token
        raise SparkUnavailableError(
            f"the parameters of {master.name} cannot be read: expected `/;NAME=VALUE;NAME=VALUE`, with %3D for `=` and %2F for `/` in a value"
        ) from None
    find_own_address(master)
    with builder.toChannel() as channel:  # PySpark itself repeats its first request for ten minutes
        try:
            grpc.channel_ready_future(channel).result(timeout=CONNECT_S)
        except grpc.FutureTimeoutError:
            lacks = _NO_TLS if builder.secure else "does not speak gRPC, as Spark Connect does; is the port right?"
            raise SparkUnavailableError(f"the server at {master.name} {lacks}") from None
    logging.getLogger("SQLQueryContextLogger").disabled = True  # each error as JSON, with the stack of Java
    try:
        session = SparkSession.builder.remote(master.url).appName("moteloom").getOrCreate()
        session.version  # noqa: B018  a server of another kind fails here
    except (PySparkException, grpc.RpcError) as error:
        reason = str(error).split("\n", 1)[0]
        raise SparkUnavailableError(f"the server at {master.name} opens no session: {reason}") from error
    return session


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of the package above it
        return False
