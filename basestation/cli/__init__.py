"""The base station's verbs: one module each, found by the command through entry points."""
