"""Progress: how far time is complete, and how many sites each window covers."""
