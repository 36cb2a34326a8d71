"""Where each operator runs, and when each mote wakes for it."""
