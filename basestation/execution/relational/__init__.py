"""Contents: what is done with what windows hold: selected, projected, aggregated, compared."""
