"""Client: the command line as a user of the REST interface of a station."""
