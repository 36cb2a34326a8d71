"""Who hears whom, and the tree along which data rises."""
