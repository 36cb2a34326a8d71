"""Deployed: the extents of a deployment, each checked against the motes that are to sense it."""

from dataclasses import replace

from acquisition.extent import Catalog, ExtentKind
from acquisition.schema import Type
from basestation.language.schema_parser import parse_schema
from basestation.planner.catalog import read_schema
from basestation.planner.diagnostic_report import Report
from gateway.source import did_you_mean


def read_deployed_catalog(deployment):
    """The Catalog of its schema, in which `at sites all` are the motes that have the sensors.

    Raises Refused with everything that is wrong with the schema, or does not fit the motes.
    """
    source = deployment.extents
    catalog = read_schema(source.text, source.name, deployment.tick_ms)
    report = Report(source)
    extents = dict(catalog.extents)
    for declaration in parse_schema(source).extents:
        extent = extents[declaration.name.text]
        if extent.kind is ExtentKind.SENSED:
            extents[extent.name] = _fitted(extent, declaration, deployment.motes, report)
    report.raise_errors()
    return Catalog(extents, catalog.tick_ms)


def _fitted(extent, declaration, motes, report):
    measured = [
        (attribute, written.name)
        for attribute, written in zip(extent.schema, declaration.attributes, strict=True)
        if attribute not in (extent.site_attribute, extent.time_attribute)
    ]
    if extent.sites is None:
        names = {attribute.sensor or attribute.name for attribute, _ in measured}
        sites = tuple(number for number, mote in sorted(motes.items()) if names <= mote.sensors.keys())
        if not sites:
            wanted = ", ".join(f"`{name}`" for name in sorted(names))
            report.error("SN710", f"no mote has all sensors of `{extent.name}`: {wanted}", declaration.sites)
        extent = replace(extent, sites=sites)
    if missing := [site for site in extent.sites if site not in motes]:
        report.error("SN709", f"there {'is' if len(missing) == 1 else 'are'} no {_motes(missing)}", declaration.sites)
    for attribute, place in measured:
        sensors = {site: motes[site].sensors for site in extent.sites if site in motes}
        _check(attribute, place, sensors, report)
    return extent


def _check(attribute, place, sensors, report):
    """An attribute against the sensor of each site that is to read it."""
    name = attribute.sensor or attribute.name
    if without := [site for site, known in sensors.items() if name not in known]:
        near = did_you_mean(name, sorted(sensors[without[0]]))
        report.error("SN710", f"{_have(without)} no sensor `{name}`", place, help=near)
    specs = {site: known[name] for site, known in sensors.items() if name in known}
    scale = 0 if attribute.type.whole else attribute.scale
    for what, wanted in (("scale", scale), ("unit", attribute.unit)):
        said = {site: getattr(spec, what) for site, spec in specs.items() if getattr(spec, what) is not None}
        if wanted is not None and (other := [site for site, value in said.items() if value != wanted]):
            report.error(
                "SN711",
                f"`{attribute.name}` has the {what} {wanted}, and sensor `{name}` of {_motes(other)} has {said[other[0]]}",
                place,
            )
    if attribute.type is Type.STRING:
        report.error("SN711", f"`{attribute.name}` is a string, and sensors give numbers", place)


def _motes(sites):
    """The first few of them, and how many more there are."""
    shown = ", ".join(map(str, sites[:5])) + (f" and {len(sites) - 5} more" if len(sites) > 5 else "")
    return f"mote{'s' * (len(sites) > 1)} {shown}"


def _have(sites):
    return f"{_motes(sites)} {'has' if len(sites) == 1 else 'have'}"
