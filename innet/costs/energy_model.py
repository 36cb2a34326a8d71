"""The cost model: what a plan will use, from what each mote does in an epoch and how well motes hear each other.

The states and their meaning are those of `innet.costs.hardware`; the simulator counts the time that its motes spent in
them, here it is computed. For each mote and epoch:

    send    = frames * attempts * airtime + copies received * ack    (questions are frames that are no messages)
    awake   = starts * startup + slots it listens in + frames * attempts * (airtime + 2 turnarounds + ack)
    energy  = voltage * ( send_ma * send  +  listen_ma * (awake - send)  +  radio sleep_ma * (epoch - awake)
                        + active_ma * (awake + computing)  +  sleep_ma * (epoch - awake - computing)
                        + each sample's milliampere * its milliseconds )

`attempts` and `copies` are the expectations of `innet.costs.hop_delivery`. Frames that a mote passes on are fewer by the
share that was lost below it; frames of its own are not. In bad times there are also those that a slot has no room for
(`innet.costs.burst_loss`). Left out: what batteries lose by themselves, and the energy of gateways, which are on the mains.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from gateway.frame import HEADER_SIZE
from innet.costs.burst_loss import NO_BURSTS, BurstLoss, expect_with_bursts
from innet.costs.hardware import Hardware
from innet.costs.hop_delivery import HopDelivery
from innet.routing.topology import Topology
from innet.routing.tree import RoutingTree


@dataclass(frozen=True, slots=True)
class HopTraffic:
    """`frames` of `size` bytes that go from one to its neighbour in an epoch, on average, while nothing is lost."""

    sender: int
    receiver: int
    frames: float
    size: float
    forwarded: bool = False  # by a sender that has them from others, as they are


@dataclass(frozen=True, slots=True)
class MoteWorkload:
    """What one mote does in an epoch besides sending, on average."""

    sampled_ma_ms: float = 0.0  # milliampere times milliseconds, over all samples
    instructions: float = 0.0
    listen_ms: float = 0.0  # in all slots together
    starts: float = 0.0  # how often it starts its radio, to listen and to send
    slot_ms: float = inf  # in which it sends to its parent
    questions: float = (
        0.0  # how often it asks its parent whether something waits for it, in a frame that is nothing but a header
    )


@dataclass(frozen=True, slots=True)
class EnergyUse:
    """Joules of one mote in one epoch."""

    sensing: float
    computing: float
    sending: float
    listening: float
    sleeping: float

    @property
    def total(self) -> float:
        return self.sensing + self.computing + self.sending + self.listening + self.sleeping


@dataclass(frozen=True, slots=True)
class LevelTraffic:
    """What is sent at one distance from the gateways, in an epoch: each frame, each attempt, and the bytes of ours in them."""

    frames: float = 0.0
    attempts: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: "LevelTraffic") -> "LevelTraffic":
        return LevelTraffic(self.frames + other.frames, self.attempts + other.attempts, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class EnergyPrediction:
    """`levels[n]` are the frames between motes n hops away from a gateway and the next nearer ones, in both directions;
    `through` is, by mote, the share of what it sends that is to reach a gateway."""

    epoch_ms: float
    motes: Mapping[int, EnergyUse]
    levels: Mapping[int, LevelTraffic]
    lifetimes: Mapping[int, float]  # seconds until the battery is empty; infinite on the mains
    through: Mapping[int, float]

    @property
    def total(self) -> LevelTraffic:
        return sum(self.levels.values(), LevelTraffic())

    @property
    def worst(self) -> int | None:
        """The mote whose battery is empty first; among equals the lower number. None where no mote has a battery."""
        mortal = [mote for mote, seconds in self.lifetimes.items() if seconds < inf]
        return min(mortal, key=lambda mote: (self.lifetimes[mote], mote), default=None)


@dataclass(frozen=True, slots=True)
class NetworkModel:
    """What a prediction is about. `batteries` are joules; motes without one are on the mains."""

    tree: RoutingTree
    topology: Topology
    hardware: Mapping[int, Hardware]
    batteries: Mapping[int, float]
    attempts: int  # how often a frame is tried with a neighbour
    climate: BurstLoss = NO_BURSTS


def predict(
    network: NetworkModel, duties: Mapping[int, MoteWorkload], traffic: Iterable[HopTraffic], epoch_ms: float
) -> EnergyPrediction:
    """What every mote of `duties` will use, and what will be sent where."""
    send_ms: dict[int, float] = dict.fromkeys(duties, 0.0)
    busy_ms: dict[int, float] = dict.fromkeys(duties, 0.0)  # with attempts, from the first to the last turnaround
    levels: dict[int, LevelTraffic] = {}
    slots = {mote: duty.slot_ms for mote, duty in duties.items()}
    sent_on, through = propagate_losses(network, traffic, slots)
    for each, share, link in sent_on:
        frames = each.frames * share
        further = each.sender if network.tree.parent.get(each.sender) == each.receiver else each.receiver
        level = network.tree.depth(further)
        sent = LevelTraffic(frames, frames * link.attempts, frames * link.attempts * each.size)
        levels[level] = levels.get(level, LevelTraffic()) + sent
        if each.sender in duties:
            radio = network.hardware[each.sender].radio
            send_ms[each.sender] += sent.attempts * radio.airtime_ms(each.size)
            busy_ms[each.sender] += sent.attempts * attempt_ms(network.hardware[each.sender], each.size)
        if each.receiver in duties:
            send_ms[each.receiver] += frames * link.copies * network.hardware[each.receiver].radio.ack_ms
    for mote, duty in duties.items():
        parent, hardware = network.tree.parent[mote], network.hardware
        link = _link(network, mote, parent)
        attempts = duty.questions * link.attempts
        send_ms[mote] += attempts * hardware[mote].radio.airtime_ms(HEADER_SIZE)
        busy_ms[mote] += attempts * attempt_ms(hardware[mote], HEADER_SIZE)
        if parent in duties:
            send_ms[parent] += duty.questions * link.copies * hardware[parent].radio.ack_ms
    motes = {
        mote: _use(network.hardware[mote], duty, send_ms[mote], busy_ms[mote], epoch_ms)
        for mote, duty in duties.items()
    }
    lifetimes = {mote: network.batteries.get(mote, inf) / use.total * epoch_ms / 1_000 for mote, use in motes.items()}
    return EnergyPrediction(epoch_ms, motes, dict(sorted(levels.items())), lifetimes, through)


def attempt_ms(hardware: Hardware, size: float) -> float:
    """How long one attempt with a frame of that size takes, acknowledged or not."""
    radio = hardware.radio
    return radio.airtime_ms(size) + 2 * radio.turnaround_ms + radio.ack_ms


def propagate_losses(
    network: NetworkModel, traffic: Iterable[HopTraffic], slots: Mapping[int, float]
) -> tuple[list[tuple[HopTraffic, float, HopDelivery]], dict[int, float]]:
    """Which share of each traffic there will be after losses before it, and what becomes of a frame of it: first what rises,
    leaves first, then what descends; and by mote, which share of what it sends is to reach a gateway."""
    tree = network.tree
    by_sender: dict[tuple[int, bool], list[HopTraffic]] = {}
    for each in traffic:
        by_sender.setdefault((each.sender, tree.parent.get(each.sender) == each.receiver), []).append(each)
    found = []
    rising = tree.leaves_first
    links = {}
    for rises, senders in ((True, rising), (False, (*tree.roots, *reversed(rising)))):
        due: dict[int, float] = {}
        came: dict[int, float] = {}
        for sender in senders:
            share = came[sender] / due[sender] if due.get(sender) else 1.0
            here = [(each, share if each.forwarded else 1.0) for each in by_sender.pop((sender, rises), ())]
            if rises:
                links[sender] = _link(network, sender, tree.parent[sender], here, slots.get(sender, inf))
            for each, kept in here:
                link = links[sender] if rises else _link(network, sender, each.receiver)
                found.append((each, kept, link))
                due[each.receiver] = due.get(each.receiver, 0.0) + each.frames
                came[each.receiver] = came.get(each.receiver, 0.0) + each.frames * kept * link.delivered
    if by_sender:
        sender, _ = min(by_sender)
        raise ValueError(f"traffic from {sender}, which is not in the tree")
    through = dict.fromkeys(tree.roots, 1.0)
    for mote in reversed(rising):
        through[mote] = through[tree.parent[mote]] * links[mote].delivered
    return found, {mote: through[mote] for mote in tree.parent}


def _link(network: NetworkModel, sender: int, receiver: int, sent: Sequence[tuple[HopTraffic, float]] = (),
          slot_ms: float = inf) -> HopDelivery:  # fmt: skip
    """What becomes of a frame where these are sent in one slot, each with the share there is of it."""
    ratio = network.topology.ratio
    frames = sum(each.frames * share for each, share in sent)
    once = sum(each.frames * share * attempt_ms(network.hardware[sender], each.size) for each, share in sent)
    room = slot_ms * frames / once if frames else inf
    return expect_with_bursts(
        network.climate, ratio(sender, receiver), ratio(receiver, sender), network.attempts, frames, room
    )


def _use(hardware: Hardware, duty: MoteWorkload, send_ms: float, busy_ms: float, epoch_ms: float) -> EnergyUse:
    radio, processor = hardware.radio, hardware.processor
    awake_ms = duty.starts * radio.startup_ms + duty.listen_ms + busy_ms
    computing_ms = duty.instructions * processor.instruction_us / 1_000
    return EnergyUse(
        sensing=hardware.joules(1.0, duty.sampled_ma_ms),
        computing=hardware.joules(processor.active_ma, computing_ms),
        sending=hardware.joules(radio.send_ma + processor.active_ma, send_ms),
        listening=hardware.joules(radio.listen_ma + processor.active_ma, awake_ms - send_ms),
        sleeping=hardware.joules(radio.sleep_ma, epoch_ms - awake_ms)
        + hardware.joules(processor.sleep_ma, epoch_ms - awake_ms - computing_ms),
    )
