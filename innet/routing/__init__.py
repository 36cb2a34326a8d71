"""Routing: the reported links between motes, and the tree along which frames travel to the gateways."""
