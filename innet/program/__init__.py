"""Mote programs: their instructions, how they are made from operators, and what they mean."""
