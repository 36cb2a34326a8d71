"""Energy model: predicts energy, traffic and lifetime of a plan from the workload of each mote and the link qualities.

`innet.costs.hardware` defines the states of a mote. The simulator measures the time spent in each; this module computes
it. For each mote and epoch:

    send    = frames * attempts * airtime + copies received * ack    (polls are frames too, but no messages)
    awake   = starts * startup + slots it listens in + frames * attempts * (airtime + 2 turnarounds + ack)
    energy  = voltage * ( send_ma * send  +  listen_ma * (awake - send)  +  radio sleep_ma * (epoch - awake)
                        + active_ma * (awake + computing)  +  sleep_ma * (epoch - awake - computing)
                        + each sample's milliampere * its milliseconds )

`attempts` and `copies` are the expectations of `innet.costs.hop_delivery`. Losses below a mote reduce the frames that it
forwards, but not its own frames. In bad times a slot may also have no room for some frames (`innet.costs.burst_loss`).
The model leaves out the self-discharge of batteries, and the energy of gateways, which are on the mains.
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
    """The mean number of frames of `size` bytes from a mote to its neighbour in an epoch, while nothing is lost."""

    sender: int
    receiver: int
    frames: float
    size: float
    forwarded: bool = False  # whether the sender forwards them unchanged


@dataclass(frozen=True, slots=True)
class MoteWorkload:
    """The mean work of one mote in an epoch, without the sending of its frames."""

    sampled_ma_ms: float = 0.0  # milliampere times milliseconds, over all samples
    instructions: float = 0.0  # of the bytecode
    listen_ms: float = 0.0  # over all slots
    starts: float = 0.0  # of the radio, to listen and to send
    slot_ms: float = inf  # length of its slot for sending to the parent
    polls: float = 0.0  # frames of a bare header that ask the parent for waiting frames


@dataclass(frozen=True, slots=True)
class EnergyUse:
    """The energy of one mote in one epoch, in joules."""

    sensing: float
    computing: float
    sending: float
    listening: float
    sleeping: float

    @property
    def total(self) -> float:
        """Joules in all."""
        return self.sensing + self.computing + self.sending + self.listening + self.sleeping


@dataclass(frozen=True, slots=True)
class LevelTraffic:
    """The traffic at one distance from the gateways in an epoch: frames, attempts, and the bytes of all attempts."""

    frames: float = 0.0
    attempts: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: "LevelTraffic") -> "LevelTraffic":
        return LevelTraffic(self.frames + other.frames, self.attempts + other.attempts, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class EnergyPrediction:
    """The predicted energy and traffic of a network in an epoch."""

    epoch_ms: float
    motes: Mapping[int, EnergyUse]
    levels: Mapping[int, LevelTraffic]
    """By n: the frames between motes n hops from a gateway and motes one hop nearer, in both directions."""
    lifetimes: Mapping[int, float]
    """By mote: seconds until the battery is empty; infinite on the mains."""
    delivery_ratios: Mapping[int, float]
    """By mote: the share of its frames that reach a gateway."""

    @property
    def total(self) -> LevelTraffic:
        """The traffic of all levels."""
        return sum(self.levels.values(), LevelTraffic())

    @property
    def worst(self) -> int | None:
        """The mote whose battery is empty first; of equal ones the lower number. None if no mote has a battery."""
        mortal = [mote for mote, seconds in self.lifetimes.items() if seconds < inf]
        return min(mortal, key=lambda mote: (self.lifetimes[mote], mote), default=None)


@dataclass(frozen=True, slots=True)
class NetworkModel:
    """The network that a prediction is about."""

    tree: RoutingTree
    topology: Topology
    hardware: Mapping[int, Hardware]  # by mote
    batteries: Mapping[int, float]  # joules by mote; motes without one are on the mains
    attempts: int  # per frame and hop, at most
    burst_loss: BurstLoss = NO_BURSTS


def predict(
    network: NetworkModel, duties: Mapping[int, MoteWorkload], traffic: Iterable[HopTraffic], epoch_ms: float
) -> EnergyPrediction:
    """Predict the energy of every mote in `duties`, and the traffic of each level.

    `duties` has the workload of each mote in an epoch of `epoch_ms`; `traffic` has its frames, hop by hop.
    """
    send_ms: dict[int, float] = dict.fromkeys(duties, 0.0)  # on the air, with frames and acknowledgements
    busy_ms: dict[int, float] = dict.fromkeys(duties, 0.0)  # in attempts, from the first turnaround to the last
    levels: dict[int, list[float]] = {}  # frames, attempts, bytes
    depths, airtimes = _Depths(network.tree), dict[tuple[int, float], tuple[float, float]]()
    slots = {mote: duty.slot_ms for mote, duty in duties.items()}
    sent_on, through = propagate_losses(network, traffic, slots)
    for hop, share, link in sent_on:
        frames = hop.frames * share
        further = hop.sender if network.tree.parent.get(hop.sender) == hop.receiver else hop.receiver
        attempts = frames * link.attempts
        level = levels.setdefault(depths[further], [0.0, 0.0, 0.0])
        level[0] += frames
        level[1] += attempts
        level[2] += attempts * hop.size
        if hop.sender in duties:
            if (hop.sender, hop.size) not in airtimes:
                hardware = network.hardware[hop.sender]
                airtimes[hop.sender, hop.size] = hardware.radio.airtime_ms(hop.size), attempt_ms(hardware, hop.size)
            on_air, busy = airtimes[hop.sender, hop.size]
            send_ms[hop.sender] += attempts * on_air
            busy_ms[hop.sender] += attempts * busy
        if hop.receiver in duties:
            send_ms[hop.receiver] += frames * link.copies * network.hardware[hop.receiver].radio.ack_ms
    for mote, duty in duties.items():
        parent, kinds = network.tree.parent[mote], network.hardware
        link = _link(network, mote, parent)
        attempts = duty.polls * link.attempts
        send_ms[mote] += attempts * kinds[mote].radio.airtime_ms(HEADER_SIZE)
        busy_ms[mote] += attempts * attempt_ms(kinds[mote], HEADER_SIZE)
        if parent in duties:
            send_ms[parent] += duty.polls * link.copies * kinds[parent].radio.ack_ms
    motes = {
        mote: _use(network.hardware[mote], duty, send_ms[mote], busy_ms[mote], epoch_ms)
        for mote, duty in duties.items()
    }
    lifetimes = {mote: network.batteries.get(mote, inf) / use.total * epoch_ms / 1_000 for mote, use in motes.items()}
    traffic_by_level = {level: LevelTraffic(*sent) for level, sent in sorted(levels.items())}
    return EnergyPrediction(epoch_ms, motes, traffic_by_level, lifetimes, through)


class _Depths(dict[int, int]):
    """The number of hops to a gateway, by mote."""

    def __init__(self, tree: RoutingTree) -> None:
        super().__init__()
        self._tree = tree

    def __missing__(self, mote: int) -> int:
        self[mote] = self._tree.depth(mote)
        return self[mote]


def attempt_ms(hardware: Hardware, size: float) -> float:
    """Return the milliseconds of one attempt with a frame of `size` bytes, acknowledged or not."""
    radio = hardware.radio
    return radio.airtime_ms(size) + 2 * radio.turnaround_ms + radio.ack_ms


def propagate_losses(
    network: NetworkModel, traffic: Iterable[HopTraffic], slots: Mapping[int, float]
) -> tuple[list[tuple[HopTraffic, float, HopDelivery]], dict[int, float]]:
    """Reduce forwarded traffic by the losses before it.

    `slots` has the length in ms of each mote's slot for sending. Returns (traffic, share, delivery): the share of each
    traffic that is left, and the expected delivery of a frame of it; upward traffic comes first, leaves first. Also
    returns, by mote, the share of its frames that reach a gateway.
    """
    tree = network.tree
    by_sender: dict[tuple[int, bool], list[HopTraffic]] = {}
    for hop in traffic:
        by_sender.setdefault((hop.sender, tree.parent.get(hop.sender) == hop.receiver), []).append(hop)
    found = []
    upward = tree.leaves_first
    links = {}
    for is_upward, senders in ((True, upward), (False, (*tree.roots, *reversed(upward)))):
        due: dict[int, float] = {}  # by receiver: frames, had none been lost
        arrived: dict[int, float] = {}
        for sender in senders:
            share = arrived[sender] / due[sender] if due.get(sender) else 1.0
            here = [(hop, share if hop.forwarded else 1.0) for hop in by_sender.pop((sender, is_upward), ())]
            if is_upward:
                links[sender] = _link(network, sender, tree.parent[sender], here, slots.get(sender, inf))
            for hop, left in here:
                link = links[sender] if is_upward else _link(network, sender, hop.receiver)
                found.append((hop, left, link))
                due[hop.receiver] = due.get(hop.receiver, 0.0) + hop.frames
                arrived[hop.receiver] = arrived.get(hop.receiver, 0.0) + hop.frames * left * link.delivered
    if by_sender:
        sender, _ = min(by_sender)
        raise ValueError(f"expected senders in the routing tree, found {sender}")
    ratios = dict.fromkeys(tree.roots, 1.0)
    for mote in reversed(upward):
        ratios[mote] = ratios[tree.parent[mote]] * links[mote].delivered
    return found, {mote: ratios[mote] for mote in tree.parent}


def _link(network: NetworkModel, sender: int, receiver: int, sent: Sequence[tuple[HopTraffic, float]] = (),
          slot_ms: float = inf) -> HopDelivery:  # fmt: skip
    """Return the expected delivery of a frame if `sent` is sent in one slot, each traffic reduced to its share."""
    ratio = network.topology.ratio
    frames = sum(hop.frames * share for hop, share in sent)
    once_ms = sum(hop.frames * share * attempt_ms(network.hardware[sender], hop.size) for hop, share in sent)
    room = slot_ms * frames / once_ms if frames else inf
    return expect_with_bursts(
        network.burst_loss, ratio(sender, receiver), ratio(receiver, sender), network.attempts, frames, room
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
