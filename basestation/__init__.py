"""From the text of a query to its answers: language, algebra, planner, engine, results, archive and interfaces."""
