"""The verdicts, from the runs' posterior draws.

runs ──► ceilings ─────────► joint draws of (arm - control) ─┐
     └─► ln compute to one ► joint draws of ln(C_0 / C_arm) ─┴─► every claim's p ──► step-down ──► verdict an arm
         matched level                                                                  └─► seeds or compute needed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import errors
from ..arrays import FloatArray
from ..checks import as_float, check_positive, is_positive, short
from ..values import Estimate, estimate_of
from . import wording
from .comparison import ArmVerdict, Comparison, Direction, Multiplier, Verdict
from .matched import common_ceiling, matched_level, own_level
from .needs import Design, Effect, control_advice, seeds_to_decide
from .runs import Run, ceilings, log_computes, proven_ceilings, standard_error
from .seeds import Differences, SeedSpread, differences
from .step_down import adjusted, below, bounds, critical, either_way

DRAWS = 10_000
_YOUNG = 0.5  # of the compute of the least that is identified


@dataclass(frozen=True)
class Rules:
    """What counts as a difference and how sure one must be; see `compare`."""

    rope: float
    level: float
    ceiling_spread: SeedSpread
    compute_spread: SeedSpread

    def __post_init__(self) -> None:
        check_positive("rope", self.rope, errors.CompareError, "0.02 is the paper's margin")
        if not (is_positive(self.level) and 0.5 < self.level < 1):
            raise errors.CompareError(
                "level", short(self.level), "a number between 0.5 and 1 is needed", "0.95 is usual"
            )
        object.__setattr__(self, "rope", as_float(self.rope))
        object.__setattr__(self, "level", as_float(self.level))

    @property
    def alpha(self) -> float:
        """Probability left for a wrong claim."""
        return 1 - self.level


class _Speeds(NamedTuple):
    """ln(C_arm / C_control) to each pair's level, one column for each arm that has one.

    Attributes:
        measured: as the curves are.
        alike: as they would be, were the ceilings the same: what of it no ceiling explains. Near a ceiling the compute
            to a level says more of the ceiling than of the speed.
        levels: arm -> level, in the order of the columns.
    """

    measured: Differences
    alike: Differences
    levels: dict[str, float]


class _Claim(NamedTuple):
    """One claim of a difference: the probability that it is wrong, and what that would be were it wrong."""

    p: float
    reference: FloatArray


class _Arm(NamedTuple):
    name: str
    runs: list[Run]  # the usable ones
    left_out: tuple[tuple[str, str], ...]
    waiting: tuple[str, ...]  # usable ones that are too young to count

    @property
    def identified(self) -> bool:
        return all(run.identified for run in self.runs)


def judge(arms: Mapping[str, Sequence[Run]], control: str, rules: Rules, unit: str) -> Comparison:
    """The comparison without the paper's column.

    Args:
        arms: name -> its runs, the control among them.
        control: the arm the others are compared with.
        rules: region, level and spreads.
        unit: of compute.
    """
    every = [_arm(name, runs) for name, runs in arms.items()]
    base = next(arm for arm in every if arm.name == control)
    others = [arm for arm in every if arm.name != control]
    judged = [arm for arm in others if arm.runs and base.runs]
    groups = [arm.runs for arm in every]
    gaps = _gaps(base, judged, groups, rules)
    speeds = _speeds(base, judged, groups, rules)
    claims = _claims(base, judged, groups, gaps, speeds, rules)
    certainty, strictest = _family(claims, rules.alpha)
    facts = _Facts(base, rules, unit, gaps, speeds, certainty, strictest)
    column = {arm.name: at for at, arm in enumerate(judged)}
    verdicts = tuple(_verdict(facts, arm, column.get(arm.name)) for arm in others)
    replicates = sum(max(len(group) - 1, 0) for group in groups)
    return Comparison(
        control=control,
        control_seeds=len(base.runs),
        control_left_out=base.left_out,
        control_waiting=base.waiting,
        arms=tuple(wording.with_note(arm, len(base.runs), replicates, gaps.spread) for arm in verdicts),
        rope=rules.rope,
        level=rules.level,
        unit=unit,
        seed_spread=gaps.spread,
        compute_spread=speeds.measured.spread,
        replicates=replicates,
        control_advice=_control_advice(facts, judged, verdicts),
    )


def _arm(name: str, runs: Sequence[Run]) -> _Arm:
    """Its runs, without those that have no ceiling, and those that are far younger than others whose ceiling is known.

    Of runs of one age all are waited for: which of them are identified first is not by chance alone.
    """
    left_out = tuple((run.name, str(run.misfit)) for run in runs if not run.usable)
    usable = [run for run in runs if run.usable]
    least = min((run.now for run in usable if run.identified), default=0.0)
    young = [run for run in usable if not run.identified and run.now <= _YOUNG * least]
    waiting = tuple(run.name for run in young)
    return _Arm(name, [run for run in usable if run not in young], left_out, waiting)


def _gaps(base: _Arm, judged: Sequence[_Arm], groups: Sequence[Sequence[Run]], rules: Rules) -> Differences:
    """Draws of the ceilings' differences, one column an arm."""
    tops = {id(group): ceilings(group) for group in groups}  # the same lists as pairs and as groups: read once
    pairs = [(tops[id(base.runs)], tops[id(arm.runs)]) for arm in judged]
    return differences(pairs, list(tops.values()), rules.ceiling_spread, DRAWS)


def _speeds(base: _Arm, judged: Sequence[_Arm], groups: Sequence[Sequence[Run]], rules: Rules) -> _Speeds:
    """Draws of ln(C_arm / C_control) at each pair's level."""
    found = {arm.name: matched_level(base.runs, arm.runs) for arm in judged}
    levels = {name: level for name, level in found.items() if level is not None}
    pairs = [(base.runs, arm.runs, levels[arm.name]) for arm in judged if arm.name in levels]
    several = [(group, own_level(group)) for group in groups if len(group) > 1]
    replicated = [(group, level) for group, level in several if level is not None]

    def drawn(*, alike: bool) -> Differences:
        def of(runs: Sequence[Run], level: float, among: Sequence[Run]) -> list[FloatArray]:
            return log_computes(runs, level, common_ceiling(among) if alike else None)

        return differences(
            [(of(ours, level, [*ours, *theirs]), of(theirs, level, [*ours, *theirs])) for ours, theirs, level in pairs],
            [of(group, level, group) for group, level in replicated],
            rules.compute_spread,
            DRAWS,
        )

    return _Speeds(drawn(alike=False), drawn(alike=True), levels)


# --- claims of a difference ---

Key = tuple[str, str]  # arm, and "ceiling" or "efficiency"


def _claims(
    base: _Arm,
    judged: Sequence[_Arm],
    groups: Sequence[Sequence[Run]],
    gaps: Differences,
    speeds: _Speeds,
    rules: Rules,
) -> dict[Key, _Claim]:
    bounded = _bounded(base, judged, groups, rules)
    claims: dict[Key, _Claim] = {}
    for at, arm in enumerate(judged):
        sign = _tested_side(base, arm, gaps.draws[:, at])
        if sign is not None:
            draws = sign * (gaps if bounded is None else bounded).draws[:, at]
            claims[arm.name, "ceiling"] = _ceiling_claim(draws, rules.rope, chosen=base.identified and arm.identified)
    # Draws of ceilings and of speeds share their random numbers, which says nothing of how their errors go together: a
    # seed's effects on both are not known to. Apart they leave the least room for a claim.
    apart = np.random.default_rng(20251017).permutation(DRAWS)
    for at, name in enumerate(speeds.levels):
        measured, alike = speeds.measured.draws[:, at], speeds.alike.draws[:, at]
        side = below(alike[:, None])[:, 0]
        p = 2 * min(max(_share(measured <= 0), _share(alike <= 0)), max(_share(measured >= 0), _share(alike >= 0)))
        claims[name, "efficiency"] = _Claim(min(p, 1.0), 2 * np.minimum(side, 1 - side)[apart])
    return claims


def _ceiling_claim(draws: FloatArray, rope: float, *, chosen: bool) -> _Claim:
    """That the ceiling lies above the region; `chosen` where the draws told on which side to test."""
    if chosen:
        return _Claim(*either_way(draws, rope))
    return _Claim(_share(draws <= rope), below(draws[:, None])[:, 0])


def _bounded(base: _Arm, judged: Sequence[_Arm], groups: Sequence[Sequence[Run]], rules: Rules) -> Differences | None:
    """The differences with the level reached in place of every ceiling that is not identified; None when all are.

    A flat prior puts most of an unknown ceiling far above the data, so that alone it would "prove" a higher one. What
    an arm has reached is proof; where the control's ceiling is unknown, what the control has reached is.
    """
    if base.identified and all(arm.identified for arm in judged):
        return None
    control = proven_ceilings(base.runs)
    pairs = [(control, proven_ceilings(arm.runs)) for arm in judged]
    return differences(pairs, [ceilings(group) for group in groups], rules.ceiling_spread, DRAWS)


def _tested_side(base: _Arm, arm: _Arm, draws: FloatArray) -> float | None:
    """+1 to test that the ceiling went up, -1 down; None where neither could be proven yet."""
    if base.identified and arm.identified:
        return 1.0 if float(np.median(draws)) >= 0 else -1.0
    if base.identified:
        return 1.0
    return -1.0 if arm.identified else None


def _share(these: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    return float(these.mean())


def _family(claims: Mapping[Key, _Claim], alpha: float) -> tuple[dict[Key, float], float]:
    """Certainty of each claim beside all the others, and the p that the strongest one has to stay below."""
    if not claims:
        return {}, alpha
    reference = np.stack([claim.reference for claim in claims.values()], axis=1)
    p = adjusted(np.array([claim.p for claim in claims.values()]), reference)
    certainty = np.minimum(1 - p, 1 - 1 / DRAWS)  # more than this no finite number of draws supports
    return dict(zip(claims, certainty.tolist(), strict=True)), critical(reference, alpha)


# --- one arm ---


class _Facts(NamedTuple):
    base: _Arm
    rules: Rules
    unit: str
    gaps: Differences
    speeds: _Speeds
    certainty: dict[Key, float]
    strictest: float

    def design(self, arm: _Arm) -> Design:
        """What further seeds of this arm and of the control would meet."""
        rules, noise = self.rules, standard_error(ceilings([*self.base.runs, *arm.runs]))
        return Design(noise, self.gaps.spread, rules.rope, rules.level, self.strictest)

    def effects(self, arm: _Arm, difference: Estimate) -> list[Effect]:
        """What an undecided arm seems to have changed: the ceiling, and the compute to the matched level."""
        found = [Effect(self.design(arm), difference.median)]
        if arm.name in (levels := self.speeds.levels):
            both = [*self.base.runs, *arm.runs]
            noise = standard_error(log_computes(both, levels[arm.name], common_ceiling(both)))
            slower = float(np.median(self.speeds.alike.draws[:, list(levels).index(arm.name)]))
            spread = self.speeds.alike.spread
            found.append(Effect(Design(noise, spread, 0.0, self.rules.level, self.strictest), slower))
        return found


def _verdict(facts: _Facts, arm: _Arm, column: int | None) -> ArmVerdict:
    if column is None:
        return _unreadable(facts, arm)
    draws = facts.gaps.draws[:, column]
    difference = estimate_of(draws)
    known = facts.base.identified and arm.identified
    p_same = _share(np.abs(draws) < facts.rules.rope) if known else None
    multiplier = _multiplier(facts, arm.name)
    certainty = facts.certainty.get((arm.name, "ceiling"), 0.0)
    verdict, direction = _decide(facts.rules, difference, certainty, p_same, multiplier, known)
    open_ = verdict == "undecided"
    seeds = _seeds_needed(facts, arm, difference) if open_ and known else None
    run_from, run_to = _run_to(facts.base, arm) if open_ and not known else (0.0, None)
    answer = ArmVerdict(
        arm=arm.name,
        seeds=len(arm.runs),
        left_out=arm.left_out,
        waiting=arm.waiting,
        verdict=verdict,
        direction=direction,
        difference=difference,
        simultaneous=bounds(draws, facts.rules.rope, facts.strictest) if known else None,
        certainty=certainty,
        p_same=p_same,
        multiplier=multiplier,
        seeds_needed=seeds,
        run_to=run_to,
        seed_note=None,
        reason="",
        run_from=run_from,
    )
    unknown, seeds_of_control = _unknown_to(facts.base, arm), len(facts.base.runs)
    return wording.with_reason(answer, facts.rules.rope, facts.unit, unknown, facts.design(arm), seeds_of_control)


def _decide(
    rules: Rules,
    difference: Estimate,
    certainty: float,
    p_same: float | None,
    multiplier: Multiplier | None,
    known: bool,
) -> tuple[Verdict, Direction | None]:
    if certainty >= rules.level:
        return "ceiling", "up" if difference.median > 0 else "down"
    if not known:
        return "undecided", None
    if multiplier is not None and multiplier.certainty >= rules.level:
        return "efficiency", "faster" if multiplier.ratio.median > 1 else "slower"
    if p_same is not None and p_same >= rules.level:
        return "no difference shown", None
    return "undecided", None


def _multiplier(facts: _Facts, name: str) -> Multiplier | None:
    levels = facts.speeds.levels
    if name not in levels:
        return None
    ratio = estimate_of(np.exp(-facts.speeds.measured.draws[:, list(levels).index(name)]))
    return Multiplier(levels[name], ratio, facts.certainty[name, "efficiency"])


def _seeds_needed(facts: _Facts, arm: _Arm, difference: Estimate) -> int | None:
    return seeds_to_decide(facts.effects(arm, difference), len(arm.runs), len(facts.base.runs))


def _run_to(base: _Arm, arm: _Arm) -> tuple[float, float | None]:
    """The furthest of the pair's runs whose ceiling is unknown, and the compute at which all of these will be known;
    None when that is not near for one of them."""
    waited_for = [run for run in (*base.runs, *arm.runs) if not run.identified]
    reachable = [run.decide_at for run in waited_for if run.decide_at is not None]
    furthest = max(run.now for run in waited_for)
    return furthest, max(reachable) if len(reachable) == len(waited_for) else None


def _unreadable(facts: _Facts, arm: _Arm) -> ArmVerdict:
    """An arm that cannot be judged: it, or the control, has no run with a ceiling."""
    return ArmVerdict(
        arm=arm.name,
        seeds=len(arm.runs),
        left_out=arm.left_out,
        waiting=arm.waiting,
        verdict="undecided",
        direction=None,
        difference=None,
        simultaneous=None,
        certainty=0.0,
        p_same=None,
        multiplier=None,
        seeds_needed=None,
        run_to=None,
        seed_note=None,
        reason=wording.unreadable(arm.name, arm.left_out, () if facts.base.runs else facts.base.left_out),
    )


def _unknown_to(base: _Arm, arm: _Arm) -> str | None:
    """Whose ceilings are not identified, in words."""
    if base.identified and arm.identified:
        return None
    if arm.identified:
        return "the control's ceiling"
    return "its ceiling" if base.identified else "its ceiling and the control's"


def _control_advice(facts: _Facts, judged: Sequence[_Arm], verdicts: Sequence[ArmVerdict]) -> str | None:
    """What the control should do next, which serves every arm."""
    if not facts.base.runs:
        return wording.no_control(facts.base.name, facts.base.left_out)
    if not facts.base.identified:
        return wording.control_first(*_run_to(facts.base, facts.base), facts.unit)
    said = {verdict.arm: verdict for verdict in verdicts}
    waiting = [
        (facts.effects(arm, difference), len(arm.runs))
        for arm in judged
        if said[arm.name].verdict == "undecided" and arm.identified and (difference := said[arm.name].difference)
    ]
    found = control_advice(waiting, len(facts.base.runs))
    undecided = sum(verdict.verdict == "undecided" for verdict in verdicts)
    return None if found is None else wording.control_advice(*found, undecided)
