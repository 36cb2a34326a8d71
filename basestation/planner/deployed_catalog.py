"""Reads the extents of a deployment and checks each of them against the motes that sense it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from acquisition.extent import Catalog, Extent, ExtentKind
from acquisition.schema import Attribute, Type
from basestation.language.schema_parser import parse_schema
from basestation.language.schema_syntax import ExtentDecl
from basestation.language.syntax import Name
from basestation.planner.catalog import read_schema
from basestation.planner.diagnostic_report import Report
from gateway.source import did_you_mean
from innet.deployment import Deployment, SensorSpec, Site


def read_deployed_catalog(deployment: Deployment) -> Catalog:
    """The Catalog of the deployment's schema; `at sites all` means the motes that have the sensors.

    Raises DiagnosticError with all errors of the schema, and all disagreements with the motes.
    """
    source = deployment.extents
    catalog = read_schema(source.text, source.name, deployment.tick_ms)
    report = Report(source)
    extents = dict(catalog.extents)
    for declaration in parse_schema(source).extents:
        extent = extents[declaration.name.text]
        if extent.kind is ExtentKind.SENSED:
            extents[extent.name] = _fit_to_motes(extent, declaration, deployment.motes, report)
    report.raise_errors()
    return Catalog(extents, catalog.tick_ms)


def _fit_to_motes(extent: Extent, declaration: ExtentDecl, motes: Mapping[int, Site], report: Report) -> Extent:
    measured = [
        (attribute, written.name)
        for attribute, written in zip(extent.schema, declaration.attributes, strict=True)
        if attribute not in (extent.site_attribute, extent.time_attribute)
    ]
    place = declaration.sites or declaration.name
    if extent.sites is None:
        names = {attribute.sensor or attribute.name for attribute, _ in measured}
        sites = tuple(number for number, mote in sorted(motes.items()) if names <= mote.sensors.keys())
        if not sites:
            missing_sensors = ", ".join(f"`{name}`" for name in sorted(names))
            report.error("SN710", f"no mote has all sensors of `{extent.name}`: {missing_sensors}", place)
        extent = replace(extent, sites=sites)
    sites = extent.sites or ()
    if missing := [site for site in sites if site not in motes]:
        report.error("SN709", f"there {'is' if len(missing) == 1 else 'are'} no {_motes(missing)}", place)
    sensors = {site: motes[site].sensors for site in sites if site in motes}
    for attribute, name in measured:
        _check(attribute, name, sensors, report)
    return extent


def _check(attribute: Attribute, place: Name, sensors: Mapping[int, Mapping[str, SensorSpec]], report: Report) -> None:
    """Check an attribute against the sensor of each site that reads it."""
    name = attribute.sensor or attribute.name
    if without := [site for site, by_name in sensors.items() if name not in by_name]:
        near = did_you_mean(name, sorted(sensors[without[0]]))
        report.error("SN710", f"{_have(without)} no sensor `{name}`", place, help=near)
    specs = {site: by_name[name] for site, by_name in sensors.items() if name in by_name}
    scale = 0 if attribute.type.whole else attribute.scale
    for what, declared in (("scale", scale), ("unit", attribute.unit)):
        known = {site: getattr(spec, what) for site, spec in specs.items() if getattr(spec, what) is not None}
        if declared is not None and (other := [site for site, value in known.items() if value != declared]):
            report.error(
                "SN711",
                f"`{attribute.name}` has the {what} {declared}, and sensor `{name}` of {_motes(other)} has {known[other[0]]}",
                place,
            )
    if attribute.type is Type.STRING:
        report.error("SN711", f"`{attribute.name}` is a string, and sensors give numbers", place)


def _motes(sites: Sequence[int]) -> str:
    """The first five sites, and the number of further ones."""
    shown = ", ".join(map(str, sites[:5])) + (f" and {len(sites) - 5} more" if len(sites) > 5 else "")
    return f"mote{'s' * (len(sites) > 1)} {shown}"


def _have(sites: Sequence[int]) -> str:
    return f"{_motes(sites)} {'has' if len(sites) == 1 else 'have'}"
