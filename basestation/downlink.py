"""DOOR DOWN: the text of a query -> a plan for the engine, and messages for the motes."""

from dataclasses import dataclass, replace

from acquisition.errors import ScheduleError
from basestation.commanding import commanded, ordered, reporting, unless_it_waits
from basestation.execution.build import NotYet, TooEarly
from basestation.execution.engine import Engine
from basestation.language.diagnostics import Diagnostic, Refused
from basestation.language.syntax import Explain
from basestation.lasting import CannotLast, check_promises, decided, lasting
from basestation.outlook import added
from basestation.planner.bind import bind_text
from basestation.planner.plan import Plan
from basestation.queries import Event, Query
from basestation.wanted import renewed
from basestation.world import World
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
        told = ordered(changed, now, renewed(feeding.query, world))
        query = replace(feeding.query, reports_from=reporting(feeding.query, world, told, now))
        check_promises(told)
        begin = {number: each.operator for number, each in feeding.begin.items()}
        engine.add(query.number, decided(plan, world), query.fed, begin, query.reports_from, query.reads)
    except NotYet as error:
        raise _refused(text, "SN601", str(error), plan) from error
    except CannotLast as error:
        raise _refused(text, "SN513", str(error), plan) from error
    except TooEarly as error:
        raise _refused(text, "SN434", f"{error}; the first possible tick is {error.first}", plan) from error
    except ScheduleError as error:
        raise _refused(text, error.code, str(error), plan) from error
    query = query.waiting_for(site for site, each in told.desired.items() if world.desired.get(site) != each)
    return Deployment(unless_it_waits(changed, told, now).with_query(query), query)


def withdraw(number: int, world: World, engine: Engine) -> Deployment:
    """Stop a query: the engine forgets it, the motes stop what only it needed."""
    engine.remove(number)
    return release(number, Event.STOP, world, engine)


def release(number: int, event: Event, world: World, engine: Engine) -> Deployment:
    """A query, which the engine has forgotten, is over by an event: the motes stop what only it needed."""
    query = world.queries[number].after(event)
    return Deployment(commanded(world.with_query(query), engine.clock + 1), query)


def _one_query(text: str, world: World) -> Plan:
    plans = bind_text(text, world.catalog)
    if len(plans) != 1 or not isinstance(plans[0], Plan):
        raise _refused(text, "SN601", "anything but one query at a time cannot be deployed yet", plans[-1])
    if isinstance(plans[0].statement, Explain):
        raise _refused(text, "SN601", "EXPLAIN cannot be deployed", plans[0])
    return plans[0]


def _refused(text: str, code: str, message: str, plan: Plan) -> Refused:
    return Refused([Diagnostic(code, message, Source(text), plan.statement.span)])
