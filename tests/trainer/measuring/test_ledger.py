"""Compute: what is on the x-axis, what is not, and in which unit."""

from __future__ import annotations

import pytest

from trainer.measuring.ledger import Ledger
from trainer.types import Cost


def test_cpu_compute_is_the_working_time_of_generator_and_learner_without_evaluation_and_waste():
    ledger = Ledger("CPU-seconds")
    for role, cpu in (("generator", 3.0), ("learner", 2.0), ("evaluation", 100.0), ("waste", 50.0)):
        ledger.charge(role, Cost(cpu_seconds=cpu, wall_seconds=9 * cpu))
    ledger.close_step(1000.0, tokens=70)
    assert ledger.compute == pytest.approx(5.0)
    assert ledger.metrics() == {
        "ledger/generator": 3.0,
        "ledger/learner": 2.0,
        "ledger/evaluation": 100.0,
        "ledger/waste": 50.0,
        "ledger/compute": 5.0,
        "ledger/tokens": 70.0,
    }


def test_cpu_hours_are_cpu_seconds_over_3600():
    ledger = Ledger("CPU-hours")
    ledger.charge("learner", Cost(7200.0, 0.0))
    assert ledger.compute == pytest.approx(2.0)


def test_gpu_compute_is_reserved_wall_time_with_waiting_but_without_evaluation():
    ledger = Ledger("GPU-seconds", role_devices=2.0, devices=4.0)
    ledger.charge("generator", Cost(0.1, 3.0))
    ledger.charge("learner", Cost(0.1, 5.0))
    ledger.charge("evaluation", Cost(0.1, 1.0))
    ledger.close_step(10.0, tokens=0)
    assert ledger.compute == pytest.approx(10 * 4 - 1 * 2)
    assert ledger.metrics()["ledger/idle"] == pytest.approx(40 - 2 * (3 + 5 + 1))


def test_compute_never_falls_when_an_evaluation_comes_back_and_in_the_end_has_all_of_it_off():
    ledger = Ledger("GPU-seconds", role_devices=1.0, devices=3.0)
    ledger.close_step(10.0, tokens=0)
    ledger.charge("evaluation", Cost(0.1, 50.0))  # was under way beside the steps, on one of two generators
    assert ledger.compute == pytest.approx(30)
    reached = []
    for _ in range(3):
        ledger.close_step(10.0, tokens=0)
        reached.append(ledger.compute)
    assert reached == pytest.approx([30, 40, 70])
    assert ledger.compute == pytest.approx(4 * 30 - 50)


def test_an_evaluation_after_the_last_step_takes_nothing_off_compute_nor_off_what_was_idle():
    ledger = Ledger("GPU-seconds", role_devices=1.0, devices=2.0)
    ledger.charge("learner", Cost(0.1, 4.0))
    ledger.close_step(10.0, tokens=0)
    ledger.charge("evaluation", Cost(0.1, 15.0))
    assert ledger.compute == pytest.approx(20)
    assert ledger.metrics()["ledger/idle"] == pytest.approx(16)
    other = Ledger("GPU-seconds", role_devices=1.0, devices=2.0)
    other.load_state(ledger.state())
    assert other.metrics() == ledger.metrics()


def test_the_unit_steps_counts_steps():
    ledger = Ledger("steps")
    ledger.charge("learner", Cost(5.0, 5.0))
    assert ledger.compute == 0
    ledger.close_step(1.0, tokens=0)
    assert ledger.compute == 1


def test_a_ledger_goes_on_from_its_state():
    ledger = Ledger("CPU-seconds")
    ledger.charge("generator", Cost(1.5, 2.0))
    ledger.close_step(2.0, tokens=30)
    ledger.close_step(2.0, tokens=12)
    assert ledger.tokens == 42
    other = Ledger("CPU-seconds")
    other.load_state(ledger.state())
    assert (other.compute, other.metrics()) == (ledger.compute, ledger.metrics())
