"""Station: the running service that takes frames in, answers queries and keeps the motes on their programs."""
