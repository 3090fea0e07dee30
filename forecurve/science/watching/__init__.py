"""A live run against its frozen forecast."""
