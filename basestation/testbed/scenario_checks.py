"""Checks a scenario before anything runs: its queries, its recordings and the routes of its motes, each with its place."""

from collections.abc import Iterator
from dataclasses import replace

from acquisition.errors import InputError
from basestation.controller.admission import bind_single_query, rejecting_errors
from basestation.controller.lifetime import fit_lifetime
from basestation.controller.network_plan import PlanCache
from basestation.controller.what_if import initial_world
from basestation.controller.world import World
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.testbed.scenarios import deployment_of
from gateway.diagnostics import Diagnostic, DiagnosticError
from gateway.source import Source, Span
from gateway.toml import ConfigError
from gateway.toml_strings import locate_characters
from simulator.scenario import Scenario, ScenarioQuery
from simulator.world_builder import make_field


def check_scenario(scenario: Scenario, always_on: bool) -> dict[str, DiagnosticError]:
    """The errors of each query that cannot run. A LIFETIME needs motes that sleep, and links as the deployment states them.

    Raises ConfigError, with every fault, if a recording cannot be read or no mote has a route to a gateway, and
    DiagnosticError for a schema that does not fit.
    """
    catalog = read_deployed_catalog(scenario.deployment)
    world = initial_world(deployment_of(scenario), catalog)
    if faults := [*_check_recordings(scenario), *_check_routes(scenario, world)]:
        raise ConfigError(faults)
    world = replace(world, duty_cycled=not always_on)
    found = ((query.name, _check_query(scenario, query, world)) for query in scenario.queries)
    return {name: error for name, error in found if error is not None}


def unreached_motes(scenario: Scenario) -> list[int]:
    """The motes without a route to a gateway over the links of the deployment and of the faults that change links."""
    world = initial_world(deployment_of(scenario), read_deployed_catalog(scenario.deployment))
    changed = {link[0] for fault in scenario.faults for link in fault.links}
    return sorted(scenario.deployment.motes.keys() - world.tree.parent.keys() - changed)


def _check_recordings(scenario: Scenario) -> Iterator[Diagnostic]:
    for name, quantity in scenario.world.items():
        if quantity.recording is not None:
            try:
                make_field(name, quantity, scenario, scenario.seed)
            except InputError as error:
                path = ("world", name, "file") if ("world", name, "file") in scenario.places else ("world", "file")
                yield _fault(scenario, "SN708", str(error), *path, help=error.help)


def _check_routes(scenario: Scenario, world: World) -> Iterator[Diagnostic]:
    if world.tree.parent or any(fault.links for fault in scenario.faults):
        return
    if scenario.delivery == 0:
        yield _fault(scenario, "SN530", "no mote reaches a gateway: links deliver nothing", "radio", "delivery",
                     help="expected a `delivery` above 0")  # fmt: skip
        return
    gateways = ", ".join(map(str, sorted(scenario.deployment.gateways)))
    why = "no mote reaches a gateway: no chain of links, in both directions, leads there"
    yield _fault(scenario, "SN530", why, "deployment", help=f"give the deployment links to gateway {gateways}")


def _fault(scenario: Scenario, code: str, message: str, *path: str, help: str | None = None) -> Diagnostic:
    """A fault at the value of a key of the scenario's file."""
    _, value = scenario.places.get(path, (Span(0, 1), Span(0, 1)))
    return Diagnostic(code, message, scenario.source, value, help=help)


def _check_query(scenario: Scenario, query: ScenarioQuery, world: World) -> DiagnosticError | None:
    try:
        plan = bind_single_query(query.text, world)
        with rejecting_errors(query.text, plan):
            fit_lifetime(plan, world, PlanCache(0))
    except DiagnosticError as error:
        return DiagnosticError(_place(scenario, query, each) for each in error.diagnostics)
    return None


def _place(scenario: Scenario, query: ScenarioQuery, found: Diagnostic) -> Diagnostic:
    """A diagnostic of a query's text at its place in the file of the query, or in that of the scenario."""
    if query.file is not None:
        return replace(found, source=Source(query.text, str(query.file)))
    if not (value := scenario.places.get(("queries", query.name, "text"))):
        return found
    at = locate_characters(scenario.source.text, value[1])
    start, end = (min(each, len(at) - 1) for each in (found.span.start, found.span.end))
    span = Span(at[start], at[end - 1] + 1 if end > start else at[start] + 1)
    return replace(found, source=scenario.source, span=span)
