"""Placement: which operators run on which motes, what they send, and the agenda of each mote."""
