"""Windows: how far time is complete, which windows there are, and what they hold."""
