"""A generator's actor, called as Ray calls it: by several threads."""

from __future__ import annotations

import threading

from trainer.workers.actors import GeneratorActor


def test_the_first_evaluation_of_a_newcomer_waits_for_its_self_check(recipe, base):
    actor, found = GeneratorActor(recipe(), base, "cpu", 1), []
    evaluation = threading.Thread(target=lambda: found.append(actor.evaluate(0, base)), daemon=True)
    check = actor._generator.check

    def check_with_company():
        evaluation.start()
        evaluation.join(timeout=0.3)
        assert evaluation.is_alive()
        check()

    actor._generator.check = check_with_company
    actor.ready()
    evaluation.join(timeout=60)
    assert found[0].details["self_check_logprob_diff"] < 1e-4


def test_an_evaluation_that_comes_first_checks_by_itself(recipe, base):
    actor = GeneratorActor(recipe(), base, "cpu", 1)
    assert actor.evaluate(0, base).details["self_check_logprob_diff"] < 1e-4
    actor.ready()
    assert "self_check_logprob_diff" not in actor.evaluate(1, base).details
