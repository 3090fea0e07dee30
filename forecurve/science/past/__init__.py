"""What past runs tell of a new one: the prior they make, and what forecasts of them got wrong."""
