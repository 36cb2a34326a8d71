"""Standing queries over batches: what is kept, what is answered, what is revised."""
