"""A recording as the world of a scenario: each sensor repeats the column of its attribute."""

from dataclasses import replace

from acquisition.errors import InputError
from acquisition.extent import ExtentKind
from acquisition.sources.python_values import read_file
from acquisition.sources.recorded_table import list_columns
from basestation.planner.deployed_catalog import read_deployed_catalog
from gateway.diagnostics import Diagnostic
from gateway.toml import ConfigError
from simulator.scenario import Quantity, Scenario
from simulator.world_builder import recorded_ticks


def add_recorded_world(scenario: Scenario) -> Scenario:
    """The scenario with the quantities of its recording, if it has one, and its begin if the file states none.

    A sensor takes the column with the name of its attribute, else with its own. Raises ConfigError if the recording cannot be
    read or has neither for any sensor, and DiagnosticError for a schema that does not fit.
    """
    recording = scenario.recording
    if recording is None:
        return scenario
    catalog = read_deployed_catalog(scenario.deployment)
    try:
        recorded = read_file(recording.file)
        world = dict(scenario.world)
        for extent in catalog:
            for attribute in extent.schema if extent.kind is ExtentKind.SENSED else ():
                sensor = attribute.sensor or attribute.name
                if attribute in (extent.site_attribute, extent.time_attribute) or sensor in scenario.world:
                    continue
                column = next((name for name in (attribute.name, sensor) if name in recorded.columns), None)
                if column is not None:
                    world[sensor] = Quantity(recording=recording, column=column)
        if len(world) == len(scenario.world):
            help = list_columns(list(recorded.columns))
            raise InputError("SN505", "no column has the name of an attribute or sensor", recorded.name, help=help)
        if recording.time_column not in recorded.columns:
            help = f"{list_columns(list(recorded.columns))}; `time_column` names the one with the times"
            raise InputError("SN505", f"the column `{recording.time_column}` is missing", recorded.name, help=help)
        ticks = recorded_ticks(recorded, recording, scenario.deployment.tick_ms)
    except InputError as error:
        place = scenario.places["world", "file"][1]
        raise ConfigError([Diagnostic("SN708", str(error), scenario.source, place, help=error.help)]) from error
    begin_ms = scenario.begin_ms
    if scenario.begins_with_recording and len(ticks):
        begin_ms = max(0, int(ticks.min())) * scenario.deployment.tick_ms
    return replace(scenario, world=world, begin_ms=begin_ms)
