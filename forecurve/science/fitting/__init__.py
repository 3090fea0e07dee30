"""The fit of a curve and what it says: bands, the expected end, the compute to a target, when it can be decided."""
