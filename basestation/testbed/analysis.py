"""EXPLAIN ANALYZE for motes: the predictions for queries on a deployment beside the measurement of simulated motes.

A prediction has two kinds of error, which are kept apart: the planner guesses selectivities and numbers of groups, and the cost
model is a model. So there are two predictions of the same plan: `predicted` with the statistics of the planner, and `informed`
with statistics counted in the measured readings.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import ceil, inf
from typing import Any, TypeAlias

from acquisition.extent import Catalog
from basestation.controller.network_plan import INFEASIBLE, NetworkPlan
from basestation.controller.what_if import plan_what_if
from basestation.explain.motes import ASSUMPTIONS
from basestation.explain.text_layout import format_paragraph, format_table, wrap_prose
from basestation.planner.plan import Plan
from basestation.testbed.scenarios import burst_loss_of, deployment_of, measure
from innet.costs.energy_model import EnergyPrediction
from innet.placement.placement import extents_of
from innet.placement.statistics import GUESS, CountedStatistics, Statistics
from simulator.scenario import Scenario
from simulator.tally import Tally

HOUR_MS, LEAST_ROUNDS = 3_600_000, 20
"""The default time that is simulated: an hour, or so many rounds if they take longer."""

Json: TypeAlias = dict[str, Any]
"""An object that JSON can hold."""
Predictions: TypeAlias = Mapping[str, EnergyPrediction]
"""`predicted` and `informed`."""


def analyse(plans: Sequence[Plan], around: Scenario, catalog: Catalog, seed: int | None, ms: int | None,
            on_progress: Callable[[float], None], statistics: Statistics = GUESS) -> Json | None:  # fmt: skip
    """Predict and measure `plans` together on the motes of a scenario; None if the motes have nothing to do.

    `seed` and `ms` (simulated time) default to those of the scenario and to an hour. `on_progress` is called with the share
    that is over.
    """
    deployment = deployment_of(around)
    try:
        placed = plan_what_if(plans, deployment, catalog, statistics)
    except INFEASIBLE as error:
        return {"type": "analysis", "deployment": deployment.name, "refused": str(error)}
    if placed is None:
        return None
    seed = around.seed if seed is None else seed
    round_ms = placed.agenda.period_ms
    rounds = max(LEAST_ROUNDS, HOUR_MS // round_ms) if ms is None else ceil(ms / round_ms)
    found = measure(placed, around, seed, rounds, lambda done: on_progress(done / rounds))
    bursts = burst_loss_of(around)
    predictions = {
        "predicted": placed.predict(burst_loss=bursts),
        "informed": placed.predict(CountedStatistics.of(found.sampled), bursts),
    }
    hours = rounds * round_ms / HOUR_MS
    return {
        "type": "analysis", "deployment": deployment.name, "seed": seed, "rounds": rounds, "hours": hours,
        "statistics": str(statistics),
        "world": around.name if around.source.text else {
            name: {"mean": quantity.mean, "noise": quantity.noise} for name, quantity in around.world.items()
        },
        "climate": {"delivery": around.delivery, "bad": bursts.bad, "left": bursts.left},
        "levels": _levels(placed, predictions, found.tally, hours),
        "motes": _motes(placed, predictions, found.joules, hours),
        "worst": _worst(placed, predictions, found.joules, hours),
        "delivered_ms": {"predicted": placed.agenda.latest_ms, "measured": found.latest_ms},
        "covered": _covered(placed, predictions["informed"].delivery_ratios, found.covered),
    }  # fmt: skip


def _hours(prediction: EnergyPrediction) -> float:
    """The hours that a prediction is for."""
    return prediction.epoch_ms / HOUR_MS


def _levels(placed: NetworkPlan, predictions: Predictions, tally: Tally, hours: float) -> list[Json]:
    """Messages and bytes per hour, by the number of hops to a gateway."""
    messages, size = Counter[int](), Counter[int]()
    for mote, attempts in tally.attempts.items():
        messages[placed.placement.tree.depth(mote)] += attempts
        size[placed.placement.tree.depth(mote)] += tally.bytes[mote]
    found: list[Json] = []
    for level in sorted({*messages, *predictions["predicted"].levels}):
        sent = {name: each.levels[level] for name, each in predictions.items()}
        attempts_per_hour = {name: sent[name].attempts / _hours(each) for name, each in predictions.items()}
        bytes_per_hour = {name: sent[name].bytes / _hours(each) for name, each in predictions.items()}
        found.append({
            "level": level,
            "messages": attempts_per_hour | {"measured": messages[level] / hours},
            "bytes": bytes_per_hour | {"measured": size[level] / hours},
        })  # fmt: skip
    return found


def _motes(placed: NetworkPlan, predictions: Predictions, joules: Mapping[int, float], hours: float) -> list[Json]:
    """Joules per hour, mote by mote."""
    return [
        {
            "mote": mote, "level": placed.placement.tree.depth(mote),
            "joules": {name: each.motes[mote].total / _hours(each) for name, each in predictions.items()}
            | {"measured": used / hours},
        }
        for mote, used in sorted(joules.items())
    ]  # fmt: skip


def _worst(placed: NetworkPlan, predictions: Predictions, joules: Mapping[int, float], hours: float) -> Json | None:
    """The mote whose battery is empty first, and after how many days, by each account; None if no mote has a battery."""
    lifetimes = {name: each.lifetimes for name, each in predictions.items()}
    batteries = placed.problem.network.batteries
    lifetimes["measured"] = {m: batteries.get(m, inf) * hours * 3_600 / used for m, used in joules.items()}
    if placed.predict().worst is None:
        return None
    first = {name: min(seconds, key=lambda mote: (seconds[mote], mote)) for name, seconds in lifetimes.items()}
    return {name: {"mote": mote, "days": lifetimes[name][mote] / 86_400} for name, mote in first.items()}


def _covered(placed: NetworkPlan, through: Mapping[int, float], measured: Mapping[str, float]) -> list[Json]:
    """The share of each extent's readings that is reported: by the loss of the links on the way, and as measured."""
    found: list[Json] = []
    for extent, share in sorted(measured.items()):
        sites = {
            s for p in placed.placement.placed if extent in extents_of(p.operator) for s in p.sites
        } & through.keys()
        found.append({
            "extent": extent, "predicted": sum(through[site] for site in sites) / len(sites), "measured": share,
        })  # fmt: skip
    return found


def relative_error(figures: Mapping[str, float], name: str) -> float:
    """The error of a prediction as a share of the measurement."""
    return figures[name] / figures["measured"] - 1 if figures["measured"] else 0.0


# --- as text ---------------------------------------------------------------------------------------------------------


def format_analysis(analysis: Mapping[str, Any]) -> str:
    """The paragraph for an analysis that `analyse` made."""
    head = f"simulated on the motes of {analysis['deployment']}"
    if "refused" in analysis:
        return format_paragraph(head, wrap_prose(f"cannot be run there: {analysis['refused']}"))
    hours = "1 hour" if analysis["hours"] == 1 else f"{analysis['hours']:.3g} hours"
    lines = [f"seed {analysis['seed']}, {analysis['rounds']:,} rounds, {hours}"]
    if isinstance(analysis["world"], str):
        lines.append(f"the world is that of {analysis['world']}")
        lines += _climate_lines(**analysis["climate"])
    else:
        world = analysis["world"].items()
        quantities = ", ".join(f"{name} {each['mean']:g} ± {each['noise']:.4g}" for name, each in world)
        lines += wrap_prose(f"without `--world` each sensor measures noise within its range: {quantities}")
    lines += wrap_prose(
        f"of three figures the first is predicted with selectivities and numbers of groups that are "
        f"{analysis['statistics']}; informed: with those counted in the measured readings"
    )
    lines += wrap_prose(f"the {ASSUMPTIONS}")
    lines += _level_lines(analysis["levels"]) + _mote_lines(analysis["motes"])
    if worst := analysis["worst"]:
        first = [f"of mote {worst[name]['mote']}, after {worst[name]['days']:,.1f} days" for name in _NAMES]
        lines += wrap_prose("the first battery to be empty is that {}; informed: {}; measured: {}".format(*first))
    late = analysis["delivered_ms"]
    lines.append(f"the last of a round arrives after {late['predicted']:,} ms, measured {late['measured']:,.1f} ms")
    for each in analysis["covered"]:
        share = f"{each['predicted']:.2%} are reported, measured {each['measured']:.2%}"
        lines.append(f"of the readings of {each['extent']}, {share}")
    return format_paragraph(head, lines)


def _climate_lines(delivery: float, bad: float, left: float) -> list[str]:
    """The radio of the scenario, if it differs from that of the deployment."""
    lines = [f"its links deliver {delivery:.4g} of the frames that the deployment states"] if delivery < 1 else []
    if bad:
        lines.append(f"its links are bad in {bad:.4g} of all rounds, and deliver {left:.4g} of these frames then")
    return lines


_NAMES = ("predicted", "informed", "measured")


def _level_lines(levels: Sequence[Mapping[str, Any]]) -> list[str]:
    rows: list[tuple[str, ...]] = [("level", "messages/h", "informed", "measured", "bytes/h", "informed", "measured")]
    for each in levels:
        messages = (f"{each['messages'][name]:,.1f}" for name in _NAMES)
        rows.append((str(each["level"]), *messages, *(f"{each['bytes'][name]:,.0f}" for name in _NAMES)))
    return format_table(rows)


def _mote_lines(motes: Sequence[Mapping[str, Any]]) -> list[str]:
    rows: list[tuple[str, ...]] = [("mote", "level", "J/h", "informed", "measured", "off", "informed off")]
    for each in motes:
        joules = each["joules"]
        errors = (f"{relative_error(joules, name):+.1%}" for name in ("predicted", "informed"))
        rows.append((str(each["mote"]), str(each["level"]), *(f"{joules[name]:.4g}" for name in _NAMES), *errors))
    worst = {
        name: max((abs(relative_error(each["joules"], name)) for each in motes), default=0.0) for name in _NAMES[:2]
    }
    return [*format_table(rows), f"at most {worst['predicted']:.1%} off, informed {worst['informed']:.1%}"]
