"""What a training has spent, by a clock that the test sets."""

from __future__ import annotations

from types import SimpleNamespace

from forecurve.client.once import Once
from forecurve.client.transformers.spending import Spending


class Watch:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def spending(watch: Watch, unit: str = "GPU-seconds", devices: float | None = None) -> Spending:
    return Spending(unit, None, devices, once=Once(), clock=watch)


def state(step: int = 0, kept: dict[str, object] | None = None) -> SimpleNamespace:
    return SimpleNamespace(global_step=step, stateful_callbacks=kept or {})


FOUR_OF_TWO = SimpleNamespace(world_size=4, n_gpu=2)


def test_training_counts_times_devices_and_evaluations_do_not() -> None:
    watch, now = Watch(), state()
    spent = spending(watch)
    spent.start(FOUR_OF_TWO, now)
    assert spent.at(now) == 0
    watch.now += 3
    spent.train(now)
    watch.now += 100
    spent.evaluate()
    watch.now += 2
    spent.train(now)
    assert spent.at(now) == (3 + 2) * 4 * 2


def test_it_counts_on_from_the_checkpoint_also_with_other_devices() -> None:
    watch, now = Watch(), state()
    first = spending(watch, "GPU-hours", devices=7200)
    first.start(FOUR_OF_TWO, now)
    watch.now += 1
    first.train(now)
    assert first.at(now) == 2

    restored = state(step=10, kept=now.stateful_callbacks)
    again = spending(watch, "GPU-hours", devices=3600)
    watch.now += 500
    again.start(FOUR_OF_TWO, restored)
    watch.now += 1
    again.train(restored)
    assert again.at(restored) == 3


def test_a_checkpoint_without_the_callback_counts_from_zero() -> None:
    watch, now = Watch(), state(step=10)
    spent = spending(watch)
    spent.start(FOUR_OF_TWO, now)
    assert spent.at(now) == 0


def test_steps_are_those_of_the_trainer() -> None:
    spent = spending(Watch(), "steps")
    spent.start(FOUR_OF_TWO, state())
    assert spent.at(state(step=12)) == 12
