"""Controller: turns the set of running queries into what each mote should sample, compute and send."""
