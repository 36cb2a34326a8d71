"""Where recorded data comes from: CSV, Parquet and values in Python become the same batches, or an error that names the place."""
