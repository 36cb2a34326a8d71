"""DOOR DOWN: mote programs -> what motes are sent."""

from collections.abc import Iterable, Mapping

from acquisition.schedule import Schedule
from gateway.frame import BROADCAST
from gateway.image import Image
from innet.payload import MoteAssignment, RadioSchedule, encode_assignment, group_by_site
from innet.placement.agenda import Agenda
from innet.program.mote_program import MoteProgram
from innet.routing.tree import RoutingTree

FORWARDING_VERSION = 1
"""The version of what a site is told that has no schedule; two of them differ by their digests."""


def make_images(
    compiled: Iterable[MoteProgram],
    tree: RoutingTree,
    schedules: Mapping[int, Schedule],
    agenda: Agenda | None = None,
) -> dict[int, Image]:
    """What each site that samples is to run, to whom it sends and when, under the version of its schedule; and those on its way.

    A site that is not in the tree yet sends to whoever hears it; one that runs nothing still passes on what others send.
    """
    programs, sites = group_by_site(compiled), {} if agenda is None else agenda.sites
    duties = {site: RadioSchedule.of(agenda, site) for site in sites}
    versions = {site: schedule.version for site, schedule in schedules.items() if schedule.samplings}
    ways = {mote for site in versions if site in tree.parent for mote in tree.path(site)[:-1]}
    return {
        site: encode_assignment(
            versions.get(site, FORWARDING_VERSION),
            MoteAssignment(programs.get(site, ()), tree.parent.get(site, BROADCAST), duties.get(site)),
        )
        for site in sorted(versions.keys() | ways | programs.keys())
    }
