"""Answers on a broker: flat objects with a retained schema, each number once the broker has it, over outages and restarts."""

import json
import sqlite3
from dataclasses import replace

import pytest

from basestation.results.flat import flat_objects
from basestation.station import result_publisher
from basestation.station.home_assistant import sensor_id
from basestation.station.journal import Command
from basestation.station.journal_file import backup, restore
from basestation.station.result_publisher import FILE, ResultPublisher
from basestation.station.retention import Budget
from gateway.errors import TransportError
from gateway.transports import mqtt
from gateway.transports.mqtt import BrokerConnection
from tests.brokers import KINDS, BrokerWire, wait_until
from tests.station.small_network import QUERIES, SmallNetwork


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__.lower())
def broker(request, tmp_path, monkeypatch):
    monkeypatch.setattr(mqtt, "FIRST_BACKOFF_SECONDS", 0.02)
    monkeypatch.setattr(mqtt, "LONGEST_BACKOFF_SECONDS", 0.1)
    monkeypatch.setattr(result_publisher, "PAUSE_SECONDS", 0.02)
    wire = BrokerWire(request.param, tmp_path / "broker")
    yield wire
    wire.close()


class Reader:
    """A dashboard: reads everything under the prefix."""

    def __init__(self, broker, role="dashboard"):
        self.connection = BrokerConnection(broker.settings(), role, None, ["lab/v1/query/#"])
        self.connection.open()
        self.schemas, self.objects = {}, []

    def read(self):
        for message in self.connection.take():
            query, _, what = message.topic.removeprefix("lab/v1/query/").partition("/")
            if what == "result":
                self.objects.append(json.loads(message.payload))
            else:
                self.schemas[int(query)] = json.loads(message.payload) if message.payload else None
        return self

    def numbers(self, query):
        return {each["_number"] for each in self.read().objects if each["_query"] == query}


@pytest.fixture
def network(tmp_path):
    found = SmallNetwork(tmp_path)
    for text in QUERIES:
        found.submit(text)
    found.live(60)
    yield found
    found.end()


def with_rows(network, query):
    """The numbers of a feed whose lines have rows."""
    lines = map(json.loads, network.answers(query).splitlines())
    return {line["number"] for line in lines if any(line.get(name) for name in ("row", "rows", "added", "removed"))}


def test_rows_are_flat_objects_with_their_own_time(network, broker):
    reader = Reader(broker)
    with ResultPublisher(network.journal, broker.settings(), network.folder):
        wait_until(lambda: all(reader.numbers(query) >= with_rows(network, query) for query in (1, 2, 3)))
        assert [c["name"] for c in reader.schemas[3]["columns"]] == ["mean", "n"] and reader.schemas[3]["query"] == 3
        late = Reader(broker, "phone")
        wait_until(lambda: late.read().schemas.keys() == {1, 2, 3})  # the schema waits for those who come later
        network.change("stop", 3)
        wait_until(lambda: reader.read().schemas[3] is None)
        late.connection.close()
    found = [each for each in reader.objects if each["_query"] == 3][-1]
    assert {"_time", "_query", "_number", "_revision", "_weight", "_used", "_due", "mean", "n"} == found.keys()
    assert found["_time"].endswith("Z") and (found["_used"], found["_due"]) == (6, 6)
    reader.connection.close()


def test_columns_of_one_name_keep_their_values(network, broker):
    network.submit("SELECT a.volt, b.volt, a.temp FROM field [NOW] a, field [NOW] b WHERE a.site < b.site")
    network.live(30)
    reader = Reader(broker)
    with ResultPublisher(network.journal, broker.settings(), network.folder):
        wait_until(lambda: reader.numbers(4) >= with_rows(network, 4) != set())
        assert [column["name"] for column in reader.schemas[4]["columns"]] == ["volt", "volt_2", "temp"]
    assert all(each.keys() >= {"volt", "volt_2", "temp"} for each in reader.objects if each["_query"] == 4)
    reader.connection.close()


def test_outage_and_restart_leave_no_gap(network, broker):
    reader = Reader(broker)
    with ResultPublisher(network.journal, broker.settings(), network.folder) as publisher:
        wait_until(lambda: reader.numbers(1) >= with_rows(network, 1))
        broker.kill()
        network.live(40)
        wait_until(lambda: publisher._failure is not None)
        broker.revive()
        wait_until(lambda: reader.connection.problem is None and publisher.connection.problem is None)
    before = len(reader.read().objects)
    network.live(40)
    kept = json.loads((network.folder / FILE).read_text())
    with ResultPublisher(network.journal, broker.settings(), network.folder) as publisher:
        assert publisher.positions[1].after == kept["after"]["1"] > 0
        wait_until(lambda: reader.numbers(1) >= {n for n in with_rows(network, 1) if n > kept["after"]["1"]})
    assert before < len(reader.objects) and publisher.lost == 0
    reader.connection.close()


def test_results_dropped_before_they_were_published_are_counted(network, broker):
    network.journal.trim(Budget(numbers=2), 0)
    first, behind = network.journal.bounds(1)
    assert first > 1
    with ResultPublisher(network.journal, broker.settings(), network.folder) as publisher:
        wait_until(lambda: 1 in publisher.positions and publisher.positions[1].after == behind - 1)
        assert publisher.lost >= first - 1


def test_results_are_published_once_the_broker_has_them(network, broker, monkeypatch):
    monkeypatch.setattr(BrokerConnection, "_on_publish", lambda *_: None)  # its acknowledgements are lost
    monkeypatch.setattr(result_publisher, "ACKNOWLEDGED_WITHIN_SECONDS", 0.05)
    with ResultPublisher(network.journal, broker.settings(), network.folder) as publisher:
        wait_until(lambda: publisher._failure is not None)
        assert publisher._failure.endswith("acknowledges nothing for 0.05 s")
    assert publisher.positions[1].after == 0 and not (network.folder / FILE).exists()


def test_restored_backup_publishes_results_that_reuse_numbers(network, broker, tmp_path):
    (tmp_path / "kept").mkdir()
    backup(network.folder, tmp_path / "kept/monday.db")
    with ResultPublisher(network.journal, broker.settings(), network.folder):
        network.live(60)
        after = network.journal.bounds(1)[1] - 1
        wait_until(lambda: (network.folder / FILE).exists())
        wait_until(lambda: json.loads((network.folder / FILE).read_text())["after"].get("1") == after)
    network.end()
    restore(tmp_path / "kept/monday.db", network.folder)
    network.start()
    network.live(20)
    reader = Reader(broker)
    wait_until(lambda: reader.connection.problem is None)
    with ResultPublisher(network.journal, broker.settings(), network.folder):
        wait_until(lambda: reader.numbers(1) == with_rows(network, 1))
    reader.connection.close()


def test_query_that_ended_between_runs_loses_its_schema(network, broker):
    with ResultPublisher(network.journal, broker.settings(), network.folder):
        reader = Reader(broker)
        wait_until(lambda: reader.read().schemas.keys() == {1, 2, 3})
        wait_until(lambda: (network.folder / FILE).exists())
        reader.connection.close()
    network.change("stop", 3)
    late = Reader(broker, "phone")
    wait_until(lambda: late.read().schemas.get(3) is not None)
    with ResultPublisher(network.journal, broker.settings(), network.folder):
        wait_until(lambda: late.read().schemas[3] is None)
    late.connection.close()


def test_schema_has_the_owner_of_the_name(network, broker):
    for owner in ("anna", "ben"):
        network.durable.submit(QUERIES[0], network.now_ms, name="mean", owner=owner)
    network.live(30)
    reader = Reader(broker)
    with ResultPublisher(network.journal, broker.settings(), network.folder):
        wait_until(lambda: all(reader.numbers(query) >= with_rows(network, query) != set() for query in (4, 5)))
        owned = [(reader.schemas[query]["name"], reader.schemas[query]["owner"]) for query in (1, 4, 5)]
    assert owned == [(None, None), ("mean", "anna"), ("mean", "ben")]
    reader.connection.close()


def test_correction_of_a_finished_query_is_published(network, broker):
    number = network.submit(f"{QUERIES[0]} FOR 30 SEC")
    network.live(90)
    assert network.query(number)["state"] == "finished"
    reader = Reader(broker)
    with ResultPublisher(network.journal, broker.settings(), network.folder) as publisher:
        wait_until(lambda: reader.numbers(number) >= with_rows(network, number) != set())
        wait_until(lambda: reader.read().schemas[number] is None)
        before = with_rows(network, number)
        text = "REVISE field SET temp = 1.5 WHERE site = 3"
        assert network.durable.take_data(Command("correct", network.now_ms, text), text)
        network.live(20)
        assert with_rows(network, number) > before
        wait_until(lambda: reader.numbers(number) == with_rows(network, number))
        assert number in publisher.positions
        for _ in range(200):  # nothing arrives in an hour and a half but time
            network.now_ms += 30_000
            network.network.run_until(network.now_ms)
            network.durable.step(network.now_ms)
        assert "account" in network.query(number)
        wait_until(lambda: number not in publisher.positions)
    reader.connection.close()


def test_resumed_query_is_published_again(network, broker):
    reader = Reader(broker)
    with ResultPublisher(network.journal, broker.settings(), network.folder):
        wait_until(lambda: reader.numbers(1) >= with_rows(network, 1) and reader.schemas[1] is not None)
        network.durable.change("exceed", 1, network.now_ms, "it took too much")
        assert network.query(1)["state"] == "failed"
        wait_until(lambda: reader.read().schemas[1] is None)
        before = with_rows(network, 1)
        network.change("resume", 1)
        wait_until(lambda: reader.read().schemas[1] is not None)
        network.live(40)
        assert with_rows(network, 1) > before
        wait_until(lambda: reader.numbers(1) == with_rows(network, 1))
    reader.connection.close()


def test_journal_that_cannot_be_read_does_not_end_publishing(network, broker, monkeypatch):
    bounds = network.journal.bounds

    def fail(_):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(network.journal, "bounds", fail)
    with ResultPublisher(network.journal, broker.settings(), network.folder) as publisher:
        wait_until(lambda: publisher._failure == "disk I/O error")
        monkeypatch.setattr(network.journal, "bounds", bounds)
        wait_until(lambda: 1 in publisher.positions and publisher.positions[1].after == bounds(1)[1] - 1)


def test_damaged_positions_publish_everything_again(network, broker):
    (network.folder / FILE).write_text("{")
    assert ResultPublisher(network.journal, broker.settings(), network.folder).positions == {}


def test_broker_that_acknowledges_nothing_is_an_error(broker):
    connection = BrokerConnection(broker.settings(), "other", None, ())
    connection.open()
    with pytest.raises(TransportError, match=r"acknowledges nothing for 0\.05 s"):
        connection.wait_until_taken({60_000}, 0.05)
    connection.close()


@pytest.mark.parametrize(
    ("line", "objects"),
    [
        (
            {"type": "window", "revision": 1, "coverage": {"a": [1, 2], "b": None, "c": [3, 4]}, "removed": [[1, None]],
             "added": [[2, "x"]]},
            [{"_revision": 1, "_weight": -1, "_used": 4, "_due": 6, "n": 1, "s": None},
             {"_revision": 1, "_weight": 1, "_used": 4, "_due": 6, "n": 2, "s": "x"}],
        ),
        (
            {"type": "window", "t": 5, "revision": 0, "coverage": {"b": None}, "rows": [[2, "x"]]},
            [{"_revision": 0, "_t": 5, "_weight": 1, "_used": None, "_due": None, "n": 2, "s": "x"}],
        ),
        ({"type": "tuple", "index": 3, "weight": -1, "row": [7, "y"]}, [{"_index": 3, "_weight": -1, "n": 7, "s": "y"}]),
        ({"type": "epoch", "coverage": {"a": [4, 4]}}, []),
        ({"type": "ended", "code": "SN511", "message": "…"}, []),
    ],
)  # fmt: skip
def test_line_of_a_feed_becomes_an_object_for_each_row(line, objects):
    head = {"time": "2026-11-19T08:00:00Z", "query": 1, "number": 9}
    ours = {"_time": "2026-11-19T08:00:00Z", "_query": 1, "_number": 9}
    assert list(flat_objects(line | head, ["n", "s"])) == [ours | each for each in objects]


class Home:
    """Home Assistant: by topic, the sensors that are retained."""

    def __init__(self, broker, role="home"):
        self.connection = BrokerConnection(broker.settings(), role, None, ["homeassistant/#"])
        self.connection.open()
        self.sensors = {}

    def read(self):
        for message in self.connection.take():
            self.sensors[message.topic] = json.loads(message.payload) if message.payload else None
        return {topic: sensor for topic, sensor in self.sensors.items() if sensor is not None}


def topic(query, column):
    return f"homeassistant/sensor/moteloom_lab_v1_query_{query}_{column}/config"


def test_home_assistant_finds_a_sensor_of_each_column(network, broker):
    home = Home(broker)
    with ResultPublisher(network.journal, broker.settings(), network.folder, is_discovered=True):
        wait_until(lambda: len(home.read()) == 5)  # the columns of the three queries
        sensor = home.sensors[topic(3, 0)]
        assert (sensor["state_topic"], sensor["name"]) == ("lab/v1/query/3/result", "query 3 mean")
        assert sensor["value_template"] == '{{ value_json["mean"] if value_json._weight > 0 else this.state }}'
        temp = home.sensors[topic(1, 0)]
        assert (temp["unit_of_measurement"], temp["device_class"]) == ("°C", "temperature")
        assert len({each["unique_id"] for each in home.sensors.values()}) == 5
        network.change("stop", 3)
        wait_until(lambda: home.read().keys() == {topic(1, 0), topic(2, 0), topic(2, 1)})
    home.connection.close()


def test_sensors_of_equal_names_are_called_after_their_users(network, broker):
    for owner in ("anna", "ben"):
        network.durable.submit(QUERIES[0], network.now_ms, name="mean", owner=owner)
    home = Home(broker)
    with ResultPublisher(network.journal, broker.settings(), network.folder, is_discovered=True):
        wait_until(lambda: len(home.read()) == 7)
    sensors = [home.sensors[topic(query, 0)] for query in (4, 5)]
    assert [each["name"] for each in sensors] == ["anna.mean temp", "ben.mean temp"]
    assert [each["state_topic"] for each in sensors] == ["lab/v1/query/4/result", "lab/v1/query/5/result"]
    home.connection.close()


@pytest.mark.parametrize("is_discovered", [True, False])
def test_sensors_leave_with_a_query_that_a_restore_dropped(network, broker, tmp_path, is_discovered):
    (tmp_path / "kept").mkdir()
    backup(network.folder, tmp_path / "kept/monday.db")
    network.submit(QUERIES[2])
    home = Home(broker)
    with ResultPublisher(network.journal, broker.settings(), network.folder, is_discovered=True):
        wait_until(lambda: home.read().keys() >= {topic(4, 0), topic(4, 1)})
    assert json.loads((network.folder / FILE).read_text())["sensors"]["4"] == 2
    network.end()
    restore(tmp_path / "kept/monday.db", network.folder)
    network.start()
    with ResultPublisher(network.journal, broker.settings(), network.folder, is_discovered):
        left = {topic(1, 0), topic(2, 0), topic(2, 1), topic(3, 0), topic(3, 1)} if is_discovered else set()
        wait_until(lambda: home.read().keys() == left)
    home.connection.close()


def test_sensors_with_ids_of_an_older_program_leave(network, broker):
    settings = replace(broker.settings(), prefix="lab-54")
    with ResultPublisher(network.journal, settings, network.folder, is_discovered=True) as publisher:
        wait_until(lambda: all(position.sensors for position in publisher.positions.values()) and publisher.positions)
        wait_until(lambda: (network.folder / FILE).exists())
    kept = json.loads((network.folder / FILE).read_text())
    assert kept.pop("older_ids") == [] and kept.pop("sensors") == {"1": 1, "2": 2, "3": 2}
    (network.folder / FILE).write_text(json.dumps(kept))
    home = Home(broker)
    columns = [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1)]
    older = {f"homeassistant/sensor/moteloom_lab_54_v1_query_{query}_{column}/config" for query, column in columns}
    wait_until(lambda: home.connection.problem is None)
    for each in older:
        home.connection.publish(each, b"{}", retain=True)
    wait_until(lambda: home.read().keys() > older)
    network.change("stop", 3)
    with ResultPublisher(network.journal, settings, network.folder, is_discovered=True):
        ours = {topic(*each).replace("lab", "lab-2d54") for each in columns[:3]}
        wait_until(lambda: home.read().keys() == ours)
    assert json.loads((network.folder / FILE).read_text())["older_ids"] == []
    home.connection.close()


def test_sensors_of_different_prefixes_have_different_ids():
    bases = ["lab/54/", "lab_54/", "lab-54/", "lab 54/", "lab-5f54/", "läb54/", "l\u00e4b/54/", "lab54/", "lab/5/4/"]
    found = {sensor_id(base, *numbers) for base in bases for numbers in ((1, 23), (12, 3))}
    assert len(found) == 2 * len(bases)
    assert all(each.isascii() and each.replace("_", "").replace("-", "").isalnum() for each in found)
