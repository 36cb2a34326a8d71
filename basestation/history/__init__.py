"""History: SNEEql over the archive in Spark. A plan becomes one statement of Spark SQL, with Spark's own operators only."""
