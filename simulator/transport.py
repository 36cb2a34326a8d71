"""Shows simulated motes as a gateway transport: the base station cannot tell them from real ones."""

from collections.abc import Callable

from gateway.transports import Transport
from gateway.transports.memory import MemoryTransport, connected_pair
from simulator.network import MoteNetwork


def connect(make_network: Callable[[Transport], MoteNetwork]) -> tuple[MemoryTransport, MoteNetwork]:
    """The base station's end of a memory link (still to be opened), and the started network at the other end."""
    ours, theirs = connected_pair()
    theirs.open()
    network = make_network(theirs)
    theirs.on_data = network.from_wire
    network.start()
    return ours, network
