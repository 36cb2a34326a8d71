"""Testbed: a station joined to simulated motes in virtual time. The one room that imports the simulator."""
