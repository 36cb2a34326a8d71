"""One query goes down through all eight doors and its readings come up again, with no part replaced by a fake.

Two simulated motes at the far end of a memory link keep virtual time. A query goes down as SCHEDULE and PROGRAM frames;
readings come up as frames, become windows, updates, Parquet files, a row count by Spark and a JSON answer over a socket.
"""

import json
import urllib.error
import urllib.request

import pytest

from acquisition.ticks import EpochGrid
from basestation.archive.memory import MemoryArchive
from basestation.archive.parquet import ParquetArchive
from basestation.controller.query_lifecycle import QueryState
from basestation.errors import CATALOGUE, ROAD
from basestation.planner.catalog import read_schema
from basestation.rest.access import TokenScope
from basestation.results.view import current_tuples, current_windows
from basestation.station.access_file import AccessFile
from basestation.station.durable import DurableStation
from basestation.station.journal import Journal
from basestation.station.live_control import LiveControl
from basestation.station.rest_server import RestServer
from basestation.station.runner import Runner, ScaledClock
from basestation.station.service import Station
from basestation.updates.update import EpochMark, QueryFailure, TupleUpdates, split_singly
from gateway import downlink
from gateway.diagnostics import DiagnosticError
from gateway.frame import COORDINATOR
from gateway.transports.memory import connected_pair
from innet.routing.topology import QUALITY_MAX
from simulator.kernel import Kernel
from simulator.mote import Mote
from simulator.network import Gateway, MoteNetwork
from simulator.physical_fields import FailingSensor, Wave
from simulator.radio_medium import LossyChannel, NullChannel, RadioMedium
from simulator.sensor import Sensor
from simulator.trace import Trace
from simulator.transport import connect

SCHEMA = """
field: sensed (site:integer, time:integer, temp:float {unit 'Cel', sensor 'temperature', scale 2, range -40 .. 125},
               volt:integer, wind:float) every 10 sec at sites 3, 4 wait 5 sec late revise by 1 min
"""
QUERY = "SELECT temp FROM field [NOW]"
BEGIN = 1_763_452_795  # tick 0 is the Unix epoch; motes have no clock before the first TIME
TOKEN = "only for this test"


class World:
    """A station and a simulated network; `run` advances both, a second at a time."""

    def __init__(self, folder, failing=None, channel=None, journal=None):
        self.catalog = read_schema(SCHEMA)
        self.trace, kernel = Trace(), Kernel(BEGIN * 1_000_000)
        self.air = RadioMedium(kernel, self.trace, channel or NullChannel())
        temperature = Wave(mean=20.0, swing=3.0, period_ms=600_000, per_site=0.1)
        sensors = (Sensor("temperature", failing or temperature, scale=2), Sensor("volt", Wave(2987.0)))
        motes = [Mote(site, 1, kernel, self.air, self.trace, sensors) for site in (3, 4)]
        gateway = Gateway(COORDINATOR, motes[0].forwarder.timing, kernel, self.air, self.trace)
        wire, self.network = connect(lambda end: MoteNetwork(kernel, self.trace, motes, [gateway], end))
        wire.open()
        self.archive = ParquetArchive(folder, self.catalog.tick_ms)
        self.durable = None
        if journal is None:
            self.station = Station(self.catalog, wire, self.archive, boot=1, now_ms=BEGIN * 1000)
        else:
            self.durable = DurableStation(journal, self._begin, BEGIN * 1000)
            self.durable.connect(wire)
            self.station = self.durable.station
        self.second = 0

    def _begin(self, transport, now_ms):
        return Station(self.catalog, transport, MemoryArchive(), boot=1, now_ms=now_ms)

    def said(self, number=1, after=0):
        """The updates of a query so far, in order."""
        return list(split_singly(numbered.update for numbered in self.station.feed.read(number, after)))

    def rows(self, update, number=1):
        """The rows that an update gives, in displayed values."""
        return update.added.to_lists(self.station.feed.schema(number).scales)

    @property
    def now_ms(self):
        return (BEGIN + self.second) * 1000

    def run(self, seconds):
        for _ in range(seconds):
            for ms in (0, 100, 200, 300):  # the base station looks four times a second, so a deployment takes one
                self.network.run_until(self.now_ms + ms)
                (self.durable or self.station).step(self.now_ms + ms)
            self.second += 1

    def produced(self):
        """(tick, site) -> what the mote's program gave, from the simulator's trace."""
        return {(dict(e.details)["tick"], e.mote): dict(e.details)["values"] for e in self.trace.of("produced")}


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def get(url, token=TOKEN):
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        assert error.headers["content-type"] == "application/problem+json"
        return error.code, json.load(error)


@pytest.mark.promise("end-to-end")
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_reading_crosses_all_packages(tmp_path):
    journal = Journal(tmp_path / "data")
    world = World(tmp_path, journal=journal)
    # Down: the station accepts the query, motes get their part and confirm.
    number = world.durable.submit(QUERY, world.now_ms)
    assert world.station.world.queries[number].state is QueryState.DEPLOYING
    world.run(2)
    assert world.station.world.queries[1].state is QueryState.RUNNING
    [sampling] = world.station.world.scheduled.samplings.values()
    assert sampling.epochs == EpochGrid(BEGIN + 5, 10)
    assert [channel.attribute for channel in sampling.channels] == ["temp"]  # only queried attributes are sampled

    # Up: motes report their neighbours, and measure at the ticks of the schedule.
    tree = world.station.world.tree
    assert tree.parent == {3: COORDINATOR, 4: COORDINATOR}
    assert world.station.world.topology.links[3] == {COORDINATOR: QUALITY_MAX, 4: QUALITY_MAX}
    world.run(33)
    ticks = [BEGIN + 5, BEGIN + 15, BEGIN + 25]
    produced = world.produced()
    assert set(produced) == {(tick, site) for tick in ticks for site in (3, 4)}
    assert not world.station.errors

    # The archive holds the very readings, in files that are complete; Spark counts them.
    assert world.durable.roll(world.now_ms, world.archive) == len(produced)
    batch = world.archive.read(world.catalog.find("field"), 0, 2**62)
    assert list(zip(batch.tick.tolist(), batch.site.tolist(), strict=True)) == sorted(produced)
    assert batch.columns["temp"].tolist() == [produced[key][0] for key in sorted(produced)]
    assert list((tmp_path / "staging").iterdir()) == []

    from basestation.archive.spark.count import count_readings
    from basestation.archive.spark.session import start_session

    session = start_session(tmp_path)
    try:
        field = world.catalog.find("field")
        assert count_readings(session, tmp_path, field, 0, 2**62) == 6
        assert count_readings(session, tmp_path, field, ticks[1], ticks[1]) == 2
        assert count_readings(session, tmp_path, field, 0, BEGIN) == 0
    finally:
        session.stop()

    # A socket serves clients with a token: every window is complete, every value is the mote's, as a double.
    runner = Runner(world.durable, ScaledClock(lambda: 0.0, world.now_ms))
    tokens = AccessFile(tmp_path / "data", create=True)
    tokens.create("reader", [TokenScope.OPERATE], token=TOKEN)
    with tokens, RestServer(LiveControl(runner), tokens) as server:
        status, answer = get(f"{server.url}/v1/queries/1/results")
        assert status == 200
        assert (answer["kind"], answer["columns"]) == (
            "window", [{"name": "temp", "type": "float", "scale": 2, "unit": "Cel"}])  # fmt: skip
        assert answer["updates"] == [
            {
                "number": number, "type": "window", "query": 1, "tick": tick, "time": f"2025-11-18T08:00:{at:02}Z", "n": 1,
                "revision": 0, "coverage": {"field": [2, 2]},
                "rows": [[float(f"{produced[tick, site][0]}e-2")] for site in (3, 4)],
            }
            for number, (tick, at) in enumerate(zip(ticks, (0, 10, 20), strict=True), 1)
        ]  # fmt: skip
        assert get(f"{server.url}/v1/queries/1/results?after={answer['next']}")[1]["updates"] == []
        assert get(f"{server.url}/v1/queries/2/results")[1]["code"] == "no-such-query"
        assert get(f"{server.url}/v1/queries/1/results", token="wrong")[0] == 401
    journal.close()


@pytest.mark.promise("clock-and-schedule")
def test_late_readings_of_silent_mote_revise_windows(world):
    world.station.submit(QUERY, world.now_ms)
    world.run(7)
    world.air.cut(4)
    world.run(30)
    assert [(u.tick - BEGIN, u.revision, u.coverage["field"]) for u in world.said()] == [
        (5, 0, (2, 2)), (15, 0, (1, 2)), (25, 0, (1, 2))]  # fmt: skip
    world.air.mend(4)
    world.run(12)
    revisions = [u for u in world.said(after=3) if u.revision]
    assert [(u.tick - BEGIN, u.coverage["field"], len(u.added), len(u.removed)) for u in revisions] == [
        (at, (2, 2), 1, 0) for at in (15, 25, 35)]  # fmt: skip
    produced = world.produced()
    for window in current_windows(world.said()):
        assert sorted(window.rows.to_lists([2])) == sorted(
            (float(f"{produced[window.tick, s][0]}e-2"),) for s in (3, 4)
        )
    counts = world.station.engine.ledger()["field"]
    assert counts["late"] == 3
    assert counts["accepted"] == counts["received"] == len(produced)


@pytest.mark.promise("faults")
def test_failed_sensor_gives_null_and_reading_counts(tmp_path):
    world = World(
        tmp_path, failing=FailingSensor(Wave(21.5), site=4, begin=(BEGIN + 10) * 1000, end=(BEGIN + 20) * 1000)
    )
    world.station.submit("SELECT site, temp FROM field [NOW]", world.now_ms)
    world.run(27)
    assert [(world.rows(u), u.coverage["field"]) for u in world.said()] == [
        ([(3, 21.5), (4, 21.5)], (2, 2)),
        ([(3, 21.5), (4, None)], (2, 2)),
        ([(3, 21.5), (4, 21.5)], (2, 2)),
    ]
    batch = world.archive.read(world.catalog.find("field"), BEGIN + 15, BEGIN + 15)
    assert (batch.columns["temp"].tolist(), batch.valid["temp"].tolist()) == ([2150, 0], [True, False])


@pytest.mark.promise("sampled-once")
def test_two_queries_share_one_sampling(world):
    world.station.submit(QUERY, world.now_ms)
    world.run(7)
    world.station.submit("SELECT volt AS v, site FROM field [FROM NOW-10 TO NOW SLIDE 20 SEC]", world.now_ms)
    world.run(30)
    assert world.produced()[BEGIN + 25, 3] == (world.produced()[BEGIN + 25, 3][0], 2987)
    wider = world.said(2)
    assert [(u.tick - BEGIN, u.coverage["field"]) for u in wider] == [(25, (4, 4))]
    assert sorted(world.rows(wider[0], 2)) == [(2987, 3), (2987, 3), (2987, 4), (2987, 4)]
    world.station.stop(1, world.now_ms)
    world.run(10)
    assert world.produced()[BEGIN + 45, 3] == (2987,)
    world.station.stop(2, world.now_ms)
    world.run(30)
    assert max(tick for tick, _ in world.produced()) == BEGIN + 45
    assert [q.state for q in world.station.world.queries.values()] == [QueryState.STOPPED, QueryState.STOPPED]
    assert world.station.world.live == {}
    assert not world.station.errors


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize(
    ("text", "said", "place"),
    [
        ("SELECT temp FROM field LIFETIME 100 DAY", "cannot be executed yet", 0),
        ("SELECT wind FROM field [NOW]", "`wind` needs a scale", 0),
        ("SELECT temp FROM field [NOW]; SELECT volt FROM field [NOW]", "one query at a time", 30),
        ("DELETE FROM field WHERE temp > 3", "one query at a time", 0),
        ("EXPLAIN SELECT temp FROM field", "EXPLAIN cannot be submitted; use `moteloom explain`", 0),
    ],
)
def test_rejected_query_has_a_place_and_no_effect(world, text, said, place):
    with pytest.raises(DiagnosticError, match=said) as caught:
        world.station.submit(text, world.now_ms)
    [diagnostic] = caught.value.diagnostics
    assert diagnostic.kind == "later"
    assert diagnostic.span.start == place
    assert world.station.world.queries == {}
    world.run(12)
    assert not world.trace.of("produced")


LATER = {
    "SN601": "SELECT temp FROM road LIFETIME 100 DAY",
    "SN602": "SELECT v FROM probe [NOW]",
    "SN603": "SELECT a, b, c, d, e, f, g, h, i FROM wall [NOW]",
    "SN604": "SELECT a, b FROM wall [NOW]",
    "SN605": "SELECT a FROM wall [NOW]",
    "SN606": "SELECT w.*, x.*, y.*, z.* FROM wall1 [NOW] w, wall2 [NOW] x, wall3 [NOW] y, wall4 [NOW] z",
    "SN607": "SELECT temp FROM road ACQUIRE EVERY 99999 DAYS",
}


@pytest.mark.promise("sampled-once")
@pytest.mark.parametrize("code", [code for code, entry in CATALOGUE.items() if entry.kind == "later"])
def test_catalogue_examples_cause_their_errors(code):
    example = CATALOGUE[code].example
    catalog = read_schema(example if CATALOGUE[code].schema else ROAD)
    wire, _ = connected_pair()
    station = Station(catalog, wire, MemoryArchive(), boot=1, now_ms=BEGIN * 1000)
    text = LATER[code]
    assert CATALOGUE[code].schema or text == example
    with pytest.raises(DiagnosticError) as caught:
        station.submit(text, BEGIN * 1000)
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert station.world.queries == {}


def test_average_over_selection_is_answered_live(world):
    """temp passes 20 degrees somewhere; the expectations are computed from what the motes produced."""
    world.run(2)
    world.station.submit(
        "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM field [FROM NOW-10 TO NOW SLIDE 10 SEC] WHERE temp > 20",
        world.now_ms,
    )
    world.run(33)
    produced, found = world.produced(), world.said()
    assert [(u.tick - BEGIN, u.coverage["field"]) for u in found] == [(5, (2, 2)), (15, (4, 4)), (25, (4, 4))]
    for u in found:
        warm = [v for (tick, _), (v, *_) in produced.items() if u.tick - 10 <= tick <= u.tick and v > 2000]
        [(mean, n)] = world.rows(u)
        assert n == len(warm)
        assert mean == (pytest.approx(sum(warm) / len(warm) / 100, rel=1e-12) if warm else None)
    assert any(world.rows(u)[0][1] for u in found)


def test_stream_gives_tuples_and_epoch_marks(world):
    world.station.submit("SELECT site, temp FROM field WHERE site = 4", world.now_ms)
    world.run(7)
    world.air.cut(4)
    world.run(10)
    world.air.mend(4)
    world.run(20)
    produced, said = world.produced(), world.said()
    # The reading that mote 4 saved arrives with that of 25: it is late, and the next tuple. Site 3 has 1, 3, 4 and 7.
    given = [u for u in said if isinstance(u, TupleUpdates)]
    assert [(u.tick.tolist(), u.index.tolist(), u.weight.tolist()) for u in given] == [
        ([BEGIN + 5], [2], [1]), ([BEGIN + 25, BEGIN + 15], [5, 6], [1, 1]), ([BEGIN + 35], [8], [1])]  # fmt: skip
    now = current_tuples(said)
    rows = dict(zip(now.tick.tolist(), now.rows.to_lists([None, 2]), strict=True))
    assert rows == {BEGIN + at: (4, float(f"{produced[BEGIN + at, 4][0]}e-2")) for at in (5, 15, 25, 35)}
    marks = [(u.tick - BEGIN, u.coverage["field"]) for u in said if isinstance(u, EpochMark)]
    assert marks == [(5, (2, 2)), (15, (1, 2)), (15, (2, 2)), (25, (2, 2)), (35, (2, 2))]


def test_later_query_sees_earlier_readings(world):
    world.station.submit(QUERY, world.now_ms)
    world.run(27)
    world.station.submit("SELECT COUNT(*) AS n FROM field [FROM NOW-40 TO NOW SLIDE 10 SEC]", world.now_ms)
    world.station.submit("SELECT COUNT(*) AS n FROM field [FROM NOW-2 TO NOW SLIDE 1 ROW]", world.now_ms)
    world.run(20)
    # Two readings at each of 5, 15, 25 (before the query), 35 and 45; nothing was scheduled before 5.
    assert [(u.tick - BEGIN, u.coverage["field"], world.rows(u, 2)) for u in world.said(2)] == [
        (35, (8, 8), [(8,)]), (45, (10, 10), [(10,)])]  # fmt: skip
    # Row 1 is the first of 35; the readings of 25 are rows -1 and 0.
    assert [(u.tick - BEGIN, u.n, u.coverage["field"], world.rows(u, 3)) for u in world.said(3)] == [
        (35, 1, (4, 4), [(3,)]), (35, 2, (4, 4), [(3,)]), (45, 1, (4, 4), [(3,)]), (45, 2, (4, 4), [(3,)])]  # fmt: skip


def test_failed_query_ends_and_motes_stop(world):
    text = "SELECT temp FROM field for (t = ST; t > 0; t = t) { WindowIs(field, t - 10, t); }"
    world.station.submit(text, world.now_ms)
    world.run(40)
    *_, ended = world.said()
    assert isinstance(ended, QueryFailure)
    assert world.station.world.queries[1].state is QueryState.FAILED
    assert 1 not in world.station.world.live
    assert len({tick for tick, _ in world.produced()}) < 3
    world.station.submit(QUERY, world.now_ms)  # and the station goes on
    world.run(10)
    assert [u.coverage["field"] for u in world.said(2)] == [(2, 2)]


@pytest.mark.promise("deterministic")
def test_equal_runs_give_equal_traces(tmp_path):
    traces = []
    for name in ("a", "b"):
        world = World(tmp_path / name)
        world.station.submit(QUERY, world.now_ms)
        world.run(20)
        traces.append(str(world.trace))
    assert traces[0] == traces[1]
    assert "produced" in traces[0]


@pytest.mark.promise("reconciled")
def test_mote_out_of_reach_is_reached_through_another(tmp_path):
    hops = {(0, 3): 1.0, (3, 0): 1.0, (3, 4): 1.0, (4, 3): 1.0}
    world = World(tmp_path, channel=LossyChannel(hops, seed=1))
    world.station.submit(QUERY, world.now_ms)
    world.run(4)
    assert world.station.world.tree.parent == {3: COORDINATOR, 4: 3}
    assert world.station.world.queries[1].state is QueryState.RUNNING
    world.run(30)
    assert [(u.tick - BEGIN, u.coverage["field"]) for u in world.said()] == [(at, (2, 2)) for at in (5, 15, 25)]
    assert not world.station.errors


@pytest.mark.promise("reconciled")
def test_rebooted_mote_gets_its_program_again(world):
    world.station.submit(QUERY, world.now_ms)
    world.run(7)
    world.network.motes[4].reboot()
    world.run(30)
    assert [(u.tick - BEGIN, u.coverage["field"]) for u in world.said()] == [(at, (2, 2)) for at in (5, 15, 25, 35)]
    assert not world.station.errors


@pytest.mark.promise("reconciled")
def test_restarted_station_asks_motes_before_it_sends(world):
    world.station.submit(QUERY, world.now_ms)
    world.run(7)
    received = len(world.trace.of("received"))
    before = world.station
    world.station = Station(before.world.catalog, before._transport, world.archive, boot=2, now_ms=world.now_ms)
    world.station.world = before.world  # the desired state survives
    downlink.set_desired(before.world.desired, world.station.reconcilers, world.now_ms)
    world.run(20)
    kinds = [event["kind"] for event in world.trace.of("received")[received:]]
    assert set(kinds) == {"HELLO"}
    assert world.station.reconcilers.up_to_date_motes() == {3, 4}


@pytest.mark.promise("delivery")
@pytest.mark.parametrize("seed", [1, 3])
def test_lossy_radio_delivers_or_reports_each_reading(tmp_path, seed):
    hops = {(0, 3): 0.6, (3, 0): 0.6, (3, 4): 0.6, (4, 3): 0.6}
    world = World(tmp_path, channel=LossyChannel(hops, seed))
    world.station.submit(QUERY, world.now_ms)
    world.run(400)
    reconcilers = world.station.reconcilers
    assert reconcilers.up_to_date_motes() == {3, 4}
    batch = world.archive.read(world.catalog.find("field"), 0, 2**62)
    came = set(zip(batch.tick.tolist(), batch.site.tolist(), strict=True))
    gone = {(tick, site) for tick, site in set(world.produced()) - came if tick < BEGIN + 250}
    assert len(came) > 60
    assert len(gone) <= sum(reconciler.link.lost for reconciler in reconcilers.by_mote.values())
