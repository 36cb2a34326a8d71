"""Lasting: how rarely a query is sampled so that motes last as long as it asks (LIFETIME, SEMANTICS 11).

That is decided once, when the query is accepted, by what is predicted of it and of all that runs already; who comes later must
leave the motes the lifetime that was promised. Where the network changes by itself nobody can be refused: it is told.
"""

from dataclasses import replace
from math import gcd, inf, lcm

from basestation.algebra.node import walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.window import TimeWindow
from basestation.controller.forecast import CANNOT, added, outlook
from basestation.controller.world import World
from basestation.language.printer import print_statement
from basestation.language.syntax import Duration
from basestation.planner.binder import bind_text
from basestation.planner.multiple_search import least
from basestation.planner.plan import Plan
from basestation.planner.rewriter import rewrite
from innet.costs.energy_model import Prediction
from innet.errors import PlacementError
from innet.placement.agenda import LONGEST_ROUND_MS
from innet.placement.agenda_scheduler import MOST_EPOCHS


class CannotLast(PlacementError):
    """Motes do not last as long as some query asks; the numbers, and what could be."""


def lasting(plan: Plan, world: World, now: int) -> Plan:
    """The same query, sampled at the shortest multiple of its interval with which motes last as long as it asks.

    CannotLast if they would not at any, or would not last as long any more as a query wants that runs already.
    """
    goal = plan.asked.lifetime
    if goal is None or world.deployment is None:
        return plan
    if not world.sleeps:
        raise CannotLast("motes last when they sleep, and this station lets none of them")
    tick_ms = world.catalog.tick_ms
    step = plan.asked.acquire_every or lcm(
        *(n.extent.interval for n in walk(plan.root) if isinstance(n, StreamAcquire))
    )
    wanted, longest = goal * tick_ms / 86_400_000, 0.0
    refused: CannotLast | None = None

    def enough(times: int) -> bool:
        nonlocal longest, refused
        try:
            days = worst_days(sampled_every(plan, step * times, tick_ms), world, now)
        except CannotLast as why:  # what is sampled more rarely may fit
            days, refused = 0.0, why
        longest = max(longest, days)
        return days >= wanted

    beside, few = _beside(plan, world, step), 0
    for many in _alike(plan, world, step):
        if times := least(few + 1, many, beside, enough):
            found = sampled_every(plan, step * times, tick_ms)
            return replace(plan, root=found.root, asked=replace(found.asked, lifetime=goal))
        few = many
    if refused and not longest:
        raise refused
    raise CannotLast(f"motes last {longest:,.1f} days at most, and are to last {wanted:,.1f}")


def _beside(plan: Plan, world: World, step: int) -> int:
    """With what a multiple of `step` has divisors in common: what others sample at, and where windows begin."""
    roots = [plan.root, *(query.plan.root for query in world.live.values())]
    slides = [n.slide for root in roots for n in walk(root) if isinstance(n, TimeWindow | SliceAggregation)]
    others = [need.every for query in world.live.values() for need in query.needs]
    return lcm(*(ticks // gcd(ticks, step) for ticks in (*slides, *others)))


def _alike(plan: Plan, world: World, step: int) -> list[int]:
    """The last multiples of `step` with which as many epochs share a round as with those before, and the last of all.

    Motes count no longer rounds; and where windows hold only some of the ticks, those are sampled.
    """
    tick_ms = world.catalog.tick_ms
    better, _ = rewrite(sampled_every(plan, step, tick_ms))
    sampled = max(node.interval for node in walk(better.root) if isinstance(node, StreamAcquire))
    most = max(1, LONGEST_ROUND_MS // (sampled * tick_ms))
    within = plan.asked.deliver_within
    if within is None:
        return [most]
    ends = {(within - 1) // (step * epochs) for epochs in range(1, MOST_EPOCHS)}
    return [*sorted(end for end in ends if 0 < end < most), most]


def sampled_every(plan: Plan, every: int, tick_ms: int) -> Plan:
    """The same query with ACQUIRE EVERY in the place of LIFETIME."""
    statement = plan.statement
    clauses = replace(statement.clauses, acquire_every=Duration(every * tick_ms, "MS"), lifetime=None)
    [found] = bind_text(print_statement(replace(statement, clauses=clauses)), plan.catalog)
    return found


def decided(plan: Plan, world: World) -> Plan:
    """What is left to answer of a query for which that is decided: where there is a deployment."""
    return plan if world.deployment is None else replace(plan, asked=replace(plan.asked, lifetime=None))


def worst_days(plan: Plan, world: World, now: int) -> float:
    """How long the first battery lasts if a query comes to what runs already; CannotLast where that cannot be run at all."""
    try:
        found = outlook(added(plan, max(world.queries, default=0) + 1, world, now)[0])
    except CANNOT as why:
        raise CannotLast(str(why)) from why
    return inf if found is None else days_of(found.predicted())


def days_of(prediction: Prediction) -> float:
    return min(prediction.lifetimes.values(), default=inf) / 86_400


def check_promises(world: World) -> None:
    """CannotLast, with its name, if a live query has asked for motes that last longer than they will now."""
    for why in broken_promises(world).values():
        raise CannotLast(why)


def judged(world: World) -> World:
    """The world after it has changed by itself: each query knows whether motes still last as long as it asks."""
    broken = broken_promises(world)
    for number, query in world.live.items():
        if query.broken != broken.get(number):
            world = world.with_query(replace(query, broken=broken.get(number)))
    return world


def broken_promises(world: World) -> dict[int, str]:
    """By the number of a live query that has asked for motes that last: why they do not."""
    asked = {n: q.plan.asked.lifetime for n, q in world.live.items() if q.needs and q.plan.asked.lifetime}
    if not asked or world.deployment is None:
        return {}
    try:
        found = outlook(world).predicted()
    except CANNOT as why:
        return {n: f"query {n} asks for motes that last, and no agenda lets them sleep: {why}" for n in asked}
    days = days_of(found)
    wanted = {n: goal * world.catalog.tick_ms / 86_400_000 for n, goal in asked.items()}
    return {
        n: f"query {n} asks for motes that last {goal:,.1f} days; mote {found.worst} would last {days:,.1f}"
        for n, goal in wanted.items()
        if days < goal
    }
