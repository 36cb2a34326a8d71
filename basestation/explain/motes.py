"""Explains the motes of a deployment: what runs where and when, its predicted energy, and its memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from acquisition.extent import Catalog
from basestation.algebra.node import PlanNode, walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.explain.text_layout import format_table, wrap_prose
from basestation.planner.plan import Plan
from innet.deployment import Deployment
from innet.operators import outline
from innet.placement.statistics import Statistics

if TYPE_CHECKING:
    from basestation.controller.network_plan import NetworkPlan
    from innet.operators import MoteOperator
    from innet.placement.agenda import SiteAgenda
    from innet.program.footprint import Footprint

Json: TypeAlias = dict[str, Any]
NOT_SAMPLED = "no mote samples for it: its conditions hold at no site"


@dataclass(frozen=True, slots=True)
class MotePlan:
    """The plan of the motes for some queries (None: they do nothing), or the reason why they cannot run them."""

    plan: "NetworkPlan | None" = None
    refused: str | None = None


def plan_motes(plans: Sequence[Plan], deployment: Deployment, catalog: Catalog, statistics: Statistics) -> MotePlan:
    """Plan the queries on the motes of a deployment that run nothing else."""
    from basestation.controller.network_plan import INFEASIBLE  # loaded only with a deployment
    from basestation.controller.what_if import plan_what_if

    try:
        return MotePlan(plan_what_if(plans, deployment, catalog, statistics))
    except INFEASIBLE as error:
        return MotePlan(refused=str(error))


def explain_motes(plans: Sequence[Plan], found: MotePlan, deployment: Deployment) -> Json | None:
    """A plan of the motes as JSON; None if the queries read no sensed extent."""
    if found.refused is not None:
        return {"deployment": deployment.name, "refused": found.refused}
    if found.plan is not None:
        return describe_forecast(found.plan, deployment)
    return {"deployment": deployment.name, "idle": NOT_SAMPLED} if any(_sensed(plan.root) for plan in plans) else None


def _sensed(root: PlanNode) -> bool:
    return any(isinstance(node, StreamAcquire) for node in walk(root))


def fit_sampling(plan: Plan, deployment: Deployment, catalog: Catalog, statistics: Statistics) -> Plan:
    """A query with the sampling interval that its LIFETIME needs; unchanged if no interval suffices."""
    from basestation.controller.lifetime import LifetimeError, fit_lifetime
    from basestation.controller.network_plan import PlanCache
    from basestation.controller.what_if import initial_world

    try:
        return fit_lifetime(plan, initial_world(deployment, catalog, statistics), PlanCache(0))
    except LifetimeError:
        return plan


def describe_forecast(placed: "NetworkPlan", deployment: Deployment) -> Json:
    """A forecast as JSON."""
    tree, prediction = placed.placement.tree, placed.prediction
    hours = prediction.epoch_ms / 3_600_000
    return {
        "deployment": deployment.name,
        "unreached": list(placed.placement.unreached),
        "operators": [
            {"operator": _operator(p.operator), "sites": list(p.sites), "merging": list(p.merging)}
            for p in placed.placement.placed
        ],
        "folds": [
            {"operator": w.fold.label(), "runs": w.runs, "reason": w.reason} for w in placed.decisions
        ],
        "not_folded": list(placed.refusals),
        "asks": placed.filters_on_motes,
        "statistics": str(placed.problem.statistics),
        "round_ms": placed.agenda.period_ms,
        "slots_each": placed.agenda.rounds.every,
        "turns_each": placed.agenda.rounds.poll_every,
        "delivered_ms": placed.agenda.latest_ms,
        "levels": [
            {"level": n, "messages": level.attempts / hours, "bytes": level.bytes / hours}
            for n, level in prediction.levels.items()
        ],
        "energy": [
            {
                "mote": mote, "level": tree.depth(mote), "parent": tree.parent[mote], "joules": use.total / hours,
                "lifetime_days": _days(prediction.lifetimes[mote]),
            }
            for mote, use in sorted(prediction.motes.items())
        ],
        "worst": prediction.worst,
        "agenda": [_agenda(placed.agenda.sites[mote]) for mote in sorted(tree.parent)],
        "memory": [_memory(mote, kept, placed) for mote, kept in placed.footprints.items()],
    }  # fmt: skip


def _agenda(own: "SiteAgenda") -> Json:
    """The slots of a mote in each round; between them it sleeps."""
    slots = [
        {"does": slot.activity.value, "begin_ms": slot.start_ms, "ms": slot.length_ms, "peer": slot.peer}
        for slot in own.slots
    ]
    return {"mote": own.site, "awake_ms": own.awake_ms, "slots": slots}


def _memory(mote: int, kept: "Footprint", placed: "NetworkPlan") -> Json:
    """The memory of one mote and its hardware, in bytes."""
    kind = placed.problem.network.hardware[mote]
    return {
        "mote": mote, "hardware": kind.name, "programs": kept.programs, "of_programs": kind.processor.program_bytes,
        "tables": kept.tables, "of_tables": kind.processor.ram_bytes, "queue": kept.queue,
        "fits": kept.fits(kind.processor),
    }  # fmt: skip


def _operator(operator: "MoteOperator") -> str:
    return "\n".join("  " * depth + text for depth, text in outline(operator))


def _days(seconds: float) -> float | None:
    """Days; None for a mote without a battery."""
    return None if seconds == inf else seconds / 86_400


# --- as text ---------------------------------------------------------------------------------------------------------

ASSUMPTIONS = "figures assume perfect clocks, known link qualities and no control traffic"
"""The conditions of predicted messages, energies and lifetimes, printed beside them."""


def mote_lines(motes: Json) -> list[str]:
    """The place and time of each operator on the motes, and the predicted energy per hour."""
    if "refused" in motes:
        return wrap_prose(f"these motes cannot run it: {motes['refused']}")
    if "idle" in motes:
        return [motes["idle"]]
    lines = running_lines(motes)
    lines.append("level  messages/h     bytes/h")
    lines += [f"{each['level']:>5}{each['messages']:>12,.1f}{each['bytes']:>12,.0f}" for each in motes["levels"]]
    sends = {own["mote"]: next(s for s in own["slots"] if s["does"] == "send") for own in motes["agenda"]}
    awake = {own["mote"]: own["awake_ms"] for own in motes["agenda"]}
    rows: list[tuple[str, ...]] = [("mote", "parent", "level", "sends, ms", "awake, ms", "J/h", "lifetime in days")]
    for each in motes["energy"]:
        days = "on the mains" if each["lifetime_days"] is None else f"{each['lifetime_days']:,.1f}"
        slot = sends[each["mote"]]
        when = f"{slot['begin_ms']:,} .. {slot['begin_ms'] + slot['ms']:,}"
        slots = (when, f"{awake[each['mote']]:,}", f"{each['joules']:.4g}", days)
        rows.append((*(str(each[what]) for what in ("mote", "parent", "level")), *slots))
    return [*lines, *format_table(rows), *worst_lines(motes), *memory_lines(motes["memory"])]


def worst_lines(motes: Json) -> list[str]:
    """The mote whose battery is empty first."""
    if motes["worst"] is None:
        return []
    days = next(each["lifetime_days"] for each in motes["energy"] if each["mote"] == motes["worst"])
    return [f"the battery of mote {motes['worst']} is empty first, after {days:,.1f} days"]


def running_lines(motes: Json) -> list[str]:
    """The sites of each operator, and the length of a round."""
    lines = []
    for o in motes["operators"]:
        passing = f", merged at {numbers(o['merging'])} on the route" if o["merging"] else ""
        lines += [*o["operator"].splitlines(), f"  at {numbers(o['sites']) or 'no site'}{passing}"]
    for fold in motes["folds"]:
        lines += [fold["operator"], *wrap_prose(fold["reason"], "  ")]
    for why in motes["not_folded"]:
        lines += wrap_prose(f"not folded on motes: {why}")
    if not motes["asks"]:
        lines.append("no mote evaluates conditions: some mote has no room for those of all queries")
    if motes["unreached"]:
        lines.append(f"no route from {numbers(motes['unreached'])} to a gateway")
    lines += wrap_prose(f"selectivities and numbers of groups are {motes['statistics']}")
    lines += wrap_prose(ASSUMPTIONS)
    slots = f", slots in one of {motes['slots_each']}" if motes["slots_each"] > 1 else ""
    lines.append(
        f"each {motes['round_ms']:,} ms{slots}; the last frame arrives {motes['delivered_ms']:,} ms after its begin"
    )
    return lines


def memory_lines(memory: Iterable[Json]) -> list[str]:
    """The largest memory of each kind of hardware, part by part; then the motes that have too little."""
    kinds: dict[str, list[Json]] = {}
    for each in memory:
        kinds.setdefault(each["hardware"], []).append(each)
    rows = [("hardware", "motes", "bytes of programs", "of tables", "waiting in queues")]
    for name, motes in sorted(kinds.items()):
        most = {part: max(each[part] for each in motes) for part in ("programs", "tables", "queue")}
        room = motes[0]
        rows.append((
            name, f"{len(motes):,}", f"{most['programs']:,} of {room['of_programs']:,}",
            f"{most['tables']:,} of {room['of_tables']:,}", f"{most['queue']:,}",
        ))  # fmt: skip
    lines = format_table(rows, left=1)
    if short := [each["mote"] for each in memory if not each["fits"]]:
        lines.append(f"too little memory at {numbers(short)}: these motes cannot run it")
    return lines


def numbers(sites: Iterable[int]) -> str:
    """Numbers in ascending order, with runs of consecutive ones as ranges."""
    runs: list[list[int]] = []
    for site in sorted(sites):
        if runs and site == runs[-1][1] + 1:
            runs[-1][1] = site
        else:
            runs.append([site, site])
    return ", ".join(str(a) if a == b else f"{a} .. {b}" for a, b in runs)
