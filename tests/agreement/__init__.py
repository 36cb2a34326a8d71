"""Engine and oracle on the same cases: the whole history of what they say, compared."""
