"""From rewards to a gradient: what ScaleRL and its rivals compute, without a model."""
