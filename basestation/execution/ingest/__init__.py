"""Taking: what reaches the base station of an extent or a fold is taken in: admitted, ordered, corrected, counted."""
