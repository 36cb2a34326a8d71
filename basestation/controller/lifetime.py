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
from basestation.controller.forecast import INFEASIBLE, add_query, make_forecast
from basestation.controller.world import World
from basestation.language.printer import print_statement
from basestation.language.syntax import Duration
from basestation.planner.binder import bind_text
from basestation.planner.multiple_search import find_least_multiple
from basestation.planner.plan import Plan
from basestation.planner.rewriter import rewrite
from innet.costs.energy_model import EnergyPrediction
from innet.errors import PlacementError
from innet.placement.agenda import MAX_ROUND_MS
from innet.placement.agenda_scheduler import MAX_EPOCHS


class LifetimeError(PlacementError):
    """Motes do not last as long as some query asks; the numbers, and what could be."""


def fit_lifetime(plan: Plan, world: World, now: int) -> Plan:
    """The same query, sampled at the shortest multiple of its interval with which motes last as long as it asks.

    CannotLast if they would not at any, or would not last as long any more as a query wants that runs already.
    """
    goal = plan.options.lifetime
    if goal is None or world.deployment is None:
        return plan
    if not world.duty_cycled:
        raise LifetimeError("motes last when they sleep, and this station lets none of them")
    tick_ms = world.catalog.tick_ms
    step = plan.options.acquire_every or lcm(
        *(n.extent.interval for n in walk(plan.root) if isinstance(n, StreamAcquire))
    )
    wanted, longest = goal * tick_ms / 86_400_000, 0.0
    refused: LifetimeError | None = None

    def enough(times: int) -> bool:
        nonlocal longest, refused
        try:
            days = predict_worst_days(with_interval(plan, step * times, tick_ms), world, now)
        except LifetimeError as why:  # what is sampled more rarely may fit
            days, refused = 0.0, why
        longest = max(longest, days)
        return days >= wanted

    beside, few = _beside(plan, world, step), 0
    for many in _alike(plan, world, step):
        if times := find_least_multiple(few + 1, many, beside, enough):
            found = with_interval(plan, step * times, tick_ms)
            return replace(plan, root=found.root, options=replace(found.options, lifetime=goal))
        few = many
    if refused and not longest:
        raise refused
    raise LifetimeError(f"motes last {longest:,.1f} days at most, and are to last {wanted:,.1f}")


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
    better, _ = rewrite(with_interval(plan, step, tick_ms))
    sampled = max(node.interval for node in walk(better.root) if isinstance(node, StreamAcquire))
    most = max(1, MAX_ROUND_MS // (sampled * tick_ms))
    within = plan.options.deliver_within
    if within is None:
        return [most]
    ends = {(within - 1) // (step * epochs) for epochs in range(1, MAX_EPOCHS)}
    return [*sorted(end for end in ends if 0 < end < most), most]


def with_interval(plan: Plan, every: int, tick_ms: int) -> Plan:
    """The same query with ACQUIRE EVERY in the place of LIFETIME."""
    statement = plan.statement
    clauses = replace(statement.clauses, acquire_every=Duration(every * tick_ms, "MS"), lifetime=None)
    [found] = bind_text(print_statement(replace(statement, clauses=clauses)), plan.catalog)
    return found


def without_lifetime(plan: Plan, world: World) -> Plan:
    """What is left to answer of a query for which that is decided: where there is a deployment."""
    return plan if world.deployment is None else replace(plan, options=replace(plan.options, lifetime=None))


def predict_worst_days(plan: Plan, world: World, now: int) -> float:
    """How long the first battery lasts if a query comes to what runs already; CannotLast where that cannot be run at all."""
    try:
        found = make_forecast(add_query(plan, max(world.queries, default=0) + 1, world, now)[0])
    except INFEASIBLE as why:
        raise LifetimeError(str(why)) from why
    return inf if found is None else lifetime_days(found.predicted())


def lifetime_days(prediction: EnergyPrediction) -> float:
    return min(prediction.lifetimes.values(), default=inf) / 86_400


def check_lifetimes(world: World) -> None:
    """CannotLast, with its name, if a live query has asked for motes that last longer than they will now."""
    for why in find_violated_lifetimes(world).values():
        raise LifetimeError(why)


def recheck_lifetimes(world: World) -> World:
    """The world after it has changed by itself: each query knows whether motes still last as long as it asks."""
    broken = find_violated_lifetimes(world)
    for number, query in world.live.items():
        if query.lifetime_violation != broken.get(number):
            world = world.with_query(replace(query, lifetime_violation=broken.get(number)))
    return world


def find_violated_lifetimes(world: World) -> dict[int, str]:
    """By the number of a live query that has asked for motes that last: why they do not."""
    asked = {n: q.plan.options.lifetime for n, q in world.live.items() if q.needs and q.plan.options.lifetime}
    if not asked or world.deployment is None:
        return {}
    try:
        found = make_forecast(world).predicted()
    except INFEASIBLE as why:
        return {n: f"query {n} asks for motes that last, and no agenda lets them sleep: {why}" for n in asked}
    days = lifetime_days(found)
    wanted = {n: goal * world.catalog.tick_ms / 86_400_000 for n, goal in asked.items()}
    return {
        n: f"query {n} asks for motes that last {goal:,.1f} days; mote {found.worst} would last {days:,.1f}"
        for n, goal in wanted.items()
        if days < goal
    }
