"""The vector engine: simulates all motes over many rounds as arrays, with the trace of an event-by-event simulation."""
