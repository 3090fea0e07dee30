"""Tags and notes: what people write on runs and sweeps, to find them again and to know why they were made."""
