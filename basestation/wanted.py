"""Wanted: what the live queries together want of motes, and which of their reports speak for all of them."""

from acquisition.batch import Batch
from acquisition.schedule import Sampling
from acquisition.scheduling import Scheduled
from basestation.algebra.node import Node
from basestation.planner.lower import collected
from basestation.planner.moves import Moves
from basestation.planner.plan import Plan
from basestation.planner.split import raw_of, split
from basestation.queries import Query
from basestation.world import World
from innet.costs.hardware import hardware
from innet.errors import ProgramError
from innet.operators.acquire import acquired
from innet.operators.deliver import Deliver
from innet.placement.placement import Placed, conditions, everywhere, extents_of, taking
from innet.placement.rhythm import longest_pause
from innet.program.compile import compile_programs
from innet.program.program import MoteProgram

MISSED = 6
"""So many epochs may be late or lost before somebody is taken to be silent."""


def inside(plan: Plan, root: Node, world: World) -> tuple[Deliver, ...]:
    """What motes are to deliver: what passes the conditions that they can ask, where their sensors are known."""
    if world.deployment is None or world.moves is Moves.NOTHING:
        return collected(root)
    found = split(plan, root, raw_of(world.deployment, world.catalog))
    return tuple(dict.fromkeys((*found.readings, *(each for feed in found.feeds for each in feed.instead))))


def renewed(query: Query, world: World) -> set[str]:
    """The extents of which a query wants readings that motes filter so far."""
    wanted = set(_delivered(world))
    bare = [operator for operator in wanted if not conditions(operator)]
    return {
        new.extent
        for new in query.inside
        if new not in wanted
        and not any(each.extent == new.extent and _interval(new) % _interval(each) == 0 for each in bare)
    }


def believed(sampling: Sampling, reports: Batch, world: World) -> Batch:
    """Those of a sampling's reports that speak for all queries there are now.

    A mote that has not heard of a new query yet filters by the conditions of those before; so a query that wants what
    was filtered renews the sampling, and from the new one's first tick on only its own reports count.
    """
    current = world.scheduled.current(sampling.extent)
    if current is None or current == sampling:
        return reports
    return reports.take(reports.tick < current.epochs.start)


def compiled(world: World, scheduled: Scheduled) -> list[MoteProgram]:
    """The programs of all motes; where one has no room for its own, none asks any condition."""
    delivered = _delivered(world)
    motes = {} if world.deployment is None else world.deployment.motes
    processors = {number: hardware(mote.hardware).processor for number, mote in motes.items()}
    sites = {name: world.catalog.find(name).sites for name in {operator.extent for operator in delivered}}
    placed = [_placed(operator, sites[operator.extent]) for operator in dict.fromkeys(delivered)]
    try:
        return compile_programs(placed, scheduled.schedules.values(), processors)
    except ProgramError:
        acquires = [acquire for operator in delivered for acquire in acquired(operator).values()]
        everything = [Deliver(acquire, acquire.extent, acquire.sampled) for acquire in acquires]
        return compile_programs(everywhere(everything, sites), scheduled.schedules.values())


def patience(world: World) -> dict[int, int]:
    """For how many ticks a site may say nothing before it is silent, by what it is to deliver."""
    found: dict[int, int] = {}
    for operator in _delivered(world):
        most = longest_pause(operator) + MISSED * _interval(operator)
        for site in _placed(operator, world.catalog.find(operator.extent).sites).sites:
            found[site] = min(most, found.get(site, most))
    return found


def _placed(operator: Deliver, sites: tuple[int, ...]) -> Placed:
    """At the sites that its conditions do not exclude. What one extent's conditions exclude is still due of another (12.3)."""
    return Placed(operator, taking(operator, sites) if len(extents_of(operator)) == 1 else sites)


def _interval(operator: Deliver) -> int:
    return acquired(operator)[operator.extent].interval


def _delivered(world: World) -> list[Deliver]:
    """What live queries want."""
    return [operator for query in world.queries.values() if query.needs for operator in query.inside]
