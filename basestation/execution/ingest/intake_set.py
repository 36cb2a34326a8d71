"""IntakeSet: the intakes of extents and of folds, and what was delivered to each since the last clock tick that ended."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acquisition.batch import Batch, replaced_indexes
from acquisition.extent import Catalog, Extent, ExtentKind
from basestation.execution.ingest.batch_runs import find_corrections
from basestation.execution.ingest.coalesce import ExtentKey, can_wait
from basestation.execution.ingest.corrections import ArchivedCorrections, PendingCorrection
from basestation.execution.ingest.intake import Intake
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.execution.ingest.partial_intake import PartialIntake
from basestation.execution.ingest.stored_table import StoredTable
from basestation.execution.interfaces import DeliveryIntake
from basestation.execution.memory_failures import RecordStart
from basestation.planner.plan import Correction
from basestation.progress.watermark import NEVER
from innet.operators.acquire import find_acquires
from innet.operators.fold import Fold

Deliveries = Mapping[ExtentKey, Sequence[Any]]
"""Batches by the name of their extent, PartialBatches by the number of their fold."""
StepCorrection = PendingCorrection | ArchivedCorrections
Corrections = Mapping[ExtentKey, Sequence[StepCorrection]]


@dataclass(frozen=True, slots=True)
class IntakeMark:
    """An intake of an extent before some deliveries: its counts, the number of the next tuple, and its recorded corrections."""

    counts: Counter[str]
    next_number: int
    applied: int

    @classmethod
    def of(cls, intake: DeliveryIntake[Any]) -> "IntakeMark | None":
        """The mark of an intake as it is; None for that of a fold."""
        if not isinstance(intake, Intake):
            return None
        return cls(Counter(intake.counts), intake.log.next, len(intake.applied or ()))

    def number_after(self, extent: Extent, batches: Iterable[Batch], applied: Iterable[Batch]) -> int:
        """The number of the next tuple after deliveries that are lost, as an archive goes on: it has all that an extent takes.

        `applied` are the recorded corrections; the tuples that were inserted since the mark are in the archive, too.
        """
        taken = sum(_count_taken(extent, batch) for batch in batches)
        inserted = sum(int((replaced_indexes(rows) == 0).sum()) for rows in [*applied][self.applied :])
        return self.next_number + taken + inserted


Marks = Mapping[ExtentKey, IntakeMark | None]


class IntakeSet:
    """`by_key` has all intakes, by the name of the extent or the number of the fold; `extents` those of extents."""

    def __init__(self, catalog: Catalog, begun: int, live: bool) -> None:
        """`begun` is the first tick on record. Live, a sensed extent begins when the first query needs it (12.3)."""
        streams = [e for e in catalog if e.kind is not ExtentKind.STORED and e.sites is not None]
        self.extents = {e.name: Intake(e, begun, not live, catalog.tick_ms) for e in streams}
        self.tables = {e.name: StoredTable(e) for e in catalog if e.kind is ExtentKind.STORED}
        self._live, self._tick_ms = live, catalog.tick_ms
        self._failed: dict[ExtentKey, str] = {}  # intakes that ran out of memory
        self._archives = False  # whether corrections are recorded
        self.by_key: dict[ExtentKey, DeliveryIntake[Any]] = {}
        self.by_key.update(self.extents.items())
        self._delivered: dict[ExtentKey, list[Any]] = self._empty()
        self._corrections: dict[ExtentKey, list[StepCorrection]] = self._empty()

    def declare(self, extent: Extent, begun: int, tick_ms: int) -> None:
        """Add the intake of a pushed or stored extent whose first tick on record is `begun`."""
        if extent.kind is ExtentKind.STORED:
            self.tables[extent.name] = StoredTable(extent)
            return
        self.extents[extent.name] = self.by_key[extent.name] = intake = Intake(extent, begun, True, tick_ms)
        intake.applied = [] if self._archives else None
        self._delivered[extent.name], self._corrections[extent.name] = [], []

    def _empty(self) -> dict[ExtentKey, list[Any]]:
        return {key: [] for key in self.by_key}

    def first_tick(self, extent: Extent) -> int:
        """Return the first tick at which a query could begin; readings that motes filtered for earlier queries are missing."""
        if extent.kind is ExtentKind.STORED:
            return self.tables[extent.name].begun
        intake = self.extents[extent.name]
        return max(intake.begun, intake.unfiltered_from)

    @property
    def first_due(self) -> dict[str, int]:
        """By sensed extent that was ever scheduled, its first due tick."""
        begun = {name: intake.epochs.begun for name, intake in self.extents.items() if intake.epochs is not None}
        return {name: tick for name, tick in begun.items() if tick < NEVER}

    def postpone(self, first_due: Mapping[str, int]) -> None:
        """Let nothing of some sensed extents be due before a tick."""
        for name, tick in first_due.items():
            self.extents[name].sensed_epochs.postpone(tick)

    @property
    def held(self) -> int:
        """The number of tuples and partials held."""
        return sum(intake.held for intake in self.by_key.values())

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """By extent, how many delivered tuples were accepted, late, rejected, and so on."""
        return {name: dict(sorted(intake.counts.items())) for name, intake in self.extents.items()}

    # --- folds -------------------------------------------------------------------------------------------------------

    def start_fold(self, number: int, fold: Fold, now: int) -> None:
        """Add the intake of a fold, in place of one that had its number before."""
        extents = dict.fromkeys((fold.extent, *find_acquires(fold)))
        self.by_key[number] = PartialIntake(fold, [self.extents[name] for name in extents], now)
        self._delivered[number], self._corrections[number] = [], []

    def drop_folds(self, find_used: Callable[[], set[int]]) -> None:
        """Drop the intakes of folds whose partials no query takes. `find_used` is called only if there are folds."""
        folds = {key for key in self.by_key if isinstance(key, int)}
        for number in folds - find_used() if folds else ():
            del self.by_key[number], self._delivered[number], self._corrections[number]

    # --- deliveries --------------------------------------------------------------------------------------------------

    def deliver(self, key: ExtentKey, batch: Batch | PartialBatch) -> None:
        """Add tuples to the deliveries of the current clock tick."""
        if len(batch):
            self._delivered[key].append(batch)

    def correct(self, correction: Correction) -> None:
        """Add a statement to the corrections of the current clock tick."""
        self._corrections[correction.extent.name].append(PendingCorrection(correction))

    def correct_archived(self, extent: str, rows: Batch) -> None:
        """Add corrections of pushed tuples, as an archive has them, to those of the current clock tick."""
        self._corrections[extent].append(ArchivedCorrections(rows))

    def take_delivered(self) -> Deliveries:
        """Remove and return the deliveries."""
        delivered, self._delivered = self._delivered, self._empty()
        return delivered

    def take_corrections(self) -> Corrections:
        """Remove and return the corrections."""
        corrections, self._corrections = self._corrections, self._empty()
        return corrections

    def may_wait(self, clock: int, tick: int) -> bool:
        """Return whether nothing that was delivered after `clock` up to `tick` changes an answer of before."""
        if any(self._corrections.values()):
            return False
        return all(
            can_wait(batches, self.by_key[key], clock, tick) for key, batches in self._delivered.items() if batches
        )

    def first_arrival(self, default: int) -> int:
        """Return the clock tick of the first delivery, if each extent's are in order."""
        return min((int(batches[0].arrival[0]) for batches in self._delivered.values() if batches), default=default)

    def pending_corrections(self) -> list[Correction]:
        """Return the statements of the current clock tick."""
        found = (pending for pending_of in self._corrections.values() for pending in pending_of)
        return [pending.correction for pending in found if isinstance(pending, PendingCorrection)]

    def archive_corrections(self) -> None:
        """Record the corrections that are carried out from now on, for `take_applied`."""
        self._archives = True
        for intake in self.extents.values():
            intake.applied = []

    def take_applied(self) -> list[tuple[str, Batch]]:
        """Remove and return the corrections that were carried out, each with its extent, in their order."""
        found = [(name, batch) for name, intake in self.extents.items() for batch in intake.applied or ()]
        if found:
            self.archive_corrections()
        return found

    # --- steps -------------------------------------------------------------------------------------------------------

    def find_batched(self, delivered: Deliveries, per_tick_extents: Iterable[str]) -> set[ExtentKey]:
        """Return the extents whose corrections in several clock ticks can be applied in one step.

        A mark stands before a correction, too. So an extent with marks takes a step for each.
        """
        per_tick: set[ExtentKey] = {key for key, batches in delivered.items() if any(b.marks for b in batches)}
        per_tick.update(per_tick_extents)
        return {key for key, intake in self.by_key.items() if intake.amends and key not in per_tick}

    def is_disturbed_by(self, delivered: Deliveries, corrections: Corrections, tick: int, answers_early: bool) -> bool:
        """Return whether deliveries of a clock tick may change an answer that is due before it."""
        return any(
            intake.is_disturbed_by(delivered[key], corrections[key], tick, answers_early)
            for key, intake in self.by_key.items()
        )

    def entry_ticks(self) -> list[int]:
        """Return clock ticks in which a tuple may enter its stream without a delivery; the next one is among them."""
        return [clock for intake in self.by_key.values() for clock in intake.entry_ticks()]

    def pass_time(self, tick: int) -> None:
        """End a clock tick without deliveries."""
        self.step(tick, self._empty(), self._empty(), end=False, multi_tick=False, batched=set())

    def step(
        self,
        tick: int,
        delivered: Deliveries,
        corrections: Corrections,
        end: bool,
        multi_tick: bool,
        batched: set[ExtentKey],
    ) -> None:
        """Take deliveries in and end clock tick `tick`; with `end`, all time is complete then.

        An intake that runs out of memory is in no defined state. It begins anew and takes nothing more until `take_failed`.
        """
        for key, intake in [*self.by_key.items()]:
            mark = IntakeMark.of(intake)
            if key in self._failed:
                self._begin_anew(key, tick, mark, delivered[key], self._failed[key])
                continue
            try:
                intake.step(delivered[key], corrections[key], tick, end, multi_tick, multi_tick and key in batched)
            except MemoryError as error:
                self._begin_anew(key, tick, mark, delivered[key], self._explain(key, error))

    def _explain(self, key: ExtentKey, error: MemoryError) -> str:
        return f"the intake of {key} held {self.by_key[key].held:,} tuples: {error}"

    def _begin_anew(self, key: ExtentKey, tick: int, mark: IntakeMark | None, lost: Sequence[Any], reason: str) -> None:
        """Replace the intake of an extent by one whose record begins after a clock tick; that of a fold goes with its queries.

        `mark` is of before the deliveries that are `lost`. The new intake numbers its tuples as if it had taken them.
        """
        self._failed[key] = reason
        old = self.by_key[key]
        if isinstance(old, Intake) and isinstance(key, str) and mark is not None:
            first = mark.number_after(old.extent, lost, old.applied or ())
            made = Intake(old.extent, tick + 1, not self._live, self._tick_ms, first)
            made.counts.update(_with_lost(mark.counts, lost))
            made.unfiltered_from, made.applied = old.unfiltered_from, old.applied
            self.extents[key] = self.by_key[key] = made

    def mark(self, delivered: Deliveries) -> Marks:
        """Return the marks of the intakes of some deliveries before these are taken in."""
        return {key: IntakeMark.of(self.by_key[key]) for key, batches in delivered.items() if batches}

    def lose(self, delivered: Deliveries, marks: Marks, tick: int, error: MemoryError) -> None:
        """Begin the intakes of some deliveries anew, because there is no memory to take these in; `marks` are of before."""
        for key, batches in delivered.items():
            if batches:
                self._begin_anew(key, tick, marks[key], batches, self._explain(key, error))

    @property
    def nothing(self) -> tuple[Deliveries, Corrections]:
        """No deliveries and no corrections."""
        return self._empty(), self._empty()

    @property
    def failed(self) -> dict[ExtentKey, str]:
        """The intakes that ran out of memory since `take_failed`, each with the reason. Their readers are to be dropped."""
        return self._failed

    def take_failed(self, clock: int) -> list[RecordStart]:
        """Let the records of extents that ran out of memory begin behind a clock tick; remove them from `failed` and return them."""
        failed, self._failed = self._failed, {}
        starts = [_find_start(self.extents[key]) for key in failed if isinstance(key, str)]
        for start in starts:
            self.restart(start, clock)
        return starts

    def restart(self, start: RecordStart, clock: int) -> None:
        """Let the record of an extent begin anew behind a clock tick."""
        old = self.extents[start.extent]
        made = Intake(old.extent, clock + 1, not self._live, self._tick_ms, start.next_number)
        made.counts.update(start.counts)
        made.unfiltered_from, made.applied = start.unfiltered_from, old.applied and old.applied[: start.applied]
        self.extents[start.extent] = self.by_key[start.extent] = made

    def prune(self, histories: Sequence[Mapping[str, int]], clock: int) -> None:
        """Drop what no query needs. `histories` have by extent the first tick that a scan may still ask for."""
        for key, intake in [*self.by_key.items()]:
            scanned = [read[key] for read in histories if isinstance(key, str) and key in read]
            try:
                intake.forget_history(min(scanned, default=None))  # first: without a history less is retained
                intake.forget()
            except MemoryError as error:
                self._begin_anew(key, clock, IntakeMark.of(intake), (), self._explain(key, error))


def _find_start(intake: Intake) -> RecordStart:
    counts = {name: int(count) for name, count in intake.counts.items()}
    return RecordStart(
        intake.extent.name, int(intake.log.next), int(intake.unfiltered_from), len(intake.applied or ()), counts
    )


def _count_taken(extent: Extent, batch: Batch) -> int:
    """Return how many tuples of a delivery an extent takes: neither corrections, nor those too far ahead of the clock."""
    is_taken = ~find_corrections(batch)
    if extent.ahead is not None:
        is_taken &= batch.tick <= batch.arrival + extent.ahead
    return int(is_taken.sum())


def _with_lost(counts: Counter[str], batches: Sequence[Any]) -> Counter[str]:
    """Return counts with all tuples of deliveries as received and lost."""
    count = sum(map(len, batches))
    return counts + Counter({"received": count, "out of memory": count})
