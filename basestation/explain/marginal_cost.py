"""The marginal cost of each query of a workload: what it costs alone, and what it adds to the others on the same motes.

Queries share schedules, programs, frames and tables, so a query may add much less than it costs alone, or nothing.
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
    """The sum over all motes in an hour; `days` until the first battery is empty."""

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
    """The costs of one query, or the reason why the motes cannot run it."""

    alone: HourlyCost | str
    added: HourlyCost | str


@dataclass(frozen=True, slots=True)
class WorkloadCost:
    """The forecast of all queries on the same motes, and the costs of each by its number."""

    placed: NetworkPlan | str
    each: Mapping[int, MarginalCost]


def predict_workload(plans: Mapping[int, Plan], deployment: Deployment, catalog: Catalog,
             statistics: Statistics = GUESS) -> WorkloadCost | None:  # fmt: skip
    """The costs of a workload; None if motes work for fewer than two of its queries."""

    def forecast(queries: Sequence[Plan]) -> NetworkPlan | str | None:
        try:
            return plan_what_if(queries, deployment, catalog, statistics)
        except INFEASIBLE as why:
            return str(why)

    alone = {number: forecast([plan]) for number, plan in plans.items()}
    plans = {number: plan for number, plan in plans.items() if alone[number] is not None}
    whole = forecast(list(plans.values()))
    if len(plans) < 2 or whole is None:
        return None
    others = {number: forecast([plan for n, plan in plans.items() if n != number]) for number in plans}
    each = {
        number: MarginalCost(_hourly(alone[number]), _difference(_hourly(whole), _hourly(others[number])))
        for number in plans
    }
    return WorkloadCost(whole, each)


def _hourly(placed: NetworkPlan | str | None) -> HourlyCost | str:
    if placed is None:
        raise ValueError("motes do nothing for these queries")
    return placed if isinstance(placed, str) else HourlyCost.of(placed.prediction)


def _difference(whole: HourlyCost | str, others: HourlyCost | str) -> HourlyCost | str:
    if isinstance(whole, str):
        return whole
    return others if isinstance(others, str) else whole - others
