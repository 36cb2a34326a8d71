"""Execution: the engine of standing queries. It keeps windows and joins over batches of tuples, and revises their answers."""
