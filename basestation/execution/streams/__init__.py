"""Streams: select, project, merge and convert streams of tuples; coverage; the index of predicates."""
