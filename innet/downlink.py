"""DOOR DOWN: encode mote programs, parents and radio schedules as the images that motes are sent."""

from collections.abc import Iterable, Mapping

from acquisition.schedule import Schedule
from gateway.frame import BROADCAST
from gateway.image import Image
from innet.payload import MoteAssignment, RadioSchedule, encode_assignment, group_by_site
from innet.placement.agenda import Agenda
from innet.program.mote_program import MoteProgram
from innet.routing.tree import RoutingTree

FORWARDING_VERSION = 1
"""The version of the image of a mote that only forwards and so has no schedule. Two such images differ by their digest."""


def make_images(
    compiled: Iterable[MoteProgram],
    tree: RoutingTree,
    schedules: Mapping[int, Schedule],
    agenda: Agenda | None = None,
) -> dict[int, Image]:
    """Encode the PROGRAM image of each site that samples and of each mote on the route of one, by site.

    An image has the programs, the parent and, with an `agenda`, the radio schedule. Its version is that of the site's
    schedule. The parent of a site outside the tree is BROADCAST: any mote in range may forward its frames.
    """
    programs = group_by_site(compiled)
    radio_schedules = {} if agenda is None else {site: RadioSchedule.of(agenda, site) for site in agenda.sites}
    versions = {site: schedule.version for site, schedule in schedules.items() if schedule.samplings}
    forwarders = {mote for site in versions if site in tree.parent for mote in tree.path(site)[:-1]}
    return {
        site: encode_assignment(
            versions.get(site, FORWARDING_VERSION),
            MoteAssignment(programs.get(site, ()), tree.parent.get(site, BROADCAST), radio_schedules.get(site)),
        )
        for site in sorted(versions.keys() | forwarders | programs.keys())
    }
