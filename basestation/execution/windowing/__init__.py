"""Windowing: assigns tuples to windows of time, of rows and of for-loops, and combines the windows of several inputs."""
