"""History by Spark. The only package that imports pyspark, and it does so inside functions: a gateway without Java or
without the extra `history` still does everything else."""
