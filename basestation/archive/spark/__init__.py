"""Historical queries with Spark. The only package that imports pyspark, inside functions: a gateway without Java or
without the extra `history` runs everything else."""
