"""Motes, the air between them and the world they measure, in virtual time."""
