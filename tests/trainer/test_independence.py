"""What looks at a run has no say in it: how often it is judged, kept and sampled changes nothing that it learns."""

from __future__ import annotations

import pytest

from trainer.launch import train

from .test_runs import launch, untimed

OFTEN = {
    "evaluation.every_steps": 1,
    "evaluation.samples": 3,
    "checkpoint.every_steps": 1,
    "log_rollouts_every": 1,
}
RARELY = {"evaluation.every_steps": 100, "checkpoint.every_steps": 100}


@pytest.mark.parametrize(
    "scheme",
    [{}, {"algorithm.queue_batches": 4}, {"algorithm.off_policy": "ppo", "algorithm.max_staleness": 3}],
    ids=["pipeline", "a longer queue", "ppo"],
)
def test_a_run_that_is_looked_at_more_often_learns_the_same_bit_for_bit(recipe, tmp_path, scheme):
    learned = []
    for name, look in (("often", OFTEN), ("rarely", RARELY)):
        train(recipe({"budget.compute": 6} | scheme | look), launch(tmp_path / name))
        learned.append([call for call in untimed(tmp_path / name) if "train/reward" in call[1]])
    assert learned[0] == learned[1]
    assert len(learned[0]) == 6
