"""Lifetime: the sampling interval with which motes last as long as a query asks (LIFETIME, semantics 11).

The interval is chosen once, when the query is accepted, from the prediction for all queries together. A later query that would
break the promise is rejected. If the network itself changes and breaks it, the station records an operational event.
"""

from dataclasses import replace
from math import gcd, inf, lcm

from basestation.algebra.node import walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.window import TimeWindow
from basestation.controller.aggregate_placement import add_query
from basestation.controller.network_plan import INFEASIBLE, PlanCache
from basestation.controller.world import World
from basestation.language.syntax import Duration
from basestation.planner.binder import rebind
from basestation.planner.multiple_search import find_least_multiple
from basestation.planner.plan import Plan
from basestation.planner.rewriter import rewrite
from innet.costs.energy_model import EnergyPrediction
from innet.errors import PlacementError
from innet.placement.agenda import MAX_ROUND_MS
from innet.placement.agenda_scheduler import MAX_EPOCHS

DAY_MS = 86_400_000


class LifetimeError(PlacementError):
    """Motes do not last as long as a query asks. The text has the figures."""


def fit_lifetime(plan: Plan, world: World, plans: PlanCache) -> Plan:
    """Find the shortest multiple of a query's interval with which motes last as long as it asks.

    Return the plan with that interval; unchanged if it has no LIFETIME or there is no deployment. LifetimeError if no interval
    is long enough, or if each would break the LIFETIME of a running query.
    """
    goal = plan.options.lifetime
    if goal is None or world.deployment is None:
        return plan
    if not world.duty_cycled:
        raise LifetimeError("LIFETIME needs duty-cycled motes; this station runs without a schedule")
    tick_ms = world.catalog.tick_ms
    step = plan.options.acquire_every or lcm(
        *(node.interval for node in walk(plan.root) if isinstance(node, StreamAcquire))
    )
    goal_days, longest = goal * tick_ms / DAY_MS, 0.0
    rejected: LifetimeError | None = None

    def is_enough(times: int) -> bool:
        nonlocal longest, rejected
        try:
            days = predict_worst_days(with_interval(plan, step * times, tick_ms), world, plans)
        except LifetimeError as why:  # a longer interval may fit
            days, rejected = 0.0, why
        longest = max(longest, days)
        return days >= goal_days

    common, tried = _common_multiple(plan, world, step), 0
    for last in _last_multiples(plan, world, step):
        if times := find_least_multiple(tried + 1, last, common, is_enough):
            found = with_interval(plan, step * times, tick_ms)
            return replace(plan, root=found.root, options=replace(found.options, lifetime=goal))
        tried = last
    if rejected and not longest:
        raise rejected
    raise LifetimeError(f"motes last {longest:,.1f} days at most, and are to last {goal_days:,.1f}")


def _common_multiple(plan: Plan, world: World, step: int) -> int:
    """A number that has, with any multiple of `step`, all divisors shared with other intervals and with window slides.

    Motes wake less often the more divisors their intervals share.
    """
    roots = [plan.root, *(query.plan.root for query in world.live.values())]
    slides = [n.slide for root in roots for n in walk(root) if isinstance(n, TimeWindow | SliceAggregation)]
    intervals = [need.every for query in world.live.values() for need in query.needs]
    return lcm(*(ticks // gcd(ticks, step) for ticks in (*slides, *intervals)))


def _last_multiples(plan: Plan, world: World, step: int) -> list[int]:
    """The multiples of `step` that split the search: up to each, the same number of epochs shares a round.

    The last one is the longest interval that fits into a round. If windows hold only some of the ticks, those are sampled.
    """
    tick_ms = world.catalog.tick_ms
    rewritten, _ = rewrite(with_interval(plan, step, tick_ms))
    sampled = max(node.interval for node in walk(rewritten.root) if isinstance(node, StreamAcquire))
    most = max(1, MAX_ROUND_MS // (sampled * tick_ms))
    bound = plan.options.deliver_within
    if bound is None:
        return [most]
    ends = {(bound - 1) // (step * epochs) for epochs in range(1, MAX_EPOCHS)}
    return [*sorted(end for end in ends if 0 < end < most), most]


def with_interval(plan: Plan, every: int, tick_ms: int) -> Plan:
    """The same query with ACQUIRE EVERY, in ticks, in place of LIFETIME."""
    return rebind(plan, acquire_every=Duration(every * tick_ms, "MS"), lifetime=None)


def without_lifetime(plan: Plan, world: World) -> Plan:
    """The plan that the engine runs: with a deployment, LIFETIME is settled before."""
    return plan if world.deployment is None else replace(plan, options=replace(plan.options, lifetime=None))


def predict_worst_days(plan: Plan, world: World, plans: PlanCache) -> float:
    """The days until the first battery is empty if a query is added. LifetimeError if motes cannot run it at all."""
    number = world.next_number()
    try:
        network = plans.plan(add_query(plan, world, plans, number=number).world)
        network.check()
    except INFEASIBLE as why:
        raise LifetimeError(str(why)) from why
    return lifetime_days(network.prediction) if network.queries else inf


def lifetime_days(prediction: EnergyPrediction) -> float:
    """The days until the first battery is empty."""
    return min(prediction.lifetimes.values(), default=inf) / 86_400


def check_lifetimes(world: World, plans: PlanCache) -> None:
    """Raise LifetimeError, with the query, if motes will not last as long as some live query asks."""
    for why in find_violated_lifetimes(world, plans).values():
        raise LifetimeError(why)


def recheck_lifetimes(world: World, plans: PlanCache) -> World:
    """The world after the network changed, with the violations of each query's LIFETIME."""
    violations = find_violated_lifetimes(world, plans)
    for number, query in world.live.items():
        if query.lifetime_violation != violations.get(number):
            world = world.with_query(replace(query, lifetime_violation=violations.get(number)))
    return world


def find_violated_lifetimes(world: World, plans: PlanCache) -> dict[int, str]:
    """By the number of a live query with LIFETIME, why motes will not last that long."""
    lifetimes = {n: q.plan.options.lifetime for n, q in world.live.items() if q.needs and q.plan.options.lifetime}
    if not lifetimes or world.deployment is None:
        return {}
    network = plans.plan(world)
    try:
        network.check()
    except INFEASIBLE as why:
        return {n: f"query {n} asks for motes that last, and no agenda lets them sleep: {why}" for n in lifetimes}
    days, worst = lifetime_days(network.prediction), network.prediction.worst
    goals = {n: goal * world.catalog.tick_ms / DAY_MS for n, goal in lifetimes.items()}
    return {
        n: f"query {n} asks for motes that last {goal:,.1f} days; mote {worst} would last {days:,.1f}"
        for n, goal in goals.items()
        if days < goal
    }
