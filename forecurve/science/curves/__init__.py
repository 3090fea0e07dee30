"""Curves: evaluations against compute, how they scatter, and which runs are seeds of one arm."""
