"""The testbed: a station and simulated motes in one process and in virtual time. The one room that imports the simulator."""
