"""Random numbers: no use sees those of another."""

from __future__ import annotations

import sys
from collections import defaultdict

import numpy as np
import pytest

from trainer.engines.sampling import noise_block
from trainer.engines.torch_engine import TorchEngine
from trainer.launch import Launch, train


def test_the_noise_of_a_response_says_nothing_about_its_prompt(recipe, tmp_path, monkeypatch):
    asked = []
    submit = TorchEngine.submit

    def remember(self, requests):
        asked.extend(request for request in requests if request.prompt.index >= 0)
        submit(self, requests)

    monkeypatch.setattr(TorchEngine, "submit", remember)
    many = {"batch.prompts_per_step": 200, "batch.generations_per_prompt": 2, "budget.compute": 1}
    train(recipe(many), Launch(tmp_path, ray=False, progress=False))
    assert len(asked) >= 200
    noise = np.array([noise_block(request, 20, 0)[0, 0] for request in asked])
    moves = np.array([request.prompt.difficulty for request in asked])  # 3 to 12, the first draw of a prompt
    assert np.mean(moves == 3 + np.floor(10 * noise)) < 0.25
    assert abs(np.corrcoef(moves, noise)[0, 1]) < 0.25


@pytest.mark.parametrize(
    "changes",
    [
        {"length_control.kind": "interruption", "generation.max_tokens": 24},
        {"task.pool": 8, "curriculum": "easy-first"},
    ],
)
def test_every_place_that_draws_has_a_first_seed_word_of_its_own(recipe, tmp_path, monkeypatch, changes):
    drawn = np.random.default_rng
    places = defaultdict(set)

    def remember(seed):
        caller = sys._getframe(1)
        if "trainer" in caller.f_code.co_filename:
            # held-out and training noise are drawn at one place: what tells them apart is their word
            places[int(seed[0])].add((caller.f_code.co_filename, caller.f_lineno))
        return drawn(seed)

    monkeypatch.setattr(np.random, "default_rng", remember)
    train(recipe({"budget.compute": 1} | changes), Launch(tmp_path, ray=False, progress=False))
    assert len(places) >= 5
    assert {word: found for word, found in places.items() if len(found) > 1} == {}
