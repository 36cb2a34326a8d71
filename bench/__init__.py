"""Measurements. `make bench` runs them, docs/benchmarks.md tells what they found and under which conditions."""
