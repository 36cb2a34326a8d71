"""Compiler: placed operators and schedules -> one program per site and sampling. A pure function.

All operators of a sampling share its program. A condition of several operators is computed once. A reading is sent if any
operator takes it, with the attributes of all, so each value crosses a link once.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from acquisition.schedule import Sampling, Schedule
from innet.costs.hardware import Processor
from innet.errors import ProgramError
from innet.operators.acquire import find_acquires
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.mote_expression import (
    TRUE,
    Instruction,
    MoteConstant,
    MoteExpression,
    SensorValue,
    SiteNumber,
    all_of,
    any_of,
)
from innet.placement.placement import PlacedOperator, conditions, extents_of, is_about_site
from innet.program.footprint import measure_footprint
from innet.program.mote_program import MoteProgram
from innet.program.opcodes import CELLS, NO_SLOT, StateKind, assemble
from innet.program.table_memory import total_bytes


@dataclass(frozen=True, slots=True)
class IsTickMultiple(MoteExpression):
    """Whether the tick is a multiple of `ticks`: an operator may sample less often than the sampling."""

    ticks: int


@dataclass(frozen=True, slots=True)
class IsTickInSlice(MoteExpression):
    """Whether the tick lies in a slice that windows hold: within `ticks` from `edge` on, in each `period`."""

    period: int
    edge: int
    ticks: int


@dataclass(frozen=True, slots=True)
class IsSamplingDue(MoteExpression):
    """Whether another sampling has a sample at this tick."""

    sampling: int


def compile_programs(
    placed: Iterable[PlacedOperator], schedules: Iterable[Schedule], processors: Mapping[int, Processor] | None = None
) -> list[MoteProgram]:
    """Compile the programs of all sites.

    ProgramError if an attribute is not sampled, a program exceeds the limits of the machine, or, with `processors` by site,
    the programs and tables of a mote do not fit.
    """
    placed, schedules = tuple(placed), tuple(schedules)
    known = {sampling.extent: sampling for schedule in schedules for sampling in schedule.samplings}
    of_site = {schedule.site: schedule for schedule in schedules}
    merging = {site for found in placed for site in found.merging}
    compiler = _Compiler(placed)
    programs = []
    for site in sorted(of_site.keys() | merging):
        schedule = of_site.get(site, Schedule(site, 1, ()))
        made = [program for sampling in known.values() if (program := compiler.compile(schedule, sampling))]
        if processors is not None and site in processors:
            compiler.check_limits(site, made, processors[site])
        programs += made
    return programs


class _Compiler:
    """Compiles the programs of some operators. Sites that compute the same share the work: their programs differ in slots only."""

    def __init__(self, placed: tuple[PlacedOperator, ...]) -> None:
        self._placed = placed
        self._sites = [frozenset(each.sites) for each in placed]
        self._members = [sites.union(each.merging) for each, sites in zip(placed, self._sites, strict=True)]
        self._slots = [{site: slot for slot, site in enumerate(each.sites)} for each in placed]
        self._peers = {
            (s, e) for p in placed for e in extents_of(p.operator) if e != p.operator.extent for s in p.sites
        }
        self._analyses = {id(each): _Analysis.of(each) for each in placed}  # once, not for each site
        self._made: dict[Hashable, MoteProgram] = {}
        self._checked: set[Hashable] = set()

    def compile(self, schedule: Schedule, sampling: Sampling) -> MoteProgram | None:
        """Return the program of a site for a sampling, or None if it has nothing to do.

        A sampling that only programs of other samplings read gets an empty program: its readings are counted with theirs.
        """
        site, placed = schedule.site, self._placed
        here = [n for n, each in enumerate(placed) if each.operator.extent == sampling.extent]
        running = [n for n in here if site in self._sites[n]]
        tables = [n for n in here if isinstance(placed[n].operator, Fold) and site in self._members[n]]
        if not running and not tables and (site, sampling.extent) not in self._peers:
            return None
        alike = sampling.number, schedule.samplings, *running, None, *tables
        slots = [self._slots[n].get(site, NO_SLOT) for n in tables]
        if alike not in self._made:
            of_running, of_tables = [placed[n] for n in running], [placed[n] for n in tables]
            self._made[alike] = _program(schedule, sampling, of_running, of_tables, slots, self._analyses)
            return self._made[alike]
        return self._made[alike].at_site(site, schedule.version, slots)

    def check_limits(self, site: int, programs: Sequence[MoteProgram], processor: Processor) -> None:
        """Raise ProgramError if programs, their next versions or their tables exceed the memory of the mote."""
        needed = (
            processor,
            *((len(p.code), *((t.number, t.room, t.slots, t.keys, t.kinds) for t in p.tables)) for p in programs),
        )
        if needed not in self._checked:
            _check_limits(site, programs, self._placed, processor)
            self._checked.add(needed)


@dataclass(frozen=True, slots=True)
class _Analysis:
    """An operator without its sites: `terms` are its conditions on readings, as those on the site already decided where it runs."""

    terms: tuple[MoteExpression, ...]
    interval: int
    other_extents: tuple[str, ...]

    @classmethod
    def of(cls, placed: PlacedOperator) -> "_Analysis":
        operator = placed.operator
        terms = tuple(term for term in conditions(operator) if not is_about_site(term))
        others = tuple(extent for extent in extents_of(operator) if extent != operator.extent)
        return cls(terms, find_acquires(operator)[operator.extent].interval, others)


def _program(schedule: Schedule, sampling: Sampling, running: Sequence[PlacedOperator], tables: Sequence[PlacedOperator],
             slots: Sequence[int], analyses: Mapping[int, _Analysis]) -> MoteProgram:  # fmt: skip
    """Return the program of a site for a sampling, with its slot in each table."""
    site, samplings = schedule.site, {sampling.extent: sampling for sampling in schedule.samplings}
    own = samplings.get(sampling.extent)
    if running and own is None:
        raise ProgramError(f"{sampling.extent} is not sampled", None, site, running[0].operator.label())
    code = _Assembler(site, sampling, samplings, analyses)
    for table, slot in zip(tables, slots, strict=True):
        code.declare(table, slot)
    code.share([analyses[id(p)].terms for p in running])
    code.deliver([p for p in running if isinstance(p.operator, Deliver)])
    for p in running:
        if isinstance(p.operator, Fold):
            code.fold(p)
    code.put("HALT")
    channels = len(sampling.channels) if own else 0
    try:
        return MoteProgram(site, sampling.number, schedule.version, channels, bytes(code.bytes))
    except ProgramError as error:
        labels = ", ".join(p.operator.label() for p in (*running, *tables)[:3])
        raise ProgramError(str(error), None, site, labels) from error


class _Assembler:
    """Code under construction."""

    def __init__(
        self, site: int, sampling: Sampling, samplings: Mapping[str, Sampling], analyses: Mapping[int, _Analysis]
    ) -> None:
        self.site, self.sampling, self.samplings, self._analyses = site, sampling, samplings, analyses
        self.bytes = bytearray()
        self.cells: dict[MoteExpression, int] = {}

    def put(self, name: str, *operands: int) -> None:
        """Append an instruction."""
        self.bytes += assemble(name, *operands)

    # --- parts of a program ------------------------------------------------------------------------------------------

    def declare(self, placed: PlacedOperator, slot: int) -> None:
        """Declare the table of a fold, and the slot of the site in it."""
        shape, slices = placed.shape, placed.fold.slices
        cuts = slices.period, slices.edge, slices.other
        self.put("TABLE", placed.number, len(placed.sites), slot, shape.keys, placed.room, *cuts)
        for kind in shape.kinds:
            self.put("KEEP", StateKind[kind])

    def share(self, of_each: Sequence[tuple[MoteExpression, ...]]) -> None:
        """Compute conditions of several operators once, the most frequent first, as long as there are cells."""
        uses = Counter(term for terms in of_each for term in dict.fromkeys(terms))
        shared = [term for term, count in uses.most_common() if count > 1]
        for cell, term in enumerate(shared[:CELLS]):
            self.value(term)
            self.put("STORE", cell)
            self.cells[term] = cell

    def deliver(self, placed: Sequence[PlacedOperator]) -> None:
        """Send the reading if any of the operators takes it."""
        if not placed:
            return
        # Of each operator: when it samples, or None for always; and the conditions of the readings that it takes.
        pairs = ((self._due(p), all_of([*self._here(p), *self._analyses[id(p)].terms])) for p in placed)
        demands = list(dict.fromkeys(pairs))
        dues = [due for due, _ in demands if due is not None]
        end = self.skip(any_of(dues)) if len(dues) == len(demands) else None
        self.put("WANT")
        taken = [all_of([term for term in demand if term is not None and term != TRUE]) for demand in demands]
        filtered = None if TRUE in taken else self.skip(any_of(taken))
        sent = {attribute for p in placed if isinstance(p.operator, Deliver) for attribute in p.operator.sent}
        names = [channel.attribute for channel in self.sampling.channels]
        if missing := sorted(sent.difference(names)):
            label = placed[0].operator.label()
            raise ProgramError(f"`{missing[0]}` of {self.sampling.extent} is not sampled", None, self.site, label)
        for channel, attribute in enumerate(names):
            if attribute in sent:
                self.put("LOAD", channel)
                self.put("OUT", channel)
        self.put("SEND")
        self.land(filtered)
        self.land(end)

    def fold(self, placed: PlacedOperator) -> None:
        """Fold the reading, or the pair, into its group if the operator takes it; mark it in any case."""
        fold, due = placed.fold, self._due(placed)
        slices = fold.slices
        belongs = [*([] if due is None else [due]), *self._here(placed)]
        if slices.gap_edge is not None:
            belongs.append(IsTickInSlice(slices.period, *slices.window_span))
        end = self.skip(all_of(belongs)) if belongs else None
        self.put("MARK", placed.number)
        taken = all_of(list(self._analyses[id(placed)].terms))
        filtered = None if taken == TRUE else self.skip(taken)
        for key in fold.keys:
            self.value(key)
            self.put("KEY")
        self.put("ENTER", placed.number)
        for place, (_, value) in enumerate(fold.states):
            self.value(value)
            self.put("FOLD", place)
        self.land(filtered)
        self.land(end)

    def _due(self, placed: PlacedOperator) -> MoteExpression | None:
        """Return the condition that the operator samples at this tick, or None if it always does."""
        interval = self._analyses[id(placed)].interval
        return None if interval == self.sampling.epochs.interval else IsTickMultiple(interval)

    def _here(self, placed: PlacedOperator) -> list[MoteExpression]:
        """Return the conditions that all other extents of an operator have a sample."""
        others = (self.samplings.get(extent) for extent in self._analyses[id(placed)].other_extents)
        return [IsSamplingDue(sampling.number) for sampling in others if sampling is not None]

    # --- jumps and values --------------------------------------------------------------------------------------------

    def skip(self, condition: MoteExpression) -> int:
        """Continue only if the condition is true; return the byte after the jump."""
        self.value(condition)
        self.put("SKIP", 0)
        return len(self.bytes)

    def land(self, skip: int | None) -> None:
        """Let the jump that `skip` returned lead here."""
        if skip is not None:
            self.bytes[skip - 2 : skip] = (len(self.bytes) - skip).to_bytes(2, "little")

    def value(self, expression: MoteExpression) -> None:
        """Push the value of an expression."""
        if expression in self.cells:
            self.put("FETCH", self.cells[expression])
            return
        for part in expression.parts:
            self.value(part)
        match expression:
            case MoteConstant(value):
                self._number(value)
            case SensorValue():
                self._measured(expression)
            case SiteNumber():
                self.put("SITE")
            case IsTickMultiple(ticks):
                self.put("EVERY", ticks)
            case IsTickInSlice(period, edge, ticks):
                self.put("WITHIN", period, edge, ticks)
            case IsSamplingDue(sampling):
                self.put("HERE", sampling)
            case Instruction(name):
                self.put(name)
            case _:
                raise TypeError(f"no instruction for {expression!r}")

    def _number(self, value: int | None) -> None:
        if value is None:
            self.put("NULL")
        else:
            bits = value.bit_length() + 1 if value >= 0 else (~value).bit_length() + 1
            self.put("LIT8" if bits <= 8 else "LIT16" if bits <= 16 else "LIT32", value)

    def _measured(self, measured: SensorValue) -> None:
        sampling = self.samplings.get(measured.extent)
        names = [] if sampling is None else [channel.attribute for channel in sampling.channels]
        if sampling is None or measured.attribute not in names:
            raise ProgramError(f"`{measured.attribute}` of {measured.extent} is not sampled", None, self.site)
        channel = names.index(measured.attribute)
        if measured.extent == self.sampling.extent:
            self.put("LOAD", channel)
        else:
            self.put("PEER", sampling.number, channel)


def _check_limits(
    site: int, programs: Sequence[MoteProgram], placed: Sequence[PlacedOperator], processor: Processor
) -> None:
    """Raise ProgramError if programs, their next versions or their tables exceed the memory of the mote."""
    kept = measure_footprint(programs)
    if kept.programs > processor.program_bytes:
        longest = max(placed, key=lambda p: site in p.sites and len(p.operator.label())).operator
        excess = f"programs and their next version need {kept.programs} bytes, the mote has {processor.program_bytes}"
        raise ProgramError(excess, None, site, longest.label())
    if kept.tables > processor.ram_bytes:
        tables = {table.number: table for program in programs for table in program.tables}
        largest = max(tables.values(), key=lambda table: total_bytes([table])).number
        label = next(p.operator.label() for p in placed if p.number == largest and isinstance(p.operator, Fold))
        excess = f"tables of partials need {kept.tables} bytes, the mote has {processor.ram_bytes}"
        raise ProgramError(excess, None, site, label)
