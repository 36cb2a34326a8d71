"""A client of a running station, for programs and notebooks.

    >>> from moteloom.client import connect
    >>> station = connect("http://127.0.0.1:8137", token="…")          # doctest: +SKIP
    >>> query = station.submit("SELECT site, temp FROM lab [NOW]")     # doctest: +SKIP
    >>> for update in query.updates():                                 # doctest: +SKIP
    ...     print(update.time, update.rows)
    >>> query.current().to_polars()                                    # doctest: +SKIP

`connect_async` gives the same with `await` and `async for`. Updates go on after a cut connection and after a restart of the station,
each once and in order. Arrow, pandas and Polars are imported when they are asked for.
"""

from moteloom.client.answer import Answer
from moteloom.client.async_station import AsyncQuery, AsyncStationClient, connect_async
from moteloom.client.jobs import AsyncStationJob, StationJob
from moteloom.client.requests import StationError
from moteloom.client.results import ResultsGoneError, Update
from moteloom.client.station import Query, StationClient, connect

__all__ = [
    "Answer",
    "AsyncQuery",
    "AsyncStationClient",
    "AsyncStationJob",
    "Query",
    "ResultsGoneError",
    "StationClient",
    "StationError",
    "StationJob",
    "Update",
    "connect",
    "connect_async",
]
