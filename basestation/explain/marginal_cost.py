"""Marginal: what each of several queries costs by itself, and what it adds to the others on the same motes.

They share schedules, programs, frames and tables, so a query may add much less than it costs alone, or nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from acquisition.extent import Catalog
from basestation.controller.network_plan import INFEASIBLE, NetworkPlan
from basestation.controller.what_if import plan_what_if
from basestation.planner.plan import Plan
from innet.costs.energy_model import EnergyPrediction
from innet.deployment import Deployment
from innet.placement.statistics import GUESS, Statistics


@dataclass(frozen=True, slots=True)
class HourlyCost:
    """All motes together, in an hour, and the days until the first battery is empty."""

    messages: float
    bytes: float
    joules: float
    days: float

    @classmethod
    def of(cls, prediction: EnergyPrediction) -> "HourlyCost":
        hours, sent = prediction.epoch_ms / 3_600_000, prediction.total
        joules = sum(use.total for use in prediction.motes.values())
        days = min(prediction.lifetimes.values(), default=inf) / 86_400
        return cls(sent.attempts / hours, sent.bytes / hours, joules / hours, days)

    def __sub__(self, other: "HourlyCost") -> "HourlyCost":
        days = 0.0 if self.days == other.days else self.days - other.days
        return HourlyCost(self.messages - other.messages, self.bytes - other.bytes, self.joules - other.joules, days)


@dataclass(frozen=True, slots=True)
class MarginalCost:
    """Of one query; where some cannot be run, why."""

    alone: HourlyCost | str
    added: HourlyCost | str


@dataclass(frozen=True, slots=True)
class WorkloadCost:
    """All of them on the same motes, and each by the number that it was given."""

    placed: NetworkPlan | str
    each: Mapping[int, MarginalCost]


def predict_workload(plans: Mapping[int, Plan], deployment: Deployment, catalog: Catalog,
             statistics: Statistics = GUESS) -> WorkloadCost | None:  # fmt: skip
    """None where fewer than two of them have motes do anything: there is nothing to share."""

    def tried(queries: Sequence[Plan]) -> NetworkPlan | str | None:
        try:
            return plan_what_if(queries, deployment, catalog, statistics)
        except INFEASIBLE as why:
            return str(why)

    alone = {number: tried([plan]) for number, plan in plans.items()}
    plans = {number: plan for number, plan in plans.items() if alone[number] is not None}
    if len(plans) < 2:
        return None
    whole = tried(list(plans.values()))
    others = {number: tried([plan for n, plan in plans.items() if n != number]) for number in plans}
    each = {
        number: MarginalCost(_hourly(alone[number]), _difference(_hourly(whole), _hourly(others[number])))
        for number in plans
    }
    return WorkloadCost(whole, each)


def _hourly(placed: NetworkPlan | str) -> HourlyCost | str:
    return placed if isinstance(placed, str) else HourlyCost.of(placed.prediction)


def _difference(whole: HourlyCost | str, others: HourlyCost | str) -> HourlyCost | str:
    for told in (whole, others):
        if isinstance(told, str):
            return told
    return whole - others
