"""What consumers get: the history of updates, and the current answer as its sum."""
