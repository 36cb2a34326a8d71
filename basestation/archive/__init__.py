"""The archive of all readings, in Parquet files that other tools can read."""
