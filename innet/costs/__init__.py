"""Costs: hardware tables as data, and the energy and traffic that a plan is predicted to use."""
