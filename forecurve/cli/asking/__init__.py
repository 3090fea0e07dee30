"""The service at the other end: which one, its names, its answers, and waiting for it."""
