"""The tasks W1 to W8: what is asked, in SNEEql, and over which data."""

from collections.abc import Callable
from dataclasses import dataclass

from bench import data

_TIMES = "late revise by 10 min"
ROAD = f"road: pushed (site:integer, time:integer, temp:integer, vibration:float) {_TIMES}"
TRAFFIC = f"traffic: pushed (site:integer, time:integer, weight:integer) {_TIMES}"
TABLE = "tempClass: stored (temp:integer, category:string)"
SENSED = (
    "road: sensed (site:integer, time:integer, temp:integer, vibration:float) "
    f"every 1 min at sites 1 .. {{sites}} wait 10 sec {_TIMES}"
)
FINE = f"road: pushed (site:integer, temp:float) {_TIMES}"
WIND = f"wind: pushed (site:integer, time:integer, temp:integer, vibration:float) {_TIMES}"
RAIN = f"rain: pushed (site:integer, time:integer, temp:integer, vibration:float) {_TIMES}"

Q1 = "SELECT road.time, road.site, road.vibration FROM road WHERE road.temp < 50 AND road.vibration > 20"
EVERY_MINUTE = (
    "SELECT site, MIN(vibration) AS low, MAX(vibration) AS high, AVG(vibration) AS mean, COUNT(*) AS readings "
    "FROM road [FROM NOW-10 TO NOW SLIDE 1 MIN] GROUP BY site"
)
Q2 = (
    "SELECT MIN(temp), MAX(vibration) FROM road [FROM NOW-10 TO NOW SLIDE 1 MIN], "
    "traffic [FROM NOW-10 TO NOW SLIDE 1 ROW] WHERE road.site = traffic.site AND road.time = traffic.time"
)
Q3 = (
    "ISTREAM(SELECT road.site, tempClass.category FROM road [FROM NOW-5 TO NOW SLIDE 5 MIN], "
    "tempClass [SCAN 10 MIN] WHERE tempClass.temp = road.temp)"
)
LAST_HUNDRED = "ISTREAM(SELECT site, temp FROM road [FROM NOW-99 TO NOW SLIDE 10 ROWS] WHERE temp > 10)"
THREE = (
    "SELECT road.site, road.temp, wind.vibration, rain.temp AS wet FROM road [FROM NOW-2 TO NOW SLIDE 1 MIN], "
    "wind [FROM NOW-2 TO NOW SLIDE 1 MIN], rain [FROM NOW-1 TO NOW SLIDE 1 MIN] "
    "WHERE road.site = wind.site AND wind.site = rain.site"
)


@dataclass(frozen=True)
class Task:
    """`streams(sites, readings)` are the data; `queries(sites, streams, n)` the texts, numbered from 1."""

    name: str
    what: str
    schema: str  # with {sites} where their number is named
    streams: Callable
    queries: Callable
    table: bool = False  # tempClass is loaded


@dataclass(frozen=True)
class Case:
    """One task at one size. `queries` counts the standing queries of W6 and is 1 elsewhere."""

    task: Task
    sites: int
    readings: int
    batch: int  # 0: all in one
    queries: int = 1

    def schema(self):
        return self.task.schema.format(sites=self.sites)

    def streams(self):
        return self.task.streams(self.sites, self.readings)

    def texts(self, streams):
        return self.task.queries(self.sites, streams, self.queries)


def _road(sites, readings):
    return {"road": data.road(sites, readings)}


def _two(sites, readings):
    return {"road": data.road(sites, readings // 2), "traffic": data.traffic(sites, readings - readings // 2)}


def _three(sites, readings):
    names = ("road", "wind", "rain")
    return {name: data.road(sites, readings // 3, data.OFF + at * sites) for at, name in enumerate(names)}


def _sensed_two(sites, readings):
    return {
        "road": data.sensed_road(sites, readings // 2),
        "traffic": data.sensed_traffic(sites, readings - readings // 2),
    }


def _fine(sites, readings):
    return {"road": data.fine_road(sites, readings)}


def _sensed(sites, readings):
    return {"road": data.sensed_road(sites, readings)}


def _amended(sites, readings):
    return {"road": data.amended_road(sites, readings)}


def _one(text):
    return lambda sites, streams, n: [text]


def ranges_of(sites, streams, n):
    """Return the ranges of W6, which the ceiling gets as numbers."""
    return data.ranges(streams["road"].columns["temp"], sites, n)


def _standing(sites, streams, n):
    return [
        f"SELECT temp FROM road WHERE {low!r} < temp AND temp <= {high!r} AND site = {site}"
        for site, low, high in ranges_of(sites, streams, n)
    ]


TASKS = {
    task.name: task
    for task in (
        Task("W1", "filter and project (Q1)", ROAD, _road, _one(Q1)),
        Task("W2", "min, max, avg, count per site over 10 minutes every minute", ROAD, _road, _one(EVERY_MINUTE)),
        Task("W3", "Q2: readings of ten minutes joined with the last eleven vehicles", f"{ROAD}\n{TRAFFIC}", _two, _one(Q2)),
        Task("W4", "Q3: ISTREAM over a join with a table", f"{ROAD}\n{TABLE}", _road, _one(Q3), table=True),
        Task("W5", "ISTREAM over a window of 100 rows every 10", ROAD, _road, _one(LAST_HUNDRED)),
        Task("W6", "standing queries `lo < temp AND temp <= hi AND site = s`", FINE, _fine, _standing),
        Task("W7", "three windows joined on site", f"{ROAD}\n{WIND}\n{RAIN}", _three, _one(THREE)),
        Task("W1s", "W1 over a sensed road", SENSED, _sensed, _one(Q1)),
        Task("W2s", "W2 over a sensed road", SENSED, _sensed, _one(EVERY_MINUTE)),
        Task("W3s", "W3 over a sensed road", f"{SENSED}\n{TRAFFIC}", _sensed_two, _one(Q2)),
        Task("W4s", "W4 over a sensed road", f"{SENSED}\n{TABLE}", _sensed, _one(Q3), table=True),
        Task("W8", "W2 with 1 % late and 1 % revised", ROAD, _amended, _one(EVERY_MINUTE)),
    )
}  # fmt: skip
