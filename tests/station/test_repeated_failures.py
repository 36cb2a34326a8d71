"""A query that ran out of memory ends at the same place when a restart computes the state again, and nothing else ends."""

import json

import pytest

from acquisition.sources.pushed_tuples import read_tuples
from basestation.execution import step_loop, thresholds
from basestation.execution.engine import Engine
from basestation.execution.graph import OperatorGraph
from basestation.execution.ingest.intake import Intake
from basestation.execution.memory_failures import (
    EndedQuery,
    FailureReplay,
    MemoryFailure,
    RecordStart,
    UnrepeatedFailureError,
)
from basestation.execution.step_loop import StepLoop
from basestation.planner.catalog import read_schema
from basestation.station.failure_entry import MEMORY_FAILURES, FailureEntry
from basestation.station.journal import Command, Upload
from basestation.station.journal_file import JournalError
from basestation.station.recovery import FAILURES_KEPT
from basestation.station.uploads import PUSH, encode_tuples
from basestation.updates.update import PunctuationUpdate, QueryFailure
from gateway.diagnostics import DiagnosticError
from tests.execution.test_out_of_memory import failing
from tests.station.small_network import SCHEMA, Crash, SmallNetwork
from tests.station.test_past_windows import network as past_network
from tests.station.test_past_windows import short_memory, since

__all__ = ["past_network", "short_memory"]
EXECUTION = "basestation.execution"
CATALOG = read_schema(
    "hits: pushed (k:integer, v:integer) wait 2 sec late revise by 60 sec\n"
    "misses: pushed (k:integer, v:integer) late revise by 60 sec\n" + SCHEMA
)
WINDOW = "[FROM NOW-3 TO NOW SLIDE 2 SEC]"
QUERIES = (
    f"SELECT v FROM hits {WINDOW}", f"SELECT SUM(v) AS n, COUNT(*) AS c FROM misses {WINDOW}", "SELECT k, v FROM hits",
    "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM field [FROM NOW-20 TO NOW SLIDE 20 SEC]", "SELECT v FROM misses WHERE v > 1",
    f"SELECT a.v, b.v AS w FROM hits {WINDOW} AS a, misses {WINDOW} AS b WHERE a.k = b.k",
)  # fmt: skip
NO_MEMORY = "Unable to allocate 9 TiB"


class PushingNetwork(SmallNetwork):
    """A small network to whose station a client pushes tuples. Its engine prunes state after each step."""

    def __init__(self, folder):
        super().__init__(folder, CATALOG)
        self.pushed, self.refusals = 0, []
        self.durable.station.engine._tidy_every = 1
        self.durable.snapshot(self.now_ms)
        for text in QUERIES:
            self.submit(text)

    def push(self, extent):
        """Push up to three tuples, some of them late."""
        self.pushed += 1
        tick = self.now_ms // CATALOG.tick_ms
        rows = [
            {"k": n, "v": self.pushed % 7 + n, "_tick": tick - 5 * (n == 2 and self.pushed % 4 == 0)}
            for n in range(self.pushed % 3 + 1)
        ]
        tuples = read_tuples(json.dumps(rows).encode(), "json", CATALOG.extents[extent], CATALOG.tick_ms)
        self.durable.take_data(Upload(PUSH, self.now_ms, extent, encode_tuples(tuples)), str(rows))

    def live_and_push(self, *extents):
        for extent in extents:
            self.push(extent)
            self.live(1)

    def correct(self, text):
        self.durable.take_data(Command("correct", self.now_ms, text), text)

    def live_until(self, left):
        """Live until something has failed that fails `left` times."""
        for _ in range(50):
            if left == [0]:
                return
            self.live(0.25)
        raise AssertionError("nothing failed")

    def found(self):
        """All that users see of it, the records of its extents, and its archive."""
        station, numbers = self.durable.station, range(1, len(QUERIES) + 4)
        records = {
            name: (intake.begun, intake.log.next, intake.unfiltered_from)
            for name, intake in station.engine._intakes.extents.items()
        }
        archived = {
            name: [batch.tick.tolist(), batch.weight.tolist(), *(column.tolist() for column in batch.columns.values())]
            for name, batch in station.archive.take_all().items()
        }
        answers = {number: (self.answers(number), self.query(number)) for number in numbers}
        return answers, records, archived, station.engine.ledger(), self.refusals


NEVER, AT_ONCE, LATER, AT_THE_END = "never", "at once", "later", "at the end"


def run(folder, fail, restart):
    """Let something fail, correct later what is there, and ask for it with SINCE; with a restart. Returns what was found."""
    network = PushingNetwork(folder)
    network.live_and_push("hits", "misses", "hits", "hits", "misses", "misses")
    network.live(6)
    network.push("hits")
    network.correct("INSERT INTO hits (k, v) VALUES (7, 7); REVISE hits SET v = 8 WHERE k = 7;")
    with pytest.MonkeyPatch.context() as scarce:
        fail(scarce, network)
    if restart == AT_ONCE:
        network.restart()
    network.live_and_push("hits", "misses", "hits")
    if restart == LATER:
        network.restart()
    network.correct("REVISE hits SET v = v + 10 WHERE k = 0; DELETE FROM misses WHERE v = 2;")
    network.live_and_push("misses", "hits")
    if restart == AT_THE_END:
        network.restart()
    for seconds in (3, 12):
        try:
            network.submit(f"SELECT COUNT(*) AS n, SUM(v) AS s FROM hits {WINDOW} SINCE NOW - {seconds} SEC")
        except DiagnosticError as why:
            network.refusals.append(str(why))
    network.live_and_push("hits", "misses")
    network.live(6)
    kinds = [entry.kind for _, entry in network.journal.entries(0)]
    found = network.found()
    network.end()
    return found, kinds


def expect_repetition(folder, fail):
    """Return what was found without a restart; with restarts it is the same."""
    expected, kinds = run(folder / NEVER, fail, NEVER)
    assert MEMORY_FAILURES in kinds
    for restart in (AT_ONCE, LATER, AT_THE_END):
        found, _ = run(folder / restart, fail, restart)
        assert found == expected, restart
    return expected


def fail_in(place):
    """A failure that ends a method half-way."""

    def fail(scarce, network):
        network.live_until(failing(scarce, f"{EXECUTION}.{place}"))

    return fail


@pytest.mark.promise("durable")
@pytest.mark.parametrize(
    ("place", "ended"),
    [
        ("ingest.intake.Intake.insert", {1, 3, 6}),
        ("ingest.intake.Intake._enter", {1, 3, 6}),
        ("ingest.intake.Intake.forget", {1, 3, 6}),
        ("ingest.intake.Intake.corrected", {1, 3, 6}),
        ("ingest.tuple_log.TupleLog.add", {1, 3, 6}),
        ("columns.segmented_log.SegmentedLog.forget", {1, 3, 6}),
        ("windowing.window_store.TickOrderedStore.tidy", {1}),
        ("query_block.QueryBlock.tidy", {6}),
        ("query_block.QueryBlock.answer", {1}),
        ("output.stream_output.StreamOutput._make_updates", {3}),
    ],
)
def test_restart_repeats_failure_half_way(place, ended, tmp_path):
    answers, *_ = expect_repetition(tmp_path, fail_in(place))
    assert {number for number, (_, query) in answers.items() if query and query["state"] == "failed"} == ended
    for number in ended:
        last = json.loads(answers[number][0].splitlines()[-1])
        assert last["type"] == "ended" and NO_MEMORY in answers[number][1]["reason"]


def fail_to_cut(scarce, network):
    """As where deliveries cannot be cut into steps."""
    step, left = StepLoop._step, [1]

    def cut(loop, tick, delivered, *given):
        step(loop, tick, delivered, *given)
        if left[0] and any(delivered.values()):
            left[0] -= 1
            raise MemoryError(NO_MEMORY)

    scarce.setattr(StepLoop, "_step", cut)
    network.live_until(left)


def fail_for_a_reader(scarce, network, place="ingest.intake.Intake._enter"):
    """Between two looks, when the deliveries that wait are taken in for an account."""
    for number in (3, 5, 6):  # with these each clock tick may have an update, so that nothing waits
        network.change("stop", number)
    engine = network.durable.station.engine
    for _ in range(20):
        network.live_and_push("hits")
        if engine.clock > engine._stepped:
            break
    assert engine.clock > engine._stepped
    left = failing(scarce, f"{EXECUTION}.{place}")
    assert "out of memory" in engine.ledger()["hits"] and left == [0]
    network.live(1)


def fail_to_cut_for_a_reader(scarce, network):
    """The same where they cannot be cut into steps."""
    fail_for_a_reader(scarce, network, "step_loop.StepLoop._find_step_end")


def fail_to_begin(scarce, network):
    """In a submission, and in a replacement of a query that runs."""
    run, left = Engine._run, [2]

    def no_run(engine, number, *given):
        if left[0]:
            left[0] -= 1
            raise MemoryError(NO_MEMORY)
        run(engine, number, *given)

    scarce.setattr(Engine, "_run", no_run)
    network.submit(f"SELECT MAX(temp) AS t FROM field {WINDOW}")
    network.durable.replace(2, QUERIES[0], network.now_ms)
    assert left == [0]
    network.live(2)


def fail_to_find_room(scarce, network):
    """Where the query with the most state ends before a step."""
    left = [1]

    def has_room(_):
        if left == [0]:
            return True
        left[0] -= 1
        return False

    scarce.setattr(thresholds, "UNCHECKED_BYTES", -1)
    scarce.setattr(step_loop, "has_room", has_room)
    network.live_until(left)


def fail_to_leave_room(scarce, network):
    """Where the text of an answer finds no room."""
    left = [1]

    def has_room(size):
        left[0] = 0
        return size < 100

    scarce.setattr(thresholds, "UNCHECKED_BYTES", 0)
    scarce.setattr(step_loop, "is_limited", lambda: True)
    scarce.setattr(StepLoop, "_make_room", lambda *_: [])
    scarce.setattr(step_loop, "has_room", has_room)
    network.live_until(left)


@pytest.mark.promise("durable")
@pytest.mark.parametrize(
    "fail",
    [fail_to_cut, fail_for_a_reader, fail_to_cut_for_a_reader, fail_to_begin, fail_to_find_room, fail_to_leave_room],
)
def test_restart_repeats_failure_outside_of_steps(fail, tmp_path):
    answers, *_ = expect_repetition(tmp_path, fail)
    assert "failed" in {query["state"] for _, query in answers.values() if query}


@pytest.mark.promise("durable")
@pytest.mark.parametrize("crashes_before", [True, False])
def test_failure_is_kept_with_its_updates_or_not_at_all(crashes_before, tmp_path):
    network = PushingNetwork(tmp_path)
    network.live_and_push("hits", "misses", "hits")
    with pytest.MonkeyPatch.context() as scarce:
        left = failing(scarce, f"{EXECUTION}.query_block.QueryBlock.answer")
        network.journal.crashes_before, network.journal.commits_left = crashes_before, 0
        with pytest.raises(Crash):
            network.live_until(left)
            network.live(0.25)
    assert left == [0]
    network.restart()
    network.live(6)
    assert (network.query(1)["state"] == "failed") != crashes_before
    assert (MEMORY_FAILURES in [entry.kind for _, entry in network.journal.entries(0)]) != crashes_before
    assert ('"ended"' in network.answers(1)) != crashes_before
    network.end()


@pytest.mark.promise("durable")
@pytest.mark.parametrize("place", ["ingest.intake.Intake._enter", "query_block.QueryBlock.answer"])
def test_start_with_less_memory_says_so_and_changes_nothing(place, tmp_path):
    network = PushingNetwork(tmp_path)
    network.live_and_push("hits", "misses", "hits")
    given = network.answers(1)
    network.end()
    with pytest.MonkeyPatch.context() as scarce:
        failing(scarce, f"{EXECUTION}.{place}")
        with pytest.raises(JournalError, match="cannot be computed again from entry") as error:
            network.start()
    assert NO_MEMORY in str(error.value) or "no room" in str(error.value)
    assert "ulimit -v" in error.value.help
    network.journal.close()
    network.start()
    network.live(6)
    assert network.query(1)["state"] == "running" and network.answers(1).startswith(given)
    network.end()


@pytest.mark.promise("durable")
def test_command_that_found_no_memory_is_not_carried_out_again(tmp_path):
    def fail(*_, **__):
        raise MemoryError(NO_MEMORY)

    network = SmallNetwork(tmp_path, CATALOG)
    network.live(5)
    with pytest.MonkeyPatch.context() as scarce:
        scarce.setattr("basestation.downlink.deploy", fail)
        with pytest.raises(MemoryError):
            network.submit(QUERIES[0])
    network.restart()
    assert not network.durable.station.world.queries
    assert network.submit(QUERIES[1]) == 1
    network.end()
    with pytest.MonkeyPatch.context() as scarce:
        scarce.setattr("basestation.downlink.deploy", fail)
        with pytest.raises(JournalError, match="cannot be computed again"):
            network.start()
    network.journal.close()
    network.start()
    assert list(network.durable.station.world.queries) == [1]
    network.end()


@pytest.mark.promise("durable")
@pytest.mark.parametrize("is_ended", [True, False])
def test_restart_after_a_command_that_found_no_memory(tmp_path, is_ended):
    """The command ends clock ticks before it fails. A query that has given a window in them may end there."""

    def fail(scarce, network):
        tidy, ended = StepLoop._tidy, []

        def tidy_and_end(loop):
            failures = tidy(loop)
            if not ended:
                ended.append(loop._registry.active(2).key)
                failures += loop._end_failed({ended[0]: NO_MEMORY}, loop.clock)
            return failures

        def fail_to_deploy(*_, **__):
            raise MemoryError(NO_MEMORY)

        network.push("misses")
        network.now_ms += 6_000
        network.network.run_until(network.now_ms)
        if is_ended:
            scarce.setattr(StepLoop, "_tidy", tidy_and_end)
        scarce.setattr("basestation.downlink.deploy", fail_to_deploy)
        with pytest.raises(MemoryError):
            network.submit(QUERIES[0])
        assert bool(ended) == is_ended

    expect_repetition(tmp_path, fail)


@pytest.mark.promise("durable")
def test_log_of_an_older_program_is_replayed_as_before(tmp_path):
    """It kept no failures, so a query that has no memory in the replay ends there."""
    network = PushingNetwork(tmp_path)
    network.live_and_push("hits", "misses", "hits")
    network.journal.state_fact(FAILURES_KEPT, str(network.journal.last))
    network.end()
    with pytest.MonkeyPatch.context() as scarce:
        failing(scarce, f"{EXECUTION}.query_block.QueryBlock.answer")
        network.start()
    assert network.durable.station.world.queries[1].state.name == "FAILED"
    assert network.durable.station.world.queries[2].state.name == "RUNNING"
    network.end()


@pytest.mark.promise("durable")
@pytest.mark.parametrize("when", ["at submission", "replayed", "later"])
def test_restart_repeats_failure_for_the_past(past_network, when):
    network, number = past_network, None
    text = since(network, 45)
    if when == "replayed":
        text = f"SELECT SUM(lane) AS s FROM traffic [FROM NOW-2 TO NOW SLIDE 1 ROWS] {text[text.index('SINCE') :]}"
    with pytest.MonkeyPatch.context() as scarce:
        if when == "later":
            number = network.submit(text)
            engine, run = network.durable.station.past.by_query[number]._engine, OperatorGraph._run

            def run_without_memory(graph, steps, clock):
                is_past = graph is engine._graph and steps
                return (len(steps) - 1, MemoryError(NO_MEMORY)) if is_past else run(graph, steps, clock)

            scarce.setattr(OperatorGraph, "_run", run_without_memory)
        else:
            begin = Engine.on_clock

            def step_without_memory(intake, *given):
                raise MemoryError(NO_MEMORY)

            def begin_without_memory(engine, tick):
                if engine is network.durable.station.engine:
                    return begin(engine, tick)
                with pytest.MonkeyPatch.context() as none:
                    none.setattr(Intake, "step", step_without_memory)
                    return begin(engine, tick)

            scarce.setattr(Engine, "on_clock", begin_without_memory)
            number = network.submit(text)
        network.live(30)
    given = network.answers(number), network.query(number)
    assert given[1]["state"] == "failed" and '"ended"' in given[0].splitlines()[-1]
    network.restart()
    network.live(30)
    assert (network.answers(number), network.query(number)) == given
    assert not network.durable.station.past.by_query


def failure(place, *queries, records=(), is_past=False):
    return MemoryFailure(place, queries, records, is_past)


def test_entry_of_failures_is_read_as_written():
    start = RecordStart("hits", 7, -5, 1, {"accepted": 6})
    entry = FailureEntry({2: [failure(1, EndedQuery(3, 4, "no", 9), records=(start,))]}, True)
    assert FailureEntry.from_command(entry.to_command(5)) == entry


def test_replay_comes_to_each_failure_in_its_place():
    between, second, past = (
        failure(0, EndedQuery(1, 0, "a", 1)), failure(2, EndedQuery(2, 0, "b", 1)), failure(1, EndedQuery(3, 0, "c", 1), is_past=True),
    )  # fmt: skip
    replay = FailureReplay([between, second, past])
    assert replay.is_due
    assert [each.number for each in replay.enter().queries] == [1] and not replay.is_due
    assert not replay.enter().queries and replay.ends_next(2) and not replay.ends_next(3)
    assert [each.number for each in replay.enter(is_past=True).queries] == [3]
    assert replay.end()  # it came to fewer places than the station
    assert [each.number for each in replay.enter().queries] == [2] and not replay.end()


def test_updates_end_with_the_failure_of_the_log():
    mark = [PunctuationUpdate(1, tick, None) for tick in range(4)]
    planned = failure(1, EndedQuery(1, 2, "no", 9))
    other = PunctuationUpdate(2, 0, None)
    assert planned.apply([mark[0], other, *mark[1:]]) == [mark[0], other, mark[1], QueryFailure(1, "SN516", "no", 9)]
    planned.check([QueryFailure(1, "SN516", "other words", 9), QueryFailure(2, "SN501", "its data", 9)])
    assert planned.apply(mark[:1]) == [mark[0], QueryFailure(1, "SN516", "no", 9)]
    with pytest.raises(UnrepeatedFailureError, match="query 2: no"):
        planned.check([QueryFailure(2, "SN516", "no", 9)])
    with pytest.raises(UnrepeatedFailureError, match="hits"):
        planned.check([], ["hits"])
