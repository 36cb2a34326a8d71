"""Mote programs: the instruction set, the compiler, the two interpreters, and the tables of partials."""
