"""Placed operators + schedules -> one program per site and sampling. A pure function.

All operators of a sampling share its program: conditions that several of them have are computed first and once, a
reading is sent if anybody wants it, and then with all that anybody wants of it, so that each value crosses once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from acquisition.schedule import Sampling, Schedule
from innet.costs.hardware import Processor
from innet.errors import ProgramError
from innet.operators.acquire import find_acquires
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.mote_expression import MoteConstant, MoteExpression, SensorValue, SiteNumber, all_of, any_of
from innet.placement.placement import PlacedOperator, conditions, extents_of, is_about_site
from innet.program.footprint import measure_footprint
from innet.program.mote_program import MoteProgram
from innet.program.opcodes import CELLS, NO_SLOT, StateKind, assemble
from innet.program.table_memory import total_bytes


@dataclass(frozen=True, slots=True)
class IsTickMultiple(MoteExpression):
    """Whether the tick is one that a query samples at: others may sample more often."""

    ticks: int


@dataclass(frozen=True, slots=True)
class IsTickInSlice(MoteExpression):
    """Whether the tick is in a slice that windows hold."""

    period: int
    edge: int
    ticks: int


@dataclass(frozen=True, slots=True)
class IsSamplingDue(MoteExpression):
    """Whether another sampling is due at this tick, too."""

    sampling: int


def compile_programs(
    placed: Iterable[PlacedOperator], schedules: Iterable[Schedule], processors: Mapping[int, Processor] | None = None
) -> list[MoteProgram]:
    """What each site runs so that every operator gets its tuples. ProgramError where a mote has no room for it."""
    placed, schedules = tuple(placed), tuple(schedules)
    known = {sampling.extent: sampling for schedule in schedules for sampling in schedule.samplings}
    of_site = {schedule.site: schedule for schedule in schedules}
    merging = {site for found in placed for site in found.merging}
    peers = {(s, e) for p in placed for e in extents_of(p.operator) if e != p.operator.extent for s in p.sites}
    programs = []
    for site in sorted(of_site.keys() | merging):
        schedule = of_site.get(site, Schedule(site, 1, ()))
        samplings = {sampling.extent: sampling for sampling in schedule.samplings}
        made = []
        for extent, sampling in known.items():
            of_it = [p for p in placed if p.operator.extent == extent]
            if program := _program(schedule, samplings, sampling, of_it, (site, extent) in peers):
                made.append(program)
        if processors is not None and site in processors:
            _check_limits(site, made, placed, processors[site])
        programs += made
    return programs


def _program(schedule: Schedule, samplings: Mapping[str, Sampling], sampling: Sampling, placed: Sequence[PlacedOperator],
             looked_at: bool):  # fmt: skip
    """The program of a site for a sampling; None where it has nothing to do in it.

    One that only programs of other samplings look at does nothing: its readings are counted with it.
    """
    site, own = schedule.site, samplings.get(sampling.extent)
    running = [p for p in placed if site in p.sites]
    tables = [p for p in placed if isinstance(p.operator, Fold) and (site in p.sites or site in p.merging)]
    if not running and not tables and not looked_at:
        return None
    if running and own is None:
        raise ProgramError(f"{sampling.extent} is not sampled", None, site, running[0].operator.label())
    code = _Assembler(site, sampling, samplings)
    for table in tables:
        code.declare(table)
    code.share([_terms(p) for p in running])
    code.deliver([p for p in running if isinstance(p.operator, Deliver)])
    for p in running:
        if isinstance(p.operator, Fold):
            code.fold(p)
    code.put("HALT")
    channels = len(sampling.channels) if own else 0
    try:
        return MoteProgram(site, sampling.number, schedule.version, channels, bytes(code.bytes))
    except ProgramError as error:
        said = ", ".join(p.operator.label() for p in (*running, *tables)[:3])
        raise ProgramError(str(error), None, site, said) from error


def _terms(placed: PlacedOperator) -> tuple[MoteExpression, ...]:
    """What must be true for a reading to be taken; what is known of the site went into `sites`."""
    return tuple(term for term in conditions(placed.operator) if not is_about_site(term))


def _here(placed: PlacedOperator, samplings: Mapping[str, Sampling]) -> tuple[MoteExpression, ...]:
    """That there are readings of all other extents that it looks at."""
    operator = placed.operator
    return tuple(
        IsSamplingDue(samplings[e].number) for e in extents_of(operator) if e != operator.extent and e in samplings
    )


class _Assembler:
    """A program that is being written."""

    def __init__(self, site: int, sampling: Sampling, samplings: Mapping[str, Sampling]) -> None:
        self.site, self.sampling, self.samplings = site, sampling, samplings
        self.bytes = bytearray()
        self.cells: dict[MoteExpression, int] = {}

    def put(self, name: str, *operands: int) -> None:
        self.bytes += assemble(name, *operands)

    # --- parts of a program ------------------------------------------------------------------------------------------

    def declare(self, placed: PlacedOperator) -> None:
        shape, slices = placed.shape, placed.operator.slices
        slot = placed.sites.index(self.site) if self.site in placed.sites else NO_SLOT
        cuts = slices.period, slices.edge, slices.other
        self.put("TABLE", placed.number, len(placed.sites), slot, shape.keys, placed.room, *cuts)
        for kind in shape.kinds:
            self.put("KEEP", StateKind[kind])

    def share(self, of_each: Sequence[tuple[MoteExpression, ...]]) -> None:
        """Compute the conditions that several operators have, those of most of them first, while there are cells."""
        wanted = Counter(term for terms in of_each for term in dict.fromkeys(terms))
        shared = [term for term, count in wanted.most_common() if count > 1]
        for cell, term in enumerate(shared[:CELLS]):
            self.value(term)
            self.put("STORE", cell)
            self.cells[term] = cell

    def deliver(self, placed: Sequence[PlacedOperator]) -> None:
        """Send the reading if one of the operators wants it."""
        if not placed:
            return
        wanted = [(self._due(p), all_of([*_here(p, self.samplings), *_terms(p)])) for p in placed]
        wanted = list(dict.fromkeys(wanted))
        always = [due for due, _ in wanted if due is None]
        end = None if always else self.skip(any_of([due for due, _ in wanted]))
        self.put("WANT")
        whole = [
            all_of([term for term in (due, taken) if term not in (None, MoteConstant(1))]) for due, taken in wanted
        ]
        filtered = None if MoteConstant(1) in whole else self.skip(any_of(whole))
        sent = {attribute for p in placed for attribute in p.operator.sent}
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
        """Fold the reading, or the pair, into its group if the operator takes it; mark it if it takes it or not."""
        operator: Fold = placed.operator
        due, slices = self._due(placed), operator.slices
        there = [*([] if due is None else [due]), *_here(placed, self.samplings)]
        if slices.gap_edge is not None:
            there.append(IsTickInSlice(slices.period, *slices.window_span))
        end = self.skip(all_of(there)) if there else None
        self.put("MARK", placed.number)
        taken = all_of(list(_terms(placed)))
        filtered = None if taken == MoteConstant(1) else self.skip(taken)
        for key in operator.keys:
            self.value(key)
            self.put("KEY")
        self.put("ENTER", placed.number)
        for place, (_, value) in enumerate(operator.states):
            self.value(value)
            self.put("FOLD", place)
        self.land(filtered)
        self.land(end)

    def _due(self, placed: PlacedOperator) -> MoteExpression | None:
        """What tells the ticks of this operator from others of the sampling; None where they are all its own."""
        interval = find_acquires(placed.operator)[placed.operator.extent].interval
        return None if interval == self.sampling.epochs.interval else IsTickMultiple(interval)

    # --- jumps and values --------------------------------------------------------------------------------------------

    def skip(self, condition: MoteExpression) -> int:
        """Go on only where this is true; gives the place of the jump."""
        self.value(condition)
        self.put("SKIP", 0)
        return len(self.bytes)

    def land(self, skip: int | None) -> None:
        """Here goes on who jumped there."""
        if skip is not None:
            self.bytes[skip - 2 : skip] = (len(self.bytes) - skip).to_bytes(2, "little")

    def value(self, expression: MoteExpression) -> None:
        """Push what an expression gives."""
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
            case _:
                self.put(expression.name)

    def _number(self, value: int | None) -> None:
        if value is None:
            self.put("NULL")
        else:
            bits = value.bit_length() + 1 if value >= 0 else (~value).bit_length() + 1
            self.put("LIT8" if bits <= 8 else "LIT16" if bits <= 16 else "LIT32", value)

    def _measured(self, measured: SensorValue) -> None:
        sampling = self.samplings.get(measured.extent)
        names = [] if sampling is None else [channel.attribute for channel in sampling.channels]
        if measured.attribute not in names:
            raise ProgramError(f"`{measured.attribute}` of {measured.extent} is not sampled", None, self.site)
        channel = names.index(measured.attribute)
        if measured.extent == self.sampling.extent:
            self.put("LOAD", channel)
        else:
            self.put("PEER", sampling.number, channel)


def _check_limits(
    site: int, programs: Sequence[MoteProgram], placed: Sequence[PlacedOperator], processor: Processor
) -> None:
    """There is room for the programs, for the next version of them while it arrives, and for what they keep."""
    kept = measure_footprint(programs)
    if kept.programs > processor.program_bytes:
        longest = max(placed, key=lambda p: site in p.sites and len(p.operator.label())).operator
        said = f"its programs and their next version take {kept.programs} bytes, it has {processor.program_bytes}"
        raise ProgramError(said, None, site, longest.label())
    if kept.tables > processor.ram_bytes:
        tables = {table.number: table for program in programs for table in program.tables}
        largest = max(tables.values(), key=lambda table: total_bytes([table])).number
        label = next(p.operator.label() for p in placed if p.number == largest and isinstance(p.operator, Fold))
        raise ProgramError(f"what it keeps takes {kept.tables} bytes, it has {processor.ram_bytes}", None, site, label)
