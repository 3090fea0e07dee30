"""The trainer: asynchronous RL of a policy against a verifiable reward, run by a recipe.

It imports nothing of ours but `forecurve`, and is reached only by launching `python -m trainer`.

The rooms, from the ground up; each knows only those before it (`make lint` holds it to that):

    verifiers     right or wrong: mathematics, exact answers, code in a sandbox
    tasks         prompts and their verifier
    models        policies: a tiny one and any Hugging Face causal LM
    engines       what samples tokens: torch or vLLM
    base_weights  the weights that a run begins with
    algorithm     from rewards to a gradient: advantages, losses, token weights
    curriculum    which prompts come, and which groups make the next batch
    measuring     the compute ledger, times, the metrics of a step
    records       directory, checkpoints, reports, and going on from them
    learner       the optimiser's side
    generation    the generator's side, evaluations too
    workers       both as threads here, or as Ray actors

Above them `controller` knows where the run stands, and `launch` begins and ends it.
"""
