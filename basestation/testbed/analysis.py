"""Analysis: what was predicted of queries on the motes of a deployment, beside what simulated motes did that ran them.

Predictions are off for two reasons, which are told apart: the planner does not know how often conditions hold and how many
groups there are, and its model is only a model. So there are two of them: `predicted` as it was planned, and `informed`,
of the same plan by who has counted in the readings that were then measured.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import ceil, inf
from typing import TYPE_CHECKING

from acquisition.extent import Catalog
from basestation.controller.network_plan import INFEASIBLE, NetworkPlan
from basestation.controller.what_if import plan_what_if
from basestation.explain.text_layout import format_paragraph, format_table, wrap_prose
from basestation.planner.plan import Plan
from basestation.testbed.testbed import climate_of, deployment_of, measure
from innet.costs.energy_model import EnergyPrediction
from innet.placement.placement import extents_of
from innet.placement.statistics import GUESS, CountedStatistics, Statistics

if TYPE_CHECKING:
    from basestation.testbed.testbed import Scenario

HOUR_MS, LEAST_ROUNDS = 3_600_000, 20
"""How long motes are simulated where nobody says it: an hour, or so many rounds if those take longer."""


def analyse(plans: Sequence[Plan], around: "Scenario", catalog: Catalog, seed: int | None, ms: int | None,
             told: Callable[[float], None], statistics: Statistics = GUESS) -> dict | None:  # fmt: skip
    """As one dictionary that JSON can hold; None where motes have nothing to do. `told` hears which share is over."""
    deployment = deployment_of(around)
    try:
        placed = plan_what_if(plans, deployment, catalog, statistics)
    except INFEASIBLE as why:
        return {"type": "analysis", "deployment": deployment.name, "refused": str(why)}
    if placed is None:
        return None
    seed = around.seed if seed is None else seed
    round_ms = placed.agenda.period_ms
    rounds = max(LEAST_ROUNDS, HOUR_MS // round_ms) if ms is None else ceil(ms / round_ms)
    found = measure(placed, around, seed, rounds, lambda done: told(done / rounds))
    climate = climate_of(around)
    predictions = {
        "predicted": placed.predict(burst_loss=climate),
        "informed": placed.predict(CountedStatistics.of(found.sampled), climate),
    }
    hours = rounds * round_ms / HOUR_MS
    return {
        "type": "analysis", "deployment": deployment.name, "seed": seed, "rounds": rounds, "hours": hours,
        "statistics": str(statistics),
        "world": around.name if around.source.text else {
            name: {"mean": quantity.mean, "noise": quantity.noise} for name, quantity in around.world.items()
        },
        "climate": {"delivery": around.delivery, "bad": climate.bad, "left": climate.left},
        "levels": _levels(placed, predictions, found.tally, hours),
        "motes": _motes(placed, predictions, found.joules, hours),
        "worst": _worst(placed, predictions, found.joules, hours),
        "delivered_ms": {"predicted": placed.agenda.latest_ms, "measured": found.latest_ms},
        "covered": _covered(placed, predictions["informed"].delivery_ratios, found.covered),
    }  # fmt: skip


def _hourly(prediction: EnergyPrediction) -> float:
    return prediction.epoch_ms / HOUR_MS


def _levels(placed: NetworkPlan, predictions: Mapping[str, EnergyPrediction], tally, hours: float) -> list[dict]:
    """Messages and bytes in an hour, by the distance from a gateway."""
    messages, size = Counter[int](), Counter[int]()
    for mote, attempts in tally.attempts.items():
        messages[placed.placement.tree.depth(mote)] += attempts
        size[placed.placement.tree.depth(mote)] += tally.bytes[mote]
    found = []
    for level in sorted({*messages, *predictions["predicted"].levels}):
        told = {"level": level, "messages": {}, "bytes": {}}
        for name, each in predictions.items():
            sent = each.levels[level]
            told["messages"][name] = sent.attempts / _hourly(each)
            told["bytes"][name] = sent.bytes / _hourly(each)
        told["messages"]["measured"], told["bytes"]["measured"] = messages[level] / hours, size[level] / hours
        found.append(told)
    return found


def _motes(
    placed: NetworkPlan, predictions: Mapping[str, EnergyPrediction], joules: Mapping[int, float], hours: float
) -> list:
    """Joules in an hour, mote by mote."""
    return [
        {
            "mote": mote, "level": placed.placement.tree.depth(mote),
            "joules": {name: each.motes[mote].total / _hourly(each) for name, each in predictions.items()}
            | {"measured": used / hours},
        }
        for mote, used in sorted(joules.items())
    ]  # fmt: skip


def _worst(
    placed: NetworkPlan, predictions: Mapping[str, EnergyPrediction], joules: Mapping[int, float], hours: float
) -> dict | None:
    """Whose battery is empty first, and after how many days, by each account; None where no mote has a battery."""
    lasting = {name: each.lifetimes for name, each in predictions.items()}
    batteries = placed.problem.network.batteries
    lasting["measured"] = {m: batteries.get(m, inf) * hours * 3_600 / used for m, used in joules.items()}
    if placed.predict().worst is None:
        return None
    first = {name: min(seconds, key=lambda mote: (seconds[mote], mote)) for name, seconds in lasting.items()}
    return {name: {"mote": mote, "days": lasting[name][mote] / 86_400} for name, mote in first.items()}


def _covered(placed: NetworkPlan, through: Mapping[int, float], measured: Mapping[str, float]) -> list[dict]:
    """The share of each extent's readings that is heard of: by the links on the way, and as it was."""
    found = []
    for extent, share in sorted(measured.items()):
        sites = {
            s for p in placed.placement.placed if extent in extents_of(p.operator) for s in p.sites
        } & through.keys()
        found.append({
            "extent": extent, "predicted": sum(through[site] for site in sites) / len(sites), "measured": share,
        })  # fmt: skip
    return found


def relative_error(told: Mapping[str, float], name: str) -> float:
    """How far a prediction is off, as a share of what was measured."""
    return told[name] / told["measured"] - 1 if told["measured"] else 0.0


# --- as people read it -----------------------------------------------------------------------------------------------


def format_analysis(told: Mapping) -> str:
    head = f"simulated on the motes of {told['deployment']}"
    if "refused" in told:
        return format_paragraph(head, wrap_prose(f"cannot be run there: {told['refused']}"))
    hours = "1 hour" if told["hours"] == 1 else f"{told['hours']:.3g} hours"
    lines = [f"seed {told['seed']}, {told['rounds']:,} rounds, {hours}"]
    if isinstance(told["world"], str):
        lines.append(f"the world is that of {told['world']}")
        lines += _climate_lines(**told["climate"])
    else:
        made = ", ".join(f"{name} {each['mean']:g} ± {each['noise']:.4g}" for name, each in told["world"].items())
        lines += wrap_prose(f"nobody said what the world is like, so it is made up: {made}")
    lines += wrap_prose(
        f"of three figures the first is predicted: how often conditions hold, and how many groups there are, is "
        f"{told['statistics']}; informed: it is counted in what was measured"
    )
    lines += _level_lines(told["levels"]) + _mote_lines(told["motes"])
    if worst := told["worst"]:
        first = [f"of mote {worst[name]['mote']}, after {worst[name]['days']:,.1f} days" for name in _NAMES]
        lines += wrap_prose("the first battery to be empty is that {}; informed: {}; measured: {}".format(*first))
    late = told["delivered_ms"]
    lines.append(f"the last of a round arrives after {late['predicted']:,} ms, measured {late['measured']:,.1f} ms")
    for each in told["covered"]:
        share = f"{each['predicted']:.2%} are heard of, measured {each['measured']:.2%}"
        lines.append(f"of the readings of {each['extent']}, {share}")
    return format_paragraph(head, lines)


def _climate_lines(delivery: float, bad: float, left: float) -> list[str]:
    """Of links that are not what the deployment says."""
    lines = [f"its links let through {delivery:.4g} of what the deployment says"] if delivery < 1 else []
    if bad:
        lines.append(f"they have bad times, {bad:.4g} of all rounds, in which {left:.4g} of that comes through")
    return lines


_NAMES = ("predicted", "informed", "measured")


def _level_lines(levels: Sequence[Mapping]) -> list[str]:
    rows = [("level", "messages/h", "informed", "measured", "bytes/h", "informed", "measured")]
    for each in levels:
        messages = (f"{each['messages'][name]:,.1f}" for name in _NAMES)
        rows.append((str(each["level"]), *messages, *(f"{each['bytes'][name]:,.0f}" for name in _NAMES)))
    return format_table(rows)


def _mote_lines(motes: Sequence[Mapping]) -> list[str]:
    rows = [("mote", "level", "J/h", "informed", "measured", "off", "informed off")]
    for each in motes:
        joules = each["joules"]
        shares = (f"{relative_error(joules, name):+.1%}" for name in ("predicted", "informed"))
        rows.append((str(each["mote"]), str(each["level"]), *(f"{joules[name]:.4g}" for name in _NAMES), *shares))
    worst = {
        name: max((abs(relative_error(each["joules"], name)) for each in motes), default=0.0) for name in _NAMES[:2]
    }
    return [*format_table(rows), f"at most {worst['predicted']:.1%} off, informed {worst['informed']:.1%}"]
