"""The posterior of a sigmoid: prior, noise and evaluations, integrated on a lattice of (ln B, ln C_mid)."""
