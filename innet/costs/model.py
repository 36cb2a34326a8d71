"""The cost model: what a plan will use, from what each mote does in an epoch and how well motes hear each other.

The states and their meaning are those of `innet.costs.hardware`; the simulator counts the time that its motes spent in
them, here it is computed. For each mote and epoch:

    send    = frames * attempts * airtime + copies received * ack
    awake   = starts * startup + slots it listens in + frames * attempts * (airtime + 2 turnarounds + ack)
    energy  = voltage * ( send_ma * send  +  listen_ma * (awake - send)  +  radio sleep_ma * (epoch - awake)
                        + active_ma * (awake + computing)  +  sleep_ma * (epoch - awake - computing)
                        + each sample's milliampere * its milliseconds )

`attempts` and `copies` are the expectations of `innet.costs.handover`. Frames that a mote passes on are fewer by the
share that was lost below it; frames of its own are not. Left out: what batteries lose by themselves, and the energy of
gateways, which are on the mains.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from innet.costs.handover import hand_over
from innet.costs.hardware import Hardware
from innet.routing.topology import Topology
from innet.routing.tree import RoutingTree


@dataclass(frozen=True, slots=True)
class Traffic:
    """`frames` of `size` bytes that go from one to its neighbour in an epoch, on average, while nothing is lost."""

    sender: int
    receiver: int
    frames: float
    size: float
    passed_on: bool = False  # by a sender that has them from others, as they are


@dataclass(frozen=True, slots=True)
class Duty:
    """What one mote does in an epoch besides sending, on average."""

    sampled_ma_ms: float = 0.0  # milliampere times milliseconds, over all samples
    instructions: float = 0.0
    listen_ms: float = 0.0  # in all slots together
    starts: float = 0.0  # how often it starts its radio, to listen and to send


@dataclass(frozen=True, slots=True)
class Use:
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
class Level:
    """What is sent at one distance from the gateways, in an epoch: each frame, each attempt, and the bytes of ours in them."""

    frames: float = 0.0
    attempts: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: "Level") -> "Level":
        return Level(self.frames + other.frames, self.attempts + other.attempts, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class Prediction:
    """`levels[n]` are the frames between motes n hops away from a gateway and the next nearer ones, in both directions."""

    epoch_ms: float
    motes: Mapping[int, Use]
    levels: Mapping[int, Level]
    lifetimes: Mapping[int, float]  # seconds until the battery is empty; infinite on the mains

    @property
    def total(self) -> Level:
        return sum(self.levels.values(), Level())

    @property
    def worst(self) -> int | None:
        """The mote whose battery is empty first; among equals the lower number. None where no mote has a battery."""
        mortal = [mote for mote, seconds in self.lifetimes.items() if seconds < inf]
        return min(mortal, key=lambda mote: (self.lifetimes[mote], mote), default=None)


@dataclass(frozen=True, slots=True)
class Network:
    """What a prediction is about. `batteries` are joules; motes without one are on the mains."""

    tree: RoutingTree
    topology: Topology
    hardware: Mapping[int, Hardware]
    batteries: Mapping[int, float]
    attempts: int  # how often a frame is tried with a neighbour


def predict(network: Network, duties: Mapping[int, Duty], traffic: Iterable[Traffic], epoch_ms: float) -> Prediction:
    """What every mote of `duties` will use, and what will be sent where."""
    send_ms: dict[int, float] = dict.fromkeys(duties, 0.0)
    busy_ms: dict[int, float] = dict.fromkeys(duties, 0.0)  # with attempts, from the first to the last turnaround
    levels: dict[int, Level] = {}
    for each, share in arriving(network, traffic):
        frames = each.frames * share
        link = _link(network, each)
        further = each.sender if network.tree.parent.get(each.sender) == each.receiver else each.receiver
        level = network.tree.depth(further)
        sent = Level(frames, frames * link.attempts, frames * link.attempts * each.size)
        levels[level] = levels.get(level, Level()) + sent
        if each.sender in duties:
            radio = network.hardware[each.sender].radio
            send_ms[each.sender] += sent.attempts * radio.airtime_ms(each.size)
            busy_ms[each.sender] += sent.attempts * attempt_ms(network.hardware[each.sender], each.size)
        if each.receiver in duties:
            send_ms[each.receiver] += frames * link.copies * network.hardware[each.receiver].radio.ack_ms
    motes = {
        mote: _use(network.hardware[mote], duty, send_ms[mote], busy_ms[mote], epoch_ms)
        for mote, duty in duties.items()
    }
    lifetimes = {mote: network.batteries.get(mote, inf) / use.total * epoch_ms / 1_000 for mote, use in motes.items()}
    return Prediction(epoch_ms, motes, dict(sorted(levels.items())), lifetimes)


def attempt_ms(hardware: Hardware, size: float) -> float:
    """How long one attempt with a frame of that size takes, acknowledged or not."""
    radio = hardware.radio
    return radio.airtime_ms(size) + 2 * radio.turnaround_ms + radio.ack_ms


def arriving(network: Network, traffic: Iterable[Traffic]) -> list[tuple[Traffic, float]]:
    """Which share of each traffic there will be after losses before it: first what rises, leaves first, then what descends."""
    tree = network.tree
    by_sender: dict[tuple[int, bool], list[Traffic]] = {}
    for each in traffic:
        by_sender.setdefault((each.sender, tree.parent.get(each.sender) == each.receiver), []).append(each)
    found = []
    rising = tree.leaves_first
    for rises, senders in ((True, rising), (False, (*tree.roots, *reversed(rising)))):
        due: dict[int, float] = {}
        came: dict[int, float] = {}
        for sender in senders:
            share = came[sender] / due[sender] if due.get(sender) else 1.0
            for each in by_sender.pop((sender, rises), ()):
                kept = share if each.passed_on else 1.0
                found.append((each, kept))
                due[each.receiver] = due.get(each.receiver, 0.0) + each.frames
                delivered = each.frames * kept * _link(network, each).delivered
                came[each.receiver] = came.get(each.receiver, 0.0) + delivered
    if by_sender:
        sender, _ = min(by_sender)
        raise ValueError(f"traffic from {sender}, which is not in the tree")
    return found


def coming_through(network: Network) -> dict[int, float]:
    """By mote, the share of what it sends that is to reach a gateway."""
    found = dict.fromkeys(network.tree.roots, 1.0)
    for mote in reversed(network.tree.leaves_first):
        parent = network.tree.parent[mote]
        ratio = network.topology.ratio
        found[mote] = found[parent] * hand_over(ratio(mote, parent), ratio(parent, mote), network.attempts).delivered
    return {mote: found[mote] for mote in network.tree.parent}


def _link(network, each):
    ratio = network.topology.ratio
    return hand_over(ratio(each.sender, each.receiver), ratio(each.receiver, each.sender), network.attempts)


def _use(hardware: Hardware, duty: Duty, send_ms: float, busy_ms: float, epoch_ms: float) -> Use:
    radio, processor = hardware.radio, hardware.processor
    awake_ms = duty.starts * radio.startup_ms + duty.listen_ms + busy_ms
    computing_ms = duty.instructions * processor.instruction_us / 1_000
    return Use(
        sensing=hardware.joules(1.0, duty.sampled_ma_ms),
        computing=hardware.joules(processor.active_ma, computing_ms),
        sending=hardware.joules(radio.send_ma + processor.active_ma, send_ms),
        listening=hardware.joules(radio.listen_ma + processor.active_ma, awake_ms - send_ms),
        sleeping=hardware.joules(radio.sleep_ma, epoch_ms - awake_ms)
        + hardware.joules(processor.sleep_ma, epoch_ms - awake_ms - computing_ms),
    )
