"""A refit goes on from what the watch said before, and says the same as one that judges everything anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

import worker.refit
from forecurve.science import Curve, Watch, fit, freeze, watch
from server.settings import Settings
from tests.worker.refitting import COLLAPSING, COMPUTE, HEALTHY, START, Sessions, ingest, start_run
from worker.assessment import Assessment, FreezeRule, Watched, assess
from worker.refit import refit
from worker.verdicts import Verdicts


def _said(reward: float) -> Watch:
    frozen = freeze(fit(Curve(COMPUTE[1:21], HEALTHY[1:21])), horizon=30)
    return watch(frozen, COMPUTE[21:23], [HEALTHY[21], reward])


def test_the_runs_that_were_judged_last_are_kept() -> None:
    kept, (one, two, three) = Verdicts(most=2), [_said(reward) for reward in (0.5, 0.6, 0.7)]
    kept.keep("a", one)
    kept.keep("b", two)
    kept.keep("a", three)
    assert kept.last("a") is three
    kept.keep("c", one)
    assert (kept.last("a"), kept.last("b"), kept.last("c")) == (three, None, one)


@pytest.mark.parametrize("elsewhere", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_refits_go_on_from_each_other_and_find_what_one_anew_finds(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """`elsewhere`: every other refit is another worker's, which knows less of the run, or nothing."""
    stops, known, pairs = [18, 20, 24, 26, 28, 30, 34, 44, 51], [], []
    here, there = Verdicts(), Verdicts()

    def beside_one_anew(subject: Watched, rule: FreezeRule) -> Assessment | None:
        known.append(0 if subject.earlier is None else len(subject.earlier.compute))
        found, anew = assess(subject, rule), assess(replace(subject, earlier=None), rule)
        pairs.append((found, anew))
        return found

    monkeypatch.setattr(worker.refit, "assess", beside_one_anew)
    run_id = start_run(sessions, COLLAPSING, points=0)
    for number, last in enumerate(stops):
        monkeypatch.setattr(worker.refit, "_verdicts", there if elsewhere and number % 2 else here)
        now = START.replace(minute=number)
        ingest(sessions, run_id, COLLAPSING, [0, *stops][number], last, now)
        refit(sessions, settings, run_id, now)
    assert known == ([0, 0, 0, 1, 5, 7, 9, 11, 15] if elsewhere else [0, 0, 1, 5, 7, 9, 11, 15, 25])
    assert [found.alarm for found, _ in pairs] == [anew.alarm for _, anew in pairs]
    verdicts = [(found.verdict, anew.verdict) for found, anew in pairs]
    assert [one and one.to_dict() for one, _ in verdicts] == [other and other.to_dict() for _, other in verdicts]
    assert pairs[-1][0].alarm is not None
