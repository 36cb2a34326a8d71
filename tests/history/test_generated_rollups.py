"""Generated rollups: what the pipeline keeps equals a replay of the same readings, however these come and however runs end."""

import re
from collections import Counter, defaultdict

import pyarrow.dataset
import pytest

from acquisition.batch import concatenate, replaced_indexes
from acquisition.extent import ExtentKind
from basestation.archive.numbering import TupleNumbers
from basestation.archive.parquet import ParquetArchive
from basestation.history.compiler import compile_plan
from basestation.history.pipeline import Pipeline, Rollup, check_rollup, name_sites
from basestation.history.refusal import SparkRefusedError
from basestation.history.statement import HistoryRange
from basestation.replay.driver import NotExecutableError, Replay
from basestation.replay.inputs import read_recording
from basestation.replay.result import Result
from basestation.replay.statements import read_catalog, read_statements
from gateway.diagnostics import DiagnosticError
from tests.history.in_spark import compact, corrections_of, differing_rows, named_views
from tests.oracles.generate import CaseMaker

HOURS = 6
"""Of a tick, so that the few ticks of a generated case are days."""


class RollupMaker(CaseMaker):
    """Makes queries over time windows, and extents that revise them."""

    def window(self):
        begin = self.pick("NOW", "NOW-1", "NOW-3", "NOW-5 SEC", "NOW-10")
        return f"[FROM {begin} TO {self.pick('NOW', 'NOW', 'NOW-2')} SLIDE {self.rng.randint(1, 9)} SEC]"

    def entry(self, depth, aggregating):
        if self.chance(0.15):
            alias = self.alias()
            return f"kinds AS {alias} [SCAN {self.rng.randint(1, 4)} SEC]", self.refs("kinds", alias), False
        text, refs = self.stream(depth)
        return f"{text} {self.window()}", refs, True

    def aggregate(self, refs, keyed):
        return super().aggregate(refs, keyed=False)

    def rollup(self):
        self.taken = set()
        return self.window_query(self.pick(0, 1))[0]


def stretch(text):
    """A text in ticks of a second as one in ticks of hours."""
    text = re.sub(r"late (append|drop)", "late revise by 4 sec", text).replace("1 min", "60 sec")
    text = re.sub(r"NOW-(\d+)( SEC)?", r"NOW-\1 SEC", text)
    return re.sub(r"(\d+) sec\b", lambda found: f"{HOURS * int(found[1])} hour", text, flags=re.IGNORECASE)


class GeneratedHistory:
    """Readings, tables and corrections of a seed, and rollups that Spark can compute; None of these where the seed gives none."""

    def __init__(self, seed, count):
        maker = RollupMaker(seed)
        self.catalog = name_sites(read_catalog(stretch(maker.schema()), tick_ms=HOURS * 3_600_000))
        self.inputs, self.corrections = maker.inputs(), maker.statements()
        self.recording = read_recording(self.catalog, self.inputs)
        statements = read_statements(self.corrections, self.catalog)
        self.until = max([self.recording.end(), *(each.clock for each in statements)])
        self.corrected = corrections_of(self.recording, statements, self.until)
        self.rollups = []
        while len(self.rollups) < count:
            rollup = self._make_rollup(stretch(maker.rollup()), f"r{len(self.rollups)}")
            if rollup is not None:
                self.rollups.append(rollup)
        self.readings = {
            e.name: read_statements([f"SELECT * FROM {e.name}"], self.catalog)[0].plan
            for e in self.catalog
            if e.kind is not ExtentKind.STORED and any(e.name in rollup.text for rollup in self.rollups)
        }

    def _make_rollup(self, text, name):
        try:
            [given] = read_statements([text], self.catalog)
            rollup = Rollup(name, text, given.plan)
            check_rollup(rollup)
            self.compiled(rollup)
            replayed = self.replay(text, self.until)
        except (DiagnosticError, NotExecutableError, SparkRefusedError):
            return None
        return None if replayed is None or not any(replayed.values()) else rollup

    def compiled(self, rollup):
        """The statement of a rollup, without a session."""
        views = named_views(self.catalog, self.recording.versions, self.corrected)
        return compile_plan(rollup.plan, views, HistoryRange(0, self.until, 0, self.until))

    def replay(self, text, upto):
        """By (tick, number) the rows of each window of a replay of all that came up to a clock tick; None where it has an error."""
        read = set(re.findall(r"\b(road|hits|kinds)\b", text))
        inputs = {
            name: rows if name == "kinds" else [row for row in rows if row.get("_arrival", row.get("_tick")) <= upto]
            for name, rows in self.inputs.items()
            if name in read
        }
        recording = read_recording(self.catalog, inputs)
        corrections = [(each, at) for each, at in self.corrections if at <= upto and read & set(each.split())]
        until = max(upto, recording.end())
        run = Replay(recording, read_statements([text, *corrections], self.catalog), until, begin=recording.begin())
        result = Result(run.queries)
        for updates in run.updates():
            result.add(updates)
        result.finish(run.until, run.ledger())
        if result.errors:
            return None
        ticks = [tick for name in read - {"kinds"} for tick in self._ticks(name, upto)]
        current = result.current(1)
        if not isinstance(current, dict):
            return {}
        return {key: rows for key, rows in current.items() if ticks and min(ticks) <= key[0] <= max(ticks) and rows}

    def _ticks(self, name, upto):
        """The ticks of the tuples of an extent that came up to a clock tick; those stamped too far ahead do not count (1.5)."""
        ahead = self.catalog.extents[name].ahead
        for at, of, batch in self.arrivals():
            if of == name and at <= upto:
                yield from batch.tick[(batch.tick - at <= ahead) if ahead is not None else slice(None)].tolist()

    def arrivals(self):
        """(clock tick, extent, numbered rows), as a station archives them: at each clock tick first its deliveries, then its corrections."""
        numbers, found = TupleNumbers(), []
        delivered = {name: stream.whole() for name, stream in self.recording.streams.items()}
        corrected = {name: concatenate(batches) for name, batches in self.corrected.items()}
        for at in sorted({int(at) for batch in (*delivered.values(), *corrected.values()) for at in batch.arrival}):
            for name, batch in delivered.items():
                now = batch.take((batch.arrival == at) & (batch.weight > 0) & (replaced_indexes(batch) == 0))
                found.append((at, name, numbers.number(self.catalog.extents[name], now)))
            for name, batch in corrected.items():
                now = batch.take(batch.arrival == at)
                found.append((at, name, numbers.number_corrections(self.catalog.extents[name], now)))
        return [each for each in found if len(each[2])]


class KilledError(Exception):
    """The run ends here."""


class KilledPipeline(Pipeline):
    """Ends before or after one of its writes."""

    def __init__(self, left, *given):
        super().__init__(*given)
        self.left = left

    def _write(self, *given):
        self._come_nearer()
        super()._write(*given)
        self._come_nearer()

    def _declare(self, texts):
        self._come_nearer()
        super()._declare(texts)

    def _come_nearer(self):
        self.left -= 1
        if self.left < 0:
            raise KilledError


class KeptRollups:
    """An archive whose files come in drops, and the pipeline over it."""

    def __init__(self, spark, folder, history, rng):
        self.spark, self.history, self.rng = spark, history, rng
        self.data, self.out = folder / "data", folder / "out"
        self.files, self.entries, self.kinds = ParquetArchive(self.data, history.catalog.tick_ms), 0, Counter()

    def drop(self, pieces):
        """Let rows enter the archive, those of each extent in one file for each day, deliveries and corrections apart."""
        of = defaultdict(list)
        for _, name, batch in pieces:
            of[name, bool(batch.columns["_revision"].any())].append(batch)
        for (name, _), batches in of.items():
            self.entries += 1
            extent = self.history.catalog.extents[name]
            self.files.settle(self.files.stage(self.entries, extent, concatenate(batches)))

    def run(self, killed_after=None):
        """One run of the pipeline; whether it came to its end."""
        history = self.history
        given = (
            self.spark.newSession(),
            self.data,
            self.out,
            history.readings,
            history.recording.versions,
            history.rollups,
        )
        try:
            (Pipeline(*given) if killed_after is None else KilledPipeline(killed_after, *given)).run()
        except KilledError:
            self.kinds["killed run"] += 1
            return False
        self.kinds["run"] += 1
        return True

    def compare(self, upto):
        """AssertionError where a rollup is not the answer of a replay of what came up to a clock tick."""
        for rollup in self.history.rollups:
            query = self.history.compiled(rollup)
            inexact = [name in query.inexact for name in query.names]
            expected = self.history.replay(rollup.text, upto)
            found = self._stored(rollup.name, query.names)
            assert differing_rows(expected, found, inexact) is None, rollup.text
            self.kinds["window"] += len(expected)

    def _stored(self, name, columns):
        """By (tick, number) the rows that a rollup has."""
        folder, found = self.out / "rollups" / name, defaultdict(list)
        if folder.exists():
            for row in pyarrow.dataset.dataset(folder, partitioning="hive").to_table().to_pylist():
                found[row["_tick"], row["_n"]].append(tuple(row[column] for column in columns))
        return found


@pytest.mark.spark
@pytest.mark.timeout(3600)
@pytest.mark.promise("history-is-live")
def test_generated_rollups_equal_a_replay(spark, tmp_path, rng, counts, tally):
    """
    arrivals   ──drop──┬──drop──┬──drop──┬─▶   or the drops in another order, rows twice, files merged
    runs               run      killed   run   after each whole run: the windows of a replay of what has come
    """
    kinds = Counter()
    for number in range(counts(1, 30, 300)):
        seed = f"{rng.randrange(2**32)}.{number}"
        history = GeneratedHistory(seed, counts(1, 2))
        kept = KeptRollups(spark, tmp_path / str(number), history, rng)
        try:
            keep(kept, rng, counts(2, 4))
        except Exception as why:
            why.add_note(f"case {seed}: {history.inputs} {history.corrections} {[r.text for r in history.rollups]}")
            raise
        kinds += kept.kinds
    tally("generated rollups", kinds)


def keep(kept, rng, count):
    """Let all that a history has come in drops, with runs between them."""
    pieces = kept.history.arrivals()
    clocks = sorted({arrived for arrived, _, _ in pieces})
    cuts = sorted(rng.sample(clocks[1:], min(count, len(clocks)) - 1))
    drops = [
        [each for each in pieces if begin <= each[0] < end]
        for begin, end in zip([0, *cuts], [*cuts, 2**62], strict=True)
    ]
    is_shuffled = rng.random() < 0.3
    if is_shuffled:
        rng.shuffle(drops)
    for at, drop in enumerate(drops):
        is_last = at + 1 == len(drops)
        kept.drop(drop)
        if at and rng.random() < 0.3:
            kept.drop(rng.choice(drops[:at]))  # the same rows again, as after a restore
        if rng.random() < 0.3:
            compact(kept.history.recording, kept.data)
        if not is_last and rng.random() < 0.3:
            continue
        is_killed = rng.random() < 0.6
        if is_killed:
            kept.run(killed_after=rng.randint(0, 9))
        if (is_last or not is_killed) and kept.run() and (is_last or not is_shuffled):
            kept.compare(max(arrived for each in drops[: at + 1] for arrived, _, _ in each))
