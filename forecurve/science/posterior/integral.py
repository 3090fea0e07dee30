"""The posterior of (A, B, C_mid, R0) by adaptive quadrature.

Given (ln B, ln C_mid) and a noise hypothesis the curve is linear in (R0, A) and the noise scale alpha integrates in
closed form, so the density of (R0, A) at a node is (rate + Q(R0, A)/2)^-(shape + N/2) on the triangle
0 <= R0 <= A <= 1. The quadrature is 2-D over (ln B, ln C_mid): a coarse lattice on the whole box, then lattices bent
and cut to where the mass lies until enough nodes carry it. At the nodes of the last one (R0, A) are drawn from
truncated normals and weighted exactly (weighing.py), so that no approximation but the lattice itself is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..curves.wandering import HYPOTHESES
from .kernels import Filtered, LatticeSums, lattice_sums
from .lattice import CUT_OFF, Lattice, closer_lattice, factors_of, first_lattice, lattice_about, mass_beyond
from .linear import Quadratic
from .masses import Beforehand, Masses, form_of, log_masses
from .patches import patched, rough_tiles, tiles_at
from .peaks import other_peaks
from .prior import FLAT, Box, box_of, student_t, student_t_scale
from .problem import Problem, Setting

_ENOUGH_NODES = 50.0
_MAX_PASSES = 8
_TRUSTED_POINTS = 20
_INFLATION = 4.0  # of least squares' variance, for noise that hangs together
_REACH = 4.5  # standard deviations, after that
_FAIR_NODES = 25.0  # that will do where the next lattice would be hardly smaller
_NEARLY_ALL = 0.05  # of the mass may lie beyond a first lattice about the optimum
_LEAST_NODES = 12.0  # carry the mass whose spread a lattice is laid by, or it is tempered
_FINEST = 4  # times that nodes are made finer
_STILL_SHRINKING = 0.6  # of the lattice's cell before: else the mass (heavy tails) fills it as well as it ever will
_WIDEST = max(range(len(HYPOTHESES)), key=lambda at: (HYPOTHESES[at].eta, HYPOTHESES[at].rho))
_LEAST_SCALE = 0.41  # cells, of what is told: half a cell's sd with the 6 degrees of freedom of priors by runs
_HALF, _PART = 0.7, -3.0  # in log mass: half, and a twentieth of all
_STRETCHED = 2.0  # times as wide in ln C_mid as without a prior
_ABOUT_PEAKS = 3  # times that nodes are made finer about a peak that lattices stepped over
_HOPELESS = 10.0  # a hypothesis whose best pair lies exp(-10) below the best of all is dropped


@dataclass(frozen=True, eq=False)
class Table:
    """What every (part of the prior, noise hypothesis, node) says.

    Attributes:
        lattice: its nodes.
        alive: indices of the H hypotheses among the problem's.
        sums: inner products of g and the noise filter's state of g, (H, K).
        totals: inner products of 1 and y, and log det M, (H, 4).
        log_node_prior: of each part of the prior, (P, K).
        masses: log masses, (P, H, K) and (K,).
        passes: lattices laid.
    """

    lattice: Lattice
    alive: IntArray
    sums: LatticeSums
    totals: FloatArray
    log_node_prior: FloatArray
    masses: Masses
    passes: int = 1


def integrate(problem: Problem) -> Table:
    """The table on the lattice that carries the mass. Deterministic.

    Where least squares knows ln B and ln C_mid well, the first lattice is laid about its optimum, generously; if any
    mass turns out to lie at that lattice's edge, or where little is known, the search begins on the whole box.
    """
    setting = problem.setting
    if setting.prior.informative or setting.prior.noise is not None:
        return _integrate(problem)
    return problem.once(("table", *_told_apart(setting)), lambda: _integrate(problem))


def _integrate(problem: Problem) -> Table:
    setting = problem.setting
    everyone = np.arange(len(setting.hypotheses))
    near = _near_optimum(problem)
    if near is not None:
        table = _first_table(problem, near, everyone)
        if mass_beyond(near, table.masses.nodes, setting.box).max() <= _NEARLY_ALL:
            return _with_peaks(problem, _closer(problem, table, near=True))
    first = _first_table(problem, first_lattice(setting.box), _scouts(setting))
    return _with_peaks(problem, _or_within(problem, _closer(problem, first, near=False)))


def _or_within(problem: Problem, table: Table) -> Table:
    """The table; or where the prior allows for midpoints so far off that lattices over all of them may step over the
    mass, one that begins where they usually are, if it has more of it."""
    setting, usual = problem.setting, box_of(FLAT, problem.since)
    widths = [high - low for low, high in (setting.box.log_mid, usual.log_mid)]
    if widths[0] <= _STRETCHED * widths[1]:
        return table
    within = first_lattice(Box(setting.box.log_b, usual.log_mid))
    found = _closer(problem, tabulate(problem, within, _scouts(setting)), near=False)
    return max(table, found, key=lambda one: log_sum(one.masses.nodes))


def _first_table(problem: Problem, lattice: Lattice, alive: IntArray) -> Table:
    """On a lattice of which nothing but the box hangs on the prior."""
    what = "first sums", len(alive), *_told_apart(problem.setting)
    sums = problem.once(what, lambda: sums_at(problem, lattice, alive))
    return table_of(problem.setting, lattice, alive, sums, problem.filtered.sums[alive])


def _told_apart(setting: Setting) -> tuple[bool, float, Box]:
    """What tells curves and their lattices apart of the same evaluations."""
    return setting.burr, setting.begins, setting.box


def _closer(problem: Problem, table: Table, near: bool) -> Table:
    """Lay lattice after lattice until enough nodes carry the mass under every hypothesis.

    Args:
        table: of the first lattice; laid about a sharp optimum, under every hypothesis, where `near`, else under a few.
    """
    setting = problem.setting
    everyone = np.arange(len(setting.hypotheses))
    all_asked, last_area = near, np.inf
    while table.passes < _MAX_PASSES:
        log_node = table.masses.nodes
        power, area, carry = _temper(log_node), table.lattice.cell_area, effective_nodes(log_node)
        beyond = mass_beyond(table.lattice, log_node, setting.box)
        inside = beyond.max() <= CUT_OFF
        if inside and (carry >= _ENOUGH_NODES or area > _STILL_SHRINKING * last_area):
            if all_asked:
                break
            table, all_asked = tabulate(problem, table.lattice, everyone, table.passes + 1), True
            continue
        lattice = closer_lattice(table.lattice, log_node, power, setting.box, beyond)
        if inside and near and carry >= _FAIR_NODES and lattice.cell_area > _STILL_SHRINKING * area:
            break
        alive = table.alive
        if power == 1.0:
            alive = alive[hopeful(table.masses.pairs)] if all_asked else everyone
            all_asked = True
        table, last_area = tabulate(problem, lattice, alive, table.passes + 1), area
    if not all_asked:
        table = tabulate(problem, table.lattice, everyone, table.passes)
    return _finer(problem, table)


def _finer(problem: Problem, table: Table) -> Table:
    """With finer nodes where the mass still steps from node to node, and in these again."""
    for _ in range(_FINEST):
        tiles = rough_tiles(table.masses.nodes)
        if not tiles.any():
            break
        table = _patched(problem, table, tiles)
    return table


def _patched(problem: Problem, table: Table, tiles: BoolArray) -> Table:
    """With finer nodes in these tiles."""
    lattice, fine = patched(table.lattice, tiles)
    both = zip(table.sums, sums_at(problem, fine, table.alive), strict=True)
    sums = LatticeSums(*(np.concatenate(parts, axis=1) for parts in both))
    return table_of(problem.setting, lattice, table.alive, sums, table.totals, table.passes + 1)


def _with_peaks(problem: Problem, table: Table) -> Table:
    """The table; or where it lacks a peak that counts one over the whole box, with finer nodes about that."""
    lacking = _lacking(problem, table)
    if not lacking.size:
        return table
    nodes = np.column_stack([lacking, table.lattice.nodes[:, int(table.masses.nodes.argmax())]])
    everyone = np.arange(len(problem.setting.hypotheses))
    whole = tabulate(problem, first_lattice(problem.setting.box), everyone, table.passes + 1)
    for _ in range(_ABOUT_PEAKS):
        whole = _patched(problem, whole, rough_tiles(whole.masses.nodes) | tiles_at(whole.lattice, nodes))
    return _finer(problem, whole)


def _lacking(problem: Problem, table: Table) -> FloatArray:
    """Peaks that carry a part of the mass, (2, E), of which the table has not even half."""
    peaks = None if problem.setting.burr else other_peaks(problem)  # of sigmoids
    if peaks is None or not len(peaks.cuts):
        return np.empty((2, 0))
    size, cells = len(peaks.cuts), np.tile(np.sqrt(peaks.areas), (2, 1))  # one node a peak, which stands for its area
    nothing, edges = np.zeros(size, dtype=bool), np.zeros((4, size), dtype=bool)
    lattice = Lattice(peaks.nodes[0], peaks.nodes[1][:, None], cells, size, nothing, edges)
    early = np.array([guess.early for guess in problem.setting.hypotheses])
    theirs = tabulate(problem, lattice, np.arange(len(early))).masses.pairs
    ours, total = table.masses.pairs, log_sum(table.masses.nodes)
    at_peaks = [log_sum(theirs[:, early == cut, at]) for at, cut in enumerate(peaks.cuts)]
    known = [log_sum(ours[:, early[table.alive] == cut]) for cut in peaks.cuts]
    lacks = [a > k + _HALF and a > total + _PART for a, k in zip(at_peaks, known, strict=True)]
    return peaks.nodes[:, lacks]


def _near_optimum(problem: Problem) -> Lattice | None:
    """A lattice about the sigmoid's least-squares optimum, where its standard errors are small even for wandering
    noise."""
    size = len(problem.reward)
    if size < _TRUSTED_POINTS or problem.setting.burr:
        return None
    found = problem.optimum
    information = np.array([[found[5], found[6]], [found[6], found[7]]])
    if not np.linalg.det(information) > 1e-12 * found[5] * found[7] > 0:
        return None
    setting = problem.setting
    variance = max(found[4] / (size - 4), 0.3 * setting.unit_variance)
    return lattice_about(found[2:4], _INFLATION * variance * np.linalg.inv(information), _REACH, setting.box)


def _scouts(setting: Setting) -> IntArray:
    """A few hypotheses, unlike one another, that find where the mass lies before all are asked."""
    early = [at for at, guess in enumerate(setting.hypotheses) if guess.early and not guess.eta]
    return np.array([0, _WIDEST, *early[-1:]])


def tabulate(problem: Problem, lattice: Lattice, alive: IntArray, passes: int = 1) -> Table:
    """Everything at the nodes of one lattice."""
    sums = sums_at(problem, lattice, alive)
    return table_of(problem.setting, lattice, alive, sums, problem.filtered.sums[alive], passes)


def sums_at(problem: Problem, lattice: Lattice, alive: IntArray) -> LatticeSums:
    """Inner products at the nodes of a lattice under those hypotheses."""
    filtered = Filtered(*(part[alive] for part in problem.filtered))
    sums = LatticeSums.zeros(len(alive), lattice.log_mid.size)
    lattice_sums(problem.log_c, lattice.factors, filtered, sums, problem.setting.burr)
    return sums


def table_of(
    setting: Setting,
    lattice: Lattice,
    alive: IntArray,
    sums: LatticeSums,
    totals: FloatArray,
    passes: int = 1,
) -> Table:
    """The masses that follow from inner products.

    Args:
        totals: `Filtered.sums` of the hypotheses that are alive, (H, 4).
    """
    priors = log_node_priors(setting, lattice)
    masses = log_masses(sums, totals, Beforehand.of(setting, setting.log_weights[alive], priors))
    return Table(lattice, alive, sums, totals, priors, masses, passes)


def forms_at(problem: Problem, nodes: FloatArray) -> Quadratic:
    """Q for every hypothesis (rows) at any nodes, (ln B, ln C_mid), (2, K), in units of the noise model's variance."""
    sums = LatticeSums.zeros(len(problem.setting.hypotheses), nodes.shape[1])
    lattice_sums(problem.log_c, factors_of(nodes[0], nodes[1][:, None]), problem.filtered, sums)
    return form_of(sums, problem.filtered.sums[:, None], problem.setting.unit_variance)


# --- how the mass lies ---


def log_sum(log_mass: FloatArray) -> float:
    """Log of the sum over everything."""
    return float(np.logaddexp.reduce(log_mass, axis=None))


def hopeful(pairs: FloatArray, within: float = _HOPELESS) -> IntArray:
    """Positions of the hypotheses that carry mass: their best pair is not far below the best of all."""
    best = pairs.max(axis=(0, 2))
    return np.flatnonzero(best > best.max() - within)


def _temper(log_node: FloatArray) -> float:
    """The largest power <= 1 at which at least `_LEAST_NODES` carry the mass."""
    if effective_nodes(log_node) >= _LEAST_NODES:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if effective_nodes(middle * log_node) >= _LEAST_NODES else (low, middle)
    return max(low, 1e-12)


def effective_nodes(log_weight: FloatArray) -> float:
    """How many nodes carry the mass: (sum w)^2 / sum w^2."""
    return effective_size(np.exp(log_weight - log_weight.max()))


def effective_size(weight: FloatArray) -> float:
    """How many of the weights carry their sum: (sum w)^2 / sum w^2."""
    return float(weight.sum() ** 2 / (weight @ weight))


# --- densities ---


def log_node_priors(setting: Setting, lattice: Lattice) -> FloatArray:
    """Log prior mass of each node's cell under each part of the prior, -inf outside the box; (P, K)."""
    return np.stack([_log_node_prior(setting, lattice, informative) for informative in setting.prior_parts])


def _log_node_prior(setting: Setting, lattice: Lattice, informative: bool) -> FloatArray:
    prior, box = setting.prior, setting.box
    total = lattice.log_areas(box) + log(prior.weight if informative else 1 - prior.weight)
    across, along = lattice.cells
    if informative and prior.log_C_mid is not None:
        mean, sd = prior.log_C_mid
        total += student_t(lattice.log_mid, mean, _seen(sd, along, prior.dof)[:, None], prior.dof)
    else:
        total += box.log_density_mid
    if informative and prior.log_B is not None:
        mean, sd = prior.log_B
        total += student_t(lattice.log_b, mean, _seen(sd, across, prior.dof), prior.dof)[:, None]
    else:
        total += box.log_density_b(lattice.log_b)[:, None]
    return total.ravel()


def _seen(sd: float, cell: FloatArray, dof: float) -> FloatArray:
    """Wide enough for nodes to see, (R,): what is told more narrowly than they lie apart would fall between them, and
    the next lattice, which is finer, would not be laid there. With few degrees of freedom most lies far within its sd.
    """
    return np.maximum(sd, _LEAST_SCALE * cell / student_t_scale(1.0, dof))
