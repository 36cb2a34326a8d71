"""docs/grafana.md and examples/grafana are true: the page's commands work, and each panel gets its frame from a running station.

Grafana itself takes no part; `tests.rest.infinity` asks as the documentation of the data source says.
"""

import json
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import yaml

from tests.docs.pages import DOCS, ROOT, blocks
from tests.docs.running_station import running_station
from tests.rest.infinity import InfinityDataSource, provision

PAGE, EXAMPLE = DOCS / "grafana.md", ROOT / "examples" / "grafana"
SOURCE = EXAMPLE / "provisioning" / "datasources" / "moteloom.yaml"
DASHBOARD = json.loads((EXAMPLE / "road.dashboard.json").read_text(encoding="utf-8"))
COMMANDS = [
    line.removeprefix("$ ") for block in blocks(PAGE, "sh") for line in block.text.splitlines() if line.startswith("$ ")
]
WINDOWS = 4
"""At least so many are answered before the panels ask."""


def target(kind, title):
    [panel] = [each for each in DASHBOARD["panels"] if (each["type"], each["title"]) == (kind, title)]
    [found] = panel["targets"]
    return found


def wait_for_windows(read):
    """The windows of the query, once there are some with all their readings; the last one may still be revised."""
    end = time.monotonic() + 100
    while time.monotonic() < end:
        windows = read("/v1/queries/road-mean/current?last=1000").json()["windows"]
        if len([each for each in windows if each["coverage"]["road"] == [4, 4]]) >= WINDOWS:
            return windows
        time.sleep(0.2)
    raise AssertionError("the query answered too few windows")


@pytest.fixture(scope="module")
def grafana(tmp_path_factory, need):
    """(the data source that the files provision, a reader of the station): the commands of the page have run."""
    need("bash", "curl")
    start, *commands = COMMANDS
    with running_station(f"{start} --speed 60", tmp_path_factory.mktemp("station")) as station:
        script = "\n".join([*commands, 'echo "$MOTELOOM_TOKEN" > grafana.token'])
        done = station.run("bash", "-euc", script.replace("curl", "curl -sS --fail-with-body"), seconds=100)
        assert done.returncode == 0, done.stdout + done.stderr
        secrets = {
            name: (station.folder / name).read_text().strip() for name in ("grafana.token", "moteloom-data/token")
        }
        environment = {"MOTELOOM_URL": station.url, "MOTELOOM_TOKEN": secrets["grafana.token"]}
        [settings] = provision(SOURCE, environment)["datasources"]
        admin = {"authorization": f"Bearer {secrets['moteloom-data/token']}"}
        yield InfinityDataSource(settings), lambda path: httpx.get(station.url + path, headers=admin, timeout=60)


def as_ms(text):
    return int(datetime.fromisoformat(text).timestamp() * 1_000)


@pytest.mark.promise("pages-are-true")
@pytest.mark.timeout(300)
def test_curve_has_each_window_of_the_range_once(grafana):
    source, read = grafana
    assert source.check_health()
    windows = wait_for_windows(read)
    first, last = windows[1], windows[WINDOWS - 1]  # the range leaves windows out on both sides
    frame = source.ask(target("timeseries", "Mean temperature of the lanes"), as_ms(first["time"]), as_ms(last["time"]))
    assert list(frame) == ["mean", "readings due", "readings used", "time"]
    assert frame["time"] == [
        datetime.fromisoformat(first["time"]) + timedelta(minutes=number) for number in range(WINDOWS - 1)
    ]
    again = read(f"/v1/queries/road-mean/current?from={first['time']}&to={last['time']}").json()["windows"]
    assert [each["time"] for each in again] == [each["time"] for each in windows[1:WINDOWS]]
    for number, window in enumerate(again):
        if window["coverage"]["road"] == [4, 4]:  # no reading can revise it
            shown = frame["mean"][number], frame["readings used"][number], frame["readings due"][number]
            assert shown == (window["rows"][0][0], 4.0, 4.0) and -30 < shown[0] < 30
    before = as_ms(windows[0]["time"]) - 1
    assert source.ask(target("timeseries", "Mean temperature of the lanes"), before - 60_000, before)["time"] == []


@pytest.mark.promise("pages-are-true")
@pytest.mark.timeout(300)
def test_tables_have_latest_values_and_motes(grafana):
    source, read = grafana
    wait_for_windows(read)
    begin, end = datetime.now(UTC) - timedelta(hours=1), time.monotonic() + 100
    latest = source.ask(target("table", "Latest values"), 0, 1)
    while latest["temp"].count(None) + 4 - len(latest["temp"]) and time.monotonic() < end:  # readings are on their way
        time.sleep(0.2)
        latest = source.ask(target("table", "Latest values"), 0, 1)
    assert latest["site"] == [1.0, 2.0, 3.0, 4.0] and set(latest["state"]) <= {"ok", "late", "lost"}
    for attribute, low, high in (("temp", -40, 85), ("vibration", 0, 250)):
        known = [value for value in latest[attribute] if value is not None]
        assert all(low <= value <= high for value in known), attribute
        assert all(at > begin for at, value in zip(latest[f"{attribute} at"], latest[attribute], strict=True) if value)
    assert all(isinstance(value, float) for value in latest["temp"]), "the query reads it at every site"
    motes = source.ask(target("table", "Motes"), 0, 1)
    assert motes["mote"] == [1.0, 2.0, 3.0, 4.0] and all(at > begin for at in motes["heard"])
    assert all(0 <= missed <= of for missed, of in zip(motes["missed"], motes["of"], strict=True))
    assert all(motes["meaning"]) and {type(each) for each in motes["parent"]} == {float}


def test_files_hold_no_token_and_name_what_they_use():
    [raw] = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))["datasources"]
    assert raw["secureJsonData"] == {"bearerToken": "$MOTELOOM_TOKEN"} and raw["url"] == "$MOTELOOM_URL"
    used = {each["datasource"]["uid"] for panel in DASHBOARD["panels"] for each in (panel, *panel["targets"])}
    assert used == {raw["uid"]}
    [provider] = provision(
        EXAMPLE / "provisioning" / "dashboards" / "moteloom.yaml", {"MOTELOOM_DASHBOARDS": str(EXAMPLE)}
    )["providers"]
    assert provider["type"] == "file" and provider["options"]["path"] == str(EXAMPLE)
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"-e {name}" in page for name in ("MOTELOOM_URL=", "MOTELOOM_TOKEN ", "MOTELOOM_DASHBOARDS="))
    for panel in DASHBOARD["panels"]:
        names = {column["text"] for column in panel["targets"][0]["columns"]}
        for step in panel.get("transformations", ()):
            assert set(step["options"]["indexByName"]) == names
