"""Raw ranges: the range of each sensed attribute over all sensors of a deployment."""

from acquisition.extent import Catalog
from innet.deployment import Deployment
from innet.operators.mote_expression import SensorValue
from innet.operators.value_ranges import Interval


def raw_ranges(deployment: Deployment, catalog: Catalog) -> dict[SensorValue, Interval]:
    """The range of each attribute over all sensors of a deployment, in multiples of the attribute's scale."""
    found: dict[SensorValue, Interval] = {}
    for extent in catalog:
        for attribute in extent.schema:
            name = attribute.sensor or attribute.name
            specs = [mote.sensors[name] for mote in deployment.motes.values() if name in mote.sensors]
            for spec in specs:
                ends = (_rescaled(end, spec.scale, attribute.scale or 0) for end in (spec.raw_min, spec.raw_max))
                interval, place = Interval(*ends), SensorValue(extent.name, attribute.name)
                found[place] = found[place].hull(interval) if place in found else interval
    return found


def _rescaled(multiple: int, scale: int, to: int) -> int:
    """A multiple of 10^-scale as the nearest one of another scale, halves away from zero (semantics 13)."""
    if to >= scale:
        return multiple * int(10 ** (to - scale))
    step = int(10 ** (scale - to))
    return (abs(multiple) + step // 2) // step * (1 if multiple >= 0 else -1)
