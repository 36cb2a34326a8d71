"""The REST interface, the only package that imports the web framework. `api.py` puts the routes together."""
