"""Recorded data: CSV files, Parquet files and Python values become the same batches, or an error with its place."""
