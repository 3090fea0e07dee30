"""Which runs of a sweep to train how far, and which is best."""
