"""Why Spark does not answer a query: it has no exact way to."""

from gateway.errors import MoteloomError


class SparkRefusedError(MoteloomError):
    """Spark cannot give the answer of the live engine; the message names the construct and the reason."""

    code = "not-exact"
