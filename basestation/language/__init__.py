"""SNEEql as text: source, tokens, syntax, and the diagnostics that point into it."""
