"""The logical algebra: what a query means, as frozen nodes over typed expressions. It never knows how it is run."""
