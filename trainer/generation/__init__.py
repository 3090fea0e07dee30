"""The generator: samples for training, samples for judging, and whether engine and learner agree."""
