"""Motes: what runs where and when on the motes of a deployment, what it is predicted to use, and the memory it takes."""

from math import inf

from basestation.algebra.node import walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.explain.text_layout import format_table, wrap_prose
from innet.operators import outline

NOT_SAMPLED = "nobody samples for it: its conditions hold at no site"


def explain_motes(plans, deployment, catalog, statistics):
    """Of queries that are alone there; None where they read nothing that motes sense."""
    from basestation.controller.network_plan import INFEASIBLE  # where there is no deployment, nothing of it is loaded
    from basestation.controller.what_if import plan_what_if

    try:
        placed = plan_what_if(plans, deployment, catalog, statistics)
    except INFEASIBLE as error:
        return {"deployment": deployment.name, "refused": str(error)}
    if placed is not None:
        return describe_forecast(placed, deployment)
    return {"deployment": deployment.name, "idle": NOT_SAMPLED} if any(_sensed(plan.root) for plan in plans) else None


def _sensed(root):
    return any(isinstance(node, StreamAcquire) for node in walk(root))


def fit_sampling(plan, deployment, catalog, statistics):
    """A query that asks for motes that last, with how often it is sampled then; as it is, where they cannot."""
    from basestation.controller.lifetime import LifetimeError, fit_lifetime
    from basestation.controller.network_plan import PlanCache
    from basestation.controller.what_if import initial_world

    try:
        return fit_lifetime(plan, initial_world(deployment, catalog, statistics), PlanCache(0))
    except LifetimeError:
        return plan


def describe_forecast(placed, deployment):
    """What there is to say of an Outlook."""
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
        "turns_each": placed.agenda.rounds.asks,
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


def _agenda(own):
    """When a mote does what in each round; in between it sleeps."""
    slots = [
        {"does": slot.activity.value, "begin_ms": slot.start_ms, "ms": slot.length_ms, "peer": slot.peer}
        for slot in own.slots
    ]
    return {"mote": own.site, "awake_ms": own.awake_ms, "slots": slots}


def _memory(mote, kept, placed):
    """Bytes of one mote, and what its hardware has for them."""
    kind = placed.problem.network.hardware[mote]
    return {
        "mote": mote, "hardware": kind.name, "programs": kept.programs, "of_programs": kind.processor.program_bytes,
        "tables": kept.tables, "of_tables": kind.processor.ram_bytes, "queue": kept.queue,
        "fits": kept.fits(kind.processor),
    }  # fmt: skip


def _operator(operator):
    return "\n".join("  " * depth + text for depth, text in outline(operator))


def _days(seconds):
    """None for a mote that is not on a battery."""
    return None if seconds == inf else seconds / 86_400


# --- as people read it -----------------------------------------------------------------------------------------------


def mote_lines(motes):
    """What runs where and when on the motes of a deployment, and what it is predicted to use in an hour."""
    if "refused" in motes:
        return wrap_prose(f"cannot be run there: {motes['refused']}")
    if "idle" in motes:
        return [motes["idle"]]
    lines = running_lines(motes)
    lines.append("level  messages/h     bytes/h")
    lines += [f"{each['level']:>5}{each['messages']:>12,.1f}{each['bytes']:>12,.0f}" for each in motes["levels"]]
    sends = {own["mote"]: next(s for s in own["slots"] if s["does"] == "send") for own in motes["agenda"]}
    awake = {own["mote"]: own["awake_ms"] for own in motes["agenda"]}
    rows = [("mote", "parent", "level", "sends, ms", "awake, ms", "J/h", "lifetime in days")]
    for each in motes["energy"]:
        days = "on the mains" if each["lifetime_days"] is None else f"{each['lifetime_days']:,.1f}"
        slot = sends[each["mote"]]
        when = f"{slot['begin_ms']:,} .. {slot['begin_ms'] + slot['ms']:,}"
        told = (when, f"{awake[each['mote']]:,}", f"{each['joules']:.4g}", days)
        rows.append((*(str(each[what]) for what in ("mote", "parent", "level")), *told))
    return [*lines, *format_table(rows), *worst_lines(motes), *memory_lines(motes["memory"])]


def worst_lines(motes):
    """Whose battery is empty first."""
    if motes["worst"] is None:
        return []
    days = next(each["lifetime_days"] for each in motes["energy"] if each["mote"] == motes["worst"])
    return [f"the first battery to be empty is that of mote {motes['worst']}, after {days:,.1f} days"]


def running_lines(motes):
    """What runs where, and how long its rounds are."""
    lines = []
    for o in motes["operators"]:
        passing = f", merged at {numbers(o['merging'])} on the way" if o["merging"] else ""
        lines += [*o["operator"].splitlines(), f"  at {numbers(o['sites']) or 'no site'}{passing}"]
    for fold in motes["folds"]:
        lines += [fold["operator"], *wrap_prose(fold["reason"], "  ")]
    for why in motes["not_folded"]:
        lines += wrap_prose(f"not folded on motes: {why}")
    if not motes["asks"]:
        lines.append("no mote asks any condition: some mote has no room for those of all")
    if motes["unreached"]:
        lines.append(f"no way leads from {numbers(motes['unreached'])} to a gateway")
    lines += wrap_prose(f"how often conditions hold, and how many groups there are: {motes['statistics']}")
    slots = f", slots in one of {motes['slots_each']}" if motes["slots_each"] > 1 else ""
    lines.append(
        f"each {motes['round_ms']:,} ms{slots}; the last of it arrives {motes['delivered_ms']:,} ms after its beginning"
    )
    return lines


def memory_lines(memory):
    """Of each kind of hardware the mote that needs most, part by part; then those that have too little."""
    kinds = {}
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
        lines.append(f"more than there is at {numbers(short)}: as it is, this cannot be run there")
    return lines


def numbers(sites):
    """Numbers in ascending order, what follows one another as a range."""
    runs = []
    for site in sorted(sites):
        if runs and site == runs[-1][1] + 1:
            runs[-1][1] = site
        else:
            runs.append([site, site])
    return ", ".join(str(a) if a == b else f"{a} .. {b}" for a, b in runs)
