"""DOOR DOWN: the text of a query -> a plan for the engine, and messages for the motes."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import acquisition.downlink
import innet.downlink
from acquisition.errors import ScheduleError
from basestation.agendas import with_agenda
from basestation.execution.build import NotYet, TooEarly
from basestation.execution.engine import Engine
from basestation.language.diagnostics import Diagnostic, Refused
from basestation.language.syntax import Explain
from basestation.lasting import CannotLast, check_promises, decided, lasting
from basestation.outlook import added
from basestation.planner.bind import bind_text
from basestation.planner.plan import Plan
from basestation.queries import Event, Query
from basestation.wanted import compiled, patience, placed, renewed, shared
from basestation.world import World
from gateway.reconcile import Desired
from gateway.source import Source


@dataclass(frozen=True, slots=True)
class Deployment:
    """The world with the change in it, and the query that changed it."""

    world: World
    query: Query


def deploy(text: str, world: World, engine: Engine) -> Deployment:
    """Accept a query: from its first window after now on the engine answers it. Refused says why it cannot be."""
    plan, now = _one_query(text, world), engine.clock + 1
    try:
        plan = lasting(plan, world, now)
        changed, feeding = added(plan, world.next_number(), world, now, text)
        query, folds = feeding.query, feeding.begin
        changed = commanded(changed, now, renewed(query, world))
        check_promises(changed)
        begin = {number: each.operator for number, each in folds.items()}
        engine.add(query.number, decided(plan, world), query.fed, begin, query.reports_from, query.reads)
    except NotYet as error:
        raise _refused(text, "SN601", str(error), plan) from error
    except CannotLast as error:
        raise _refused(text, "SN513", str(error), plan) from error
    except TooEarly as error:
        raise _refused(text, "SN434", f"{error}; the first possible tick is {error.first}", plan) from error
    except ScheduleError as error:
        raise _refused(text, error.code, str(error), plan) from error
    return _deployment(changed, query, world)


def withdraw(number: int, world: World, engine: Engine) -> Deployment:
    """Stop a query: the engine forgets it, the motes stop what only it needed."""
    engine.remove(number)
    return release(number, Event.STOP, world, engine)


def release(number: int, event: Event, world: World, engine: Engine) -> Deployment:
    """A query, which the engine has forgotten, is over by an event: the motes stop what only it needed."""
    query = world.queries[number].after(event)
    return _deployment(commanded(world.with_query(query), engine.clock + 1), query, world)


def _deployment(changed: World, query: Query, before: World) -> Deployment:
    """The query waits for the motes that are to have something else than before."""
    told = [site for site, desired in changed.desired.items() if before.desired.get(site) != desired]
    query = query.waiting_for(told)
    return Deployment(changed.with_query(query), query)


def commanded(world: World, tick: int, anew: Collection[str] = ()) -> World:
    """The world with schedules and programs for all live queries together: what each mote should have.

    To be asked for when queries come, go or are fed in another way; when the routing tree has changed, for motes are to send to
    their new parents; and when an agenda has begun, to look for another. `anew` are extents that get new samplings.
    """
    scheduled = shared(world, tick, anew)
    running = placed(world)
    timed = with_agenda(world, running, scheduled.schedules, tick)
    programs = innet.downlink.images(
        compiled(running, world, scheduled)[1], world.tree, scheduled.schedules, timed.agenda
    )
    schedules = acquisition.downlink.images(scheduled.schedules)
    desired = {
        site: Desired(schedules.get(site), programs.get(site)) for site in sorted(schedules.keys() | programs.keys())
    }
    folds = {each.number: each for each in running if each.number}
    changed = replace(timed, scheduled=scheduled, desired=desired, patience=patience(world))
    return changed.with_folds(folds)


def _one_query(text: str, world: World) -> Plan:
    plans = bind_text(text, world.catalog)
    if len(plans) != 1 or not isinstance(plans[0], Plan):
        raise _refused(text, "SN601", "anything but one query at a time cannot be deployed yet", plans[-1])
    if isinstance(plans[0].statement, Explain):
        raise _refused(text, "SN601", "EXPLAIN cannot be deployed", plans[0])
    return plans[0]


def _refused(text: str, code: str, message: str, plan: Plan) -> Refused:
    return Refused([Diagnostic(code, message, Source(text), plan.statement.span)])
