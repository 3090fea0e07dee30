"""Draw the figures of these pages: what `.plot()` of the library shows for synthetic runs with a fixed seed.

    python docs/science/draw_figures.py [--only NAME] [--png FOLDER]
    python docs/science/draw_figures.py --example      # writes example.csv, the sweep of the README

Needs the extras `server` (plotly) and `dev` (playwright), and a Chromium. plotly.js turns each figure into SVG in a
headless browser whose random numbers are fixed, so that drawing again changes nothing but what has changed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forecurve.curve_files import read_arms
from forecurve.science import Curve, compare, fit, freeze, plan, watch
from forecurve.science.backtesting.backtest import backtest

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from playwright.sync_api import Page

FOLDER = Path(__file__).parent / "figures"
TESTBED = Path(__file__).parents[1] / "guides" / "testbed-sweep.csv"
WIDTH, HEIGHT = 760, 380
BUDGET = 16_000.0
SIZE: dict[str, Any] = {"unit": "GPU-hours", "prompts": 1000, "samples": 16}
_FIXED_RANDOM = "let seed = 1; Math.random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;"
_TO_SVG = f"figure => Plotly.toImage(figure, {{format: 'svg', width: {WIDTH}, height: {HEIGHT}}})"


# --- synthetic runs ---


def run(
    seed: int,
    A: float = 0.61,
    B: float = 1.9,
    C_mid: float = 2500.0,
    R0: float = 0.2,
    last: float = BUDGET,
    points: int = 80,
    name: str = "run",
    noise: float = 0.004,
    bend: Callable[[np.ndarray], np.ndarray] | None = None,
    of_seed: int | None = None,
) -> Curve:
    """Evenly spaced evaluations of a sigmoid, white noise as that of 1,000 prompts x 16, and what `bend` adds."""
    compute = np.linspace(last / points, last, points)
    reward = R0 + (A - R0) / (1 + (C_mid / compute) ** B)
    reward = reward + np.random.default_rng(seed).normal(0, noise, points)
    reward = reward if bend is None else reward + bend(compute)
    return Curve(compute, np.clip(reward, 0, 1), name=name, start=R0, seed=of_seed, **SIZE)


def example() -> list[Curve]:
    """A sweep: a control and three arms with two seeds each, 6,000 of 16,000 GPU-hours spent, 30 evaluations a run."""
    arms: dict[str, dict[str, float]] = {
        "control": {},
        "fp32-head": {"A": 0.69},
        "pipeline": {"C_mid": 1300.0},
        "small-batch": {"A": 0.52},
    }
    rng = np.random.default_rng(3)
    return [_seed_of(rng, name, at, change, last=6000.0, points=30) for name, change in arms.items() for at in (1, 2)]


def write_example(file: Path) -> None:
    rows = ["series,compute,reward,prompts,samples,seed,unit"]
    for curve in example():
        for compute, reward in zip(curve.compute, curve.reward, strict=True):
            rows.append(f"{curve.name},{compute:g},{reward:.4f},1000,16,{curve.seed},GPU-hours")
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")


# --- one function a figure ---


def early() -> go.Figure:
    """The first 2,000 of 16,000 GPU-hours: the ceiling is not identified."""
    return _same_axes(fit(run(1).until(2000)).plot(budget=BUDGET))


def later() -> go.Figure:
    """The same run at 6,000."""
    return _same_axes(fit(run(1).until(6000)).plot(budget=BUDGET))


def siblings() -> go.Figure:
    """The same 2,000 GPU-hours with four finished siblings as the prior."""
    from forecurve.science import sibling_prior

    rng = np.random.default_rng(7)
    family = [run(20 + at, A=0.61 + rng.normal(0, 0.02), C_mid=2500 * np.exp(rng.normal(0, 0.2))) for at in range(4)]
    prior = sibling_prior([fit(curve) for curve in family])
    return _same_axes(fit(run(1).until(2000), prior=prior).plot(budget=BUDGET))


def collapse() -> go.Figure:
    """A run that collapses at 9,000: the forecast is withheld."""
    return fit(run(3, bend=lambda c: -0.25 * (c > 9000))).plot(budget=BUDGET)


def watched() -> go.Figure:
    """Frozen at 5,600, watched to 16,000; from 10,000 on the run slowly loses what it had."""
    whole = run(4, bend=lambda c: -0.07 * np.clip((c - 10_000) / 4_000, 0, 1), name="lr-broken")
    before = whole.until(5_600)
    after = whole.compute > before.now
    frozen = freeze(fit(before), horizon=int(after.sum()))
    return watch(frozen, whole.compute[after], whole.reward[after], whole.noise.variance[after]).plot()


def compared() -> go.Figure:
    """Five arms with three seeds each: two ceilings moved, one arm faster, one slower, one as the control."""
    arms = {
        "control": {},
        "fp32 head": {"A": 0.67},
        "small batch": {"A": 0.55},
        "pipeline": {"C_mid": 1400.0},
        "no filter": {"C_mid": 4600.0},
        "prompt mean": {},
    }
    rng = np.random.default_rng(5)
    curves = {name: [_seed_of(rng, name, at, change) for at in range(3)] for name, change in arms.items()}
    return compare(curves, "control").plot()


def _seed_of(
    rng: np.random.Generator, name: str, at: int, change: dict[str, float], last: float = BUDGET, points: int = 40
) -> Curve:
    true = {"A": 0.61, "C_mid": 2500.0} | change
    A, C_mid = true["A"] + rng.normal(0, 0.009), true["C_mid"] * np.exp(rng.normal(0, 0.1))
    noise = int(rng.integers(1 << 30))
    return run(noise, A=A, C_mid=C_mid, last=last, points=points, name=name, of_seed=at)


def planned() -> go.Figure:
    """Five arms at 2,500 to 4,000 of 16,000, with 30,000 GPU-hours left for all of them."""
    arms = {"control": (0.61, 2500.0), "wide clip": (0.63, 2900.0), "fp32 head": (0.67, 3400.0),
            "low lr": (0.60, 5200.0), "no filter": (0.52, 2200.0)}  # fmt: skip
    seen = {"low lr": 2500.0}
    curves = [
        run(30 + at, A=A, C_mid=C_mid, name=name).until(seen.get(name, 4000.0))
        for at, (name, (A, C_mid)) in enumerate(arms.items())
    ]
    return plan(curves, 30_000.0, horizon=BUDGET).plot()


def conformal() -> go.Figure:
    """16 runs of one family whose curves are no sigmoids, each forecast from a quarter with the others as the past."""
    rng = np.random.default_rng(11)

    def member(at: int) -> Curve:
        A, C_mid = 0.55 + rng.normal(0, 0.03), 2200 * np.exp(rng.normal(0, 0.3))
        return run(50 + at, A=A, C_mid=C_mid, bend=lambda c: 0.05 * np.log1p(c / 6000.0), name=f"run {at}")

    family = [member(at) for at in range(16)]
    return backtest(family, fractions=(0.25,), prior="siblings").plot()


def testbed() -> go.Figure:
    """Our own sweep on the testbed: three arms, five seeds each, trained for real (benchmarks/testbed.py)."""
    return compare(read_arms(TESTBED, unit="steps"), "control").plot()


FIGURES = {
    "fit-early": early,
    "fit-later": later,
    "fit-siblings": siblings,
    "fit-collapse": collapse,
    "watch-fall": watched,
    "compare": compared,
    "plan": planned,
    "backtest-conformal": conformal,
    "testbed-sweep": testbed,
}


def _same_axes(figure: go.Figure) -> go.Figure:
    """One range for figures that stand side by side."""
    return figure.update_yaxes(range=[0.15, 1.0])


# --- to SVG ---


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(FIGURES), action="append", help="may be repeated")
    parser.add_argument("--png", type=Path, help="a folder for pictures of the same, to look at")
    parser.add_argument("--example", action="store_true", help="write the example file instead")
    options = parser.parse_args()
    if options.example:
        write_example(Path(__file__).parent / "example.csv")
        return
    FOLDER.mkdir(exist_ok=True)
    with _page() as page:
        for name in options.only or FIGURES:
            svg = _svg(page, FIGURES[name]())
            (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
            print(f"{name}.svg {len(svg) / 1000:.0f} kB")
            if options.png is not None:
                _photograph(page, svg, options.png / f"{name}.png")


@contextmanager
def _page() -> Iterator[Page]:
    """A headless browser with the plotly.js of the plotly package."""
    import plotly
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
    found = next(filter(None, map(shutil.which, names)), None)
    script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_content("<!doctype html><body style='margin:0'><div id='sheet'></div>")
        page.add_script_tag(path=script)
        yield page
        browser.close()


def _svg(page: Page, figure: go.Figure) -> str:
    page.evaluate(_FIXED_RANDOM)
    address = page.evaluate(_TO_SVG, json.loads(figure.to_json()))
    return urllib.parse.unquote(address.split(",", 1)[1]) + "\n"


def _photograph(page: Page, svg: str, file: Path) -> None:
    page.evaluate("svg => document.getElementById('sheet').innerHTML = svg", svg)
    page.screenshot(path=file)


if __name__ == "__main__":
    main()
