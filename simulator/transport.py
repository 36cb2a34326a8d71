"""Connects a simulated network to a base station through a gateway transport, as a real network is."""

from collections.abc import Callable

from gateway.transports import Transport
from gateway.transports.memory import MemoryTransport, connected_pair
from simulator.network import MoteNetwork


def connect(make_network: Callable[[Transport], MoteNetwork]) -> tuple[MemoryTransport, MoteNetwork]:
    """The base station's end of a memory link, which the caller opens, and the started network at the other end."""
    ours, theirs = connected_pair()
    theirs.open()
    network = make_network(theirs)
    theirs.on_data = network.from_wire
    network.start()
    return ours, network
