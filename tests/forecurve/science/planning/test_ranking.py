"""Which arm of a sweep is best: by the mean of its seeds, with what few seeds leave open."""

from __future__ import annotations

import math

import numpy as np
import pytest

from forecurve.science import Curve, PlanError, SeedSpread, fit, predict_ending, rank
from forecurve.science.planning.ranking import ranking_sentence

COMPUTE = np.linspace(0.0, 100.0, 41)
SURE = SeedSpread(1e-4)  # seeds that hardly differ


def curve(ceiling: float, seed: int, upto: int = 41) -> Curve:
    noise = np.random.default_rng([seed, round(1000 * ceiling)]).normal(0.0, 0.004, len(COMPUTE))
    reward = 0.2 + (ceiling - 0.2) / (1 + (15.0 / np.maximum(COMPUTE, 1e-9)) ** 1.8) + noise
    return Curve(COMPUTE[:upto], reward[:upto], prompts=1000, samples=4)


def test_with_many_draws_p_best_is_that_of_normals() -> None:
    """Two arms whose curves are as good as known: P(best) is Phi(d / sqrt(tau^2 / n_1 + tau^2 / n_2))."""
    ends = 0.60, 0.61
    arms = {"low": [curve(ends[0], s) for s in range(3)], "high": [curve(ends[1], s) for s in range(2)]}
    tau = 0.02
    found = {one.arm: one for one in rank(arms, 100.0, seed_sd=SeedSpread(tau), siblings=False)}
    means = [np.mean([fit(one).predict(100.0).median[0] for one in arms[arm]]) for arm in ("low", "high")]
    z = (means[1] - means[0]) / (tau * math.sqrt(1 / 3 + 1 / 2))
    expected = 0.5 * math.erfc(-z / math.sqrt(2))
    assert found["high"].p_best == pytest.approx(expected, abs=0.03)
    assert found["high"].p_best + found["low"].p_best == pytest.approx(1.0)
    assert (found["high"].runs, found["low"].runs) == (2, 3)
    assert found["low"].end.width == pytest.approx(2 * 1.645 * tau / math.sqrt(3), rel=0.15)


def test_seeds_that_differ_make_a_clear_lead_an_open_one() -> None:
    arms = {"a": [curve(0.60, 0)], "b": [curve(0.63, 0)], "c": [curve(0.40, 0)]}
    sure, open_ = rank(arms, 100.0, seed_sd=SURE), rank(arms, 100.0, seed_sd=SeedSpread(0.05))
    assert [one.arm for one in sure] == ["b", "a", "c"]
    assert sure[0].p_best > 0.95
    assert [one.dominated for one in sure] == [False, True, True]
    assert 0.5 < open_[0].p_best < 0.85
    assert [one.dominated for one in open_] == [False, False, True]
    assert rank(arms, 100.0, seed_sd=0.05) == open_  # a number is an sd that is known
    rough = rank(arms, 100.0, seed_sd=SeedSpread(0.05, dof=4.0))
    assert rough[0].end.width > open_[0].end.width  # an sd that is not known has heavier tails


def test_an_arm_that_leads_early_need_not_be_the_best() -> None:
    """One rises at once and bends, the other rises late and further."""
    fast = 0.2 + 0.3 / (1 + (3.0 / np.maximum(COMPUTE, 1e-9)) ** 2)
    slow = 0.2 + 0.6 / (1 + (30.0 / np.maximum(COMPUTE, 1e-9)) ** 2)
    assert fast[8] > slow[8] + 0.1
    both = {"fast": fast, "slow": slow}
    arms = {name: [Curve(COMPUTE[:17], reward[:17], prompts=1000, samples=16)] for name, reward in both.items()}
    first, second = rank(arms, 100.0)
    assert (first.arm, second.dominated) == ("slow", True)


def test_copies_of_a_run_count_once_and_runs_of_one_name_are_no_matter() -> None:
    same = curve(0.6, 0)
    (one,) = rank({"a": [same, same, curve(0.6, 1)]}, 100.0)
    assert (one.runs, one.p_best, one.dominated) == (2, 1.0, False)
    assert one.to_dict()["end"] == {"median": one.end.median, "lower": one.end.lower, "upper": one.end.upper}


def test_an_arm_ends_within_the_range_however_its_seeds_may_differ() -> None:
    top = rank({"a": [curve(0.99, 0)], "b": [curve(0.6, 1)]}, 100.0, seed_sd=SeedSpread(0.1))[0]
    assert top.end.median < top.end.upper <= 1.0


def test_a_seed_that_fell_counts_for_its_arm_and_is_named() -> None:
    whole = curve(0.6, 0)
    fell = Curve(whole.compute, np.where(whole.compute > 60, 0.2, whole.reward), name="fell")
    ranks = rank({"steady": [curve(0.55, 1), curve(0.55, 2)], "risky": [whole, fell]}, 100.0, seed_sd=SURE)
    assert [(one.arm, one.runs, one.fallen) for one in ranks] == [("steady", 2, 0), ("risky", 2, 1)]
    assert ranking_sentence(ranks, 100.0, "GPU-hours").endswith(" Runs that fell count: 1 of 2 of risky.")


@pytest.mark.parametrize("upto", [41, 49])
def test_a_finished_run_that_no_sigmoid_describes_ends_where_it_stood(upto: int) -> None:
    """It jumped to a second level at half of the way, and may have gone on beyond the horizon."""
    x = np.linspace(0.0, 200.0, 81)[:upto]
    steps = np.where(x < 50, 0.2 + 0.2 / (1 + (10 / np.maximum(x, 1e-9)) ** 1.5), 0.5)
    broken = Curve(x, steps + np.random.default_rng(0).normal(0, 0.004, upto), prompts=1000, samples=4)
    assert fit(broken).withheld
    best, other = rank({"broken": broken, "good": curve(0.8, 0)}, 100.0, seed_sd=SURE)
    assert (best.arm, other.dominated) == ("good", True)
    assert other.end.median == pytest.approx(0.5, abs=0.01)
    assert other.end.width < 0.03


def test_a_run_that_no_sigmoid_describes_is_ranked_by_its_own_forecast() -> None:
    """At half of the way it jumped above where the others end."""
    early = curve(0.45, 0, 21)
    jumped = Curve(early.compute, early.reward + 0.3 * (early.compute > 30), prompts=1000, samples=4)
    assert fit(jumped).withheld
    others = {name: [curve(ceiling, 0, 21)] for name, ceiling in (("a", 0.5), ("b", 0.6))}
    best, second = rank({"jumped": jumped, **others}, 100.0, seed_sd=SURE)[:2]
    assert (best.arm, second.arm) == ("jumped", "b")
    assert best.end.to_dict() == pytest.approx(predict_ending(fit(jumped), 100.0).to_dict(), abs=5e-3)


def test_the_sentence_names_the_likely_best_and_who_is_out() -> None:
    arms = {"a": [curve(0.60, 0)], "b": [curve(0.62, 0)], "c": [curve(0.40, 0)]}
    clear = rank(arms, 100.0, seed_sd=SURE)
    assert ranking_sentence(clear, 100.0, "GPU-hours") == "Best at 100 GPU-hours: b (over 99 % sure). Dominated: a, c."
    said = ranking_sentence(rank(arms, 100.0, seed_sd=SeedSpread(0.03)), 100.0, "GPU-hours")
    assert said.startswith("Likeliest best at 100 GPU-hours: b (")
    assert ", a (" in said
    assert said.endswith("%). Dominated: c.")
    even = rank({name: [curve(0.6, seed)] for seed, name in enumerate("abcde")}, 100.0, seed_sd=SeedSpread(0.05))
    said = ranking_sentence(even, 100.0, "GPU-hours")
    assert said.startswith("None stands out as the best at 100 GPU-hours: ")
    assert said.count("%") == 3  # of five, who are all as likely
    assert ranking_sentence(rank({"a": [curve(0.6, 0)]}, 100.0), 100.0, "GPU-hours") == ""
    assert ranking_sentence(clear, 61.25, "GPU-hours", given=True).startswith("Best at 61.25 GPU-hours: b (")
    many = rank({"best": [curve(0.6, 0)], **{f"low {at}": [curve(0.4, at)] for at in range(8)}}, 100.0, seed_sd=SURE)
    assert ranking_sentence(many, 100.0, "GPU-hours").endswith(" and 3 more.")  # of the eight who are out


def test_what_cannot_be_ranked_is_refused_by_name() -> None:
    with pytest.raises(PlanError, match="at least one run is needed"):
        rank({}, 100.0)
    with pytest.raises(PlanError, match=r"arms\['b'\]"):
        rank({"a": [curve(0.6, 0)], "b": []}, 100.0)
    with pytest.raises(PlanError, match="horizon"):
        rank({"a": [curve(0.6, 0)]}, math.nan)
    other = Curve(COMPUTE, curve(0.6, 0).reward, unit="steps")
    with pytest.raises(PlanError, match="unit"):
        rank({"a": [curve(0.6, 0)], "b": [other]}, 100.0)


def test_the_order_in_which_arms_come_has_no_say() -> None:
    arms = {"b": [curve(0.60, 0)], "a": [curve(0.61, 0)], "c": [curve(0.59, 1)]}
    assert rank(arms, 100.0) == rank(dict(reversed(arms.items())), 100.0)
