"""Turns at the engine: one at a time, evaluations before waves that wait."""

from __future__ import annotations

import threading
import time

import pytest

from trainer.workers.turns import Turns


class Doors:
    """Threads that want in, each of which notes that it is in and stays until it is let go."""

    def __init__(self):
        self.turns, self.entered, self.leave = Turns(), [], threading.Semaphore(0)
        self.inside = 0
        self._came = threading.Condition()

    def ask(self, kind, name):
        thread = threading.Thread(target=self._go, args=(getattr(self.turns, kind), name), daemon=True)
        thread.start()
        while thread.is_alive() and not self._waits_or_is_in(name):
            time.sleep(0.001)
        return thread

    def _go(self, turn, name):
        with turn():
            self.inside += 1
            assert self.inside == 1
            with self._came:
                self.entered.append(name)
                self._came.notify_all()
            self.leave.acquire()
            self.inside -= 1

    def _waits_or_is_in(self, name):
        return name in self.entered or len(self.turns._changed._waiters) + len(self.entered) >= self.asked

    def run(self, *asks):
        threads = []
        for number, (kind, name) in enumerate(asks, start=1):
            self.asked = number
            threads.append(self.ask(kind, name))
        for _ in threads:
            self.leave.release()
        for thread in threads:
            thread.join(timeout=20)
            assert not thread.is_alive()
        return self.entered


def test_an_evaluation_goes_before_the_wave_that_waits():
    asked = [("wave", "first wave"), ("wave", "second wave"), ("evaluation", "evaluation")]
    assert Doors().run(*asked) == ["first wave", "evaluation", "second wave"]


def test_a_wave_waits_for_every_evaluation_that_is_there():
    asked = [("evaluation", "a"), ("wave", "wave"), ("evaluation", "b")]
    assert Doors().run(*asked) == ["a", "b", "wave"]


def test_a_wave_does_not_overtake_an_evaluation_that_was_sent_before_it_and_wakes_late():
    turns, done = Turns(), []

    def wave():
        with turns.wave(after=1):
            done.append("wave")

    thread = threading.Thread(target=wave, daemon=True)
    thread.start()
    thread.join(timeout=0.2)
    with turns.evaluation():
        done.append("evaluation")
    thread.join(timeout=20)
    assert done == ["evaluation", "wave"]


def test_an_evaluation_does_not_overtake_the_wave_that_an_idle_generator_was_sent_and_lets_none_wait_but_that():
    turns, done = Turns(), []

    def evaluation():
        with turns.evaluation(after=1):
            done.append("evaluation")

    thread = threading.Thread(target=evaluation, daemon=True)
    thread.start()
    thread.join(timeout=0.2)
    with turns.wave():
        done.append("first wave")
    with turns.wave():
        done.append("second wave")
    thread.join(timeout=20)
    assert done == ["first wave", "evaluation", "second wave"]


def test_a_turn_that_fails_lets_the_next_one_in():
    turns = Turns()
    with pytest.raises(ZeroDivisionError), turns.evaluation():
        raise ZeroDivisionError
    with turns.wave():
        pass
