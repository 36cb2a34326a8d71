"""Home Assistant: the discovery messages that make a sensor of each column of a query's answers.

Home Assistant reads retained messages under `homeassistant/sensor/ID/config`. An empty one removes the sensor.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from basestation.results.wire import Json
from basestation.station.query_names import qualify

DISCOVERY = "homeassistant"
"""The usual prefix of discovery topics."""
UNITS = {
    "Cel": ("°C", "temperature"), "%": ("%", None), "Pa": ("Pa", "pressure"), "V": ("V", "voltage"), "mV": ("mV", "voltage"),
    "lx": ("lx", "illuminance"), "kg": ("kg", "weight"), "m": ("m", "distance"),
}  # fmt: skip
"""By unit of a column (UCUM), the unit and the class of device in Home Assistant."""


def describe_sensors(base: str, described: Json, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """(topic, payload) for each column of a query, whose rows are published below `base`.

    A sensor is called after the query as operators address it, `OWNER.NAME`: several users may have a query of that name.
    """
    query, columns = described["number"], described["columns"]
    title = qualify(described["name"], described["owner"]) or f"query {query}"
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        value = f"value_json[{json.dumps(name, ensure_ascii=False)}]"
        sensor: dict[str, Any] = {
            "name": f"{title} {name}",
            "unique_id": sensor_id(base, query, number),
            "state_topic": f"{base}{query}/result",
            # A revision removes rows with a weight of -1: these are no new values.
            "value_template": f"{{{{ {value} if value_json._weight > 0 else this.state }}}}",
            "json_attributes_topic": f"{base}{query}/result",
        }
        yield topic_of(base, query, number), json.dumps(sensor | _describe_unit(column)).encode()


def forget_sensors(base: str, query: int, columns: Iterable[int]) -> Iterator[tuple[str, bytes]]:
    """(topic, empty payload) for each of these columns of a query."""
    return ((topic_of(base, query, number), b"") for number in columns)


def forget_older_sensors(base: str, query: int, count: int) -> Iterator[tuple[str, bytes]]:
    """(topic, empty payload) for each of so many columns, whose id an older program wrote otherwise: with `_` for each character of the prefix but letters and digits."""
    prefix = "".join(c if c.isascii() and c.isalnum() else "_" for c in base.strip("/"))
    for number in range(count):
        topic = _topic_of(f"moteloom_{prefix}_{query}_{number}")
        if topic != topic_of(base, query, number):
            yield topic, b""


def topic_of(base: str, query: int, column: int) -> str:
    """The topic of the discovery message of a column."""
    return _topic_of(sensor_id(base, query, column))


def _topic_of(sensor: str) -> str:
    return f"{DISCOVERY}/sensor/{sensor}/config"


def sensor_id(base: str, query: int, column: int) -> str:
    """An id with letters, digits, `-` and `_` only, which no station with another prefix has.

    Levels of the prefix are joined by `_`; any other byte than that of a letter or digit stands as `-` and two hexadecimal digits.
    """
    prefix = "".join(map(_escape, base.strip("/")))
    return f"moteloom_{prefix}_{query}_{column}"


def _escape(character: str) -> str:
    if character.isascii() and character.isalnum():
        return character
    return "_" if character == "/" else "".join(f"-{byte:02x}" for byte in character.encode())


def _describe_unit(column: Mapping[str, Any]) -> dict[str, str]:
    if column["type"] not in ("integer", "float"):
        return {}
    unit, kind = UNITS.get(column.get("unit", ""), (column.get("unit"), None))
    found = {"state_class": "measurement"}
    return found | ({"unit_of_measurement": unit} if unit else {}) | ({"device_class": kind} if kind else {})
