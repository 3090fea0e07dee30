"""Policies of Optuna's pruners (its successive halving is ASHA's stopping form), driven by ask, report and tell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import optuna

from forecurve.science.simulator import State, Step

optuna.logging.set_verbosity(optuna.logging.ERROR)


class Pruned:
    """Arms under an Optuna pruner; the highest last evaluation of those left is chosen.

    Args:
        pruner: a fresh one; its steps are evaluations.
        together: all arms side by side, one evaluation each in turn (a worker for every arm, in random order), ended
            as soon as one is left; else one arm after the other, as Optuna's median rule needs (it compares with
            finished trials only).
        seed: of the order.
    """

    def __init__(self, pruner: optuna.pruners.BasePruner, *, together: bool, seed: int):
        self.study = optuna.create_study(direction="maximize", pruner=pruner)
        self.together = together
        self.rng = np.random.default_rng(seed)
        self.alive: list[int] = []
        self.level = False
        self.steps: Iterator[Step] | None = None

    def next(self, state: State) -> Step | None:
        """The next evaluation of an arm that is not pruned."""
        if self.steps is None:
            self.steps = self._together(state) if self.together else self._one_by_one(state)
        return next(self.steps, None)

    def choice(self, state: State) -> int | None:
        """Whenever the arms that are left stand level."""
        return max(self.alive, key=state.last) if self.level and self.alive else None

    def settled(self, state: State) -> bool:
        """When one arm is left."""
        return self.together and len(self.alive) == 1

    def _together(self, state: State) -> Iterator[Step]:
        trials = [self.study.ask() for _ in range(state.arms)]
        order = [int(arm) for arm in self.rng.permutation(state.arms)]
        self.alive = list(order)
        while len(self.alive) > 1 and not all(state.finished(arm) for arm in self.alive):
            for arm in [arm for arm in order if arm in self.alive and not state.finished(arm)]:
                yield self._one_more(state, arm)
                self.level = False
                if self._pruned(state, arm, trials[arm]):
                    self.alive.remove(arm)
            self.level = True

    def _one_by_one(self, state: State) -> Iterator[Step]:
        order = [int(arm) for arm in self.rng.permutation(state.arms)]
        for arm in order:
            trial = self.study.ask()
            pruned = False
            while not pruned and not state.finished(arm):
                yield self._one_more(state, arm)
                pruned = self._pruned(state, arm, trial)
            if not pruned:
                self.alive.append(arm)
        self.level = True

    def _one_more(self, state: State, arm: int) -> Step:
        return Step(arm, state.compute_of(arm, int(state.points[arm]) + 1))

    def _pruned(self, state: State, arm: int, trial: optuna.Trial) -> bool:
        """Report the last evaluation; whether the pruner ends the arm."""
        first = int(state.sweep.tracks[arm].curve.compute[0] == 0)
        trial.report(state.last(arm), step=int(state.points[arm]) - first)
        if state.finished(arm):
            self.study.tell(trial, state.last(arm))
            return False
        if not trial.should_prune():
            return False
        self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        return True
