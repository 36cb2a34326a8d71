"""The part of Grafana's data source Infinity that a dashboard of ours relies on, after its documentation.

A panel has targets. The front end puts the times of the dashboard into `${__from}` and `${__to}`; the plugin prefixes the base URL,
sends the token, parses the answer with its backend parser and makes a frame: a field for each column, in the order of their names.
It raises where a dashboard asks for more than the documentation promises.
"""

import csv
import io
import json
import re
from datetime import datetime
from pathlib import Path

import httpx
import yaml

ACCEPT = {"json": "application/json;q=0.9,text/plain", "csv": "text/csv; charset=utf-8"}
"""The media types that the plugin accepts, by the type of the target."""
KNOWN = {
    "refId", "datasource", "type", "parser", "source", "format", "url", "url_options", "root_selector", "columns",
}  # fmt: skip


def provision(path: Path, environment):
    """The data sources of a provisioning file, with the variables of the environment in their values."""

    def fill(value):
        if isinstance(value, dict):
            return {key: fill(each) for key, each in value.items()}
        if isinstance(value, list):
            return [fill(each) for each in value]
        return re.sub(r"\$(\w+)", lambda name: environment[name[1]], value) if isinstance(value, str) else value

    return fill(yaml.safe_load(path.read_text(encoding="utf-8")))


class InfinityDataSource:
    """A data source as its provisioning describes it."""

    def __init__(self, settings):
        assert settings["type"] == "yesoreyeram-infinity-datasource"
        assert settings["jsonData"]["auth_method"] == "bearerToken"
        self.uid, self.url = settings["uid"], settings["url"]
        self._allowed = settings["jsonData"]["allowedHosts"]
        self._health = settings["jsonData"]["customHealthCheckUrl"]
        self._token = settings["secureJsonData"]["bearerToken"]

    def check_health(self):
        """Whether *Save & test* succeeds: the URL answers 200."""
        return self._send("GET", self._health, (), {}).status_code == 200

    def ask(self, target, from_ms, to_ms):
        """The frame of a target for the times of a dashboard: a list of values by the name of each field."""
        assert target.keys() <= KNOWN and target["datasource"]["uid"] == self.uid
        assert target["parser"] == "backend" and target["source"] == "url"
        times = {"${__from}": str(from_ms), "${__to}": str(to_ms)}

        def interpolate(text):
            for name, value in times.items():
                text = text.replace(name, value)
            assert "$" not in text, f"no variable that this data source knows: {text}"
            return text

        url = interpolate(target["url"])
        if not url.startswith(self.url):
            url = self.url + url
        options = target["url_options"]
        assert options.keys() <= {"method", "params", "headers"}
        parameters = [(each["key"], interpolate(each["value"])) for each in options["params"]]
        headers = {each["key"]: each["value"] for each in options.get("headers", ())}
        answer = self._send(options["method"], url, parameters, {"accept": ACCEPT[target["type"]]} | headers)
        assert answer.status_code == 200, answer.text
        return make_frame(target, answer.text)

    def _send(self, method, url, parameters, headers):
        assert method == "GET", "others are dangerous to the plugin"
        assert any(url.startswith(allowed) for allowed in self._allowed)
        bearer = {"authorization": f"Bearer {self._token}"}
        return httpx.request(method, url, params=list(parameters), headers=headers | bearer, timeout=60)


def make_frame(target, body):
    """The fields of an answer as the backend parser makes them, sorted by name."""
    if target["type"] == "json":
        rows = select(json.loads(body), target["root_selector"])
        assert isinstance(rows, list)
        found = [
            {column["text"]: select(row, column["selector"], None) for column in target["columns"]} for row in rows
        ]
    else:
        assert target["type"] == "csv" and target["root_selector"] == ""
        names = {column["selector"]: column["text"] for column in target["columns"]}
        found = [
            {names[name]: value for name, value in row.items() if name in names}
            for row in csv.DictReader(io.StringIO(body, newline=""))
        ]
    kinds = {column["text"]: column["type"] for column in target["columns"]}
    assert len(kinds) == len(target["columns"]), "two columns have one name"
    return {name: [CONVERT[kinds[name]](row[name]) for row in found] for name in sorted(kinds)}


def select(value, path, *default):
    """The value at a GJSON path of plain names. KeyError without a default where there is none."""
    for part in path.split("."):
        assert re.fullmatch(r"\w+", part), f"no plain path: {path}"
        if not isinstance(value, dict) or part not in value:
            if default:
                return default[0]
            raise KeyError(path)
        value = value[part]
    return value


def to_number(value):
    """A nullable 64-bit float; a string that is no number is null."""
    if isinstance(value, str):
        return float(value) if re.fullmatch(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?", value) else None
    return None if isinstance(value, bool) or value is None else float(value)


def to_time(value):
    """A nullable time of ISO 8601 with a zone, as Go's RFC3339 reads it."""
    if not isinstance(value, str) or not re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", value
    ):
        return None
    return datetime.fromisoformat(value)


def to_string(value):
    """A nullable string; of a number or a boolean its text, and null of a list or an object."""
    return json.dumps(value) if isinstance(value, int | float) else value if isinstance(value, str) else None


CONVERT = {"number": to_number, "timestamp": to_time, "string": to_string}
