"""How runs leave their sigmoid: misfits that are found, bends, and the drift and slower end that are allowed for."""
