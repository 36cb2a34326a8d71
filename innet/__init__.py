"""The network: routing, placement, mote programs, partial aggregates and costs."""
