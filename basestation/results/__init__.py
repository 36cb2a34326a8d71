"""Results: the numbered history of a query's updates, the current answer as their sum, and both as JSON."""
