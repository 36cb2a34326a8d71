"""From syntax to a plan: names and types are settled (bind), then the plan is made better without changing its answer (rewrite)."""
