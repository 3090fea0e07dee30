"""`--html`: what a command answers, drawn into a page that needs no network."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import pytest

from tests.web.reading import HOSTILE

from .conftest import Forecurve

EXAMPLE = Path(__file__).parents[3] / "docs/science/example.csv"


@pytest.mark.parametrize(
    ("arguments", "title", "figures"),
    [
        (("fit", EXAMPLE, "--budget", "16000"), "Where each curve ends", 8),
        (("fit", EXAMPLE, "--series", "pipeline"), "Where each curve ends", 2),
        (("compare", EXAMPLE, "--control", "control"), "What each arm changed against control", 1),
        (("plan", EXAMPLE, "--budget", "20000"), "What to run next", 1),
        (("backtest", EXAMPLE, EXAMPLE, "--fractions", "0.5"), "How good forecasts would have been", 1),
    ],
)
def test_a_page_has_the_figures_and_the_terminal_its_text(
    forecurve: Forecurve, tmp_path: Path, arguments: tuple[Any, ...], title: str, figures: int
) -> None:
    page = tmp_path / "page.html"
    drawn = forecurve(*arguments, "--html", page)
    assert drawn.out == forecurve(*arguments).out != ""
    assert drawn.err.splitlines()[-1] == f"Drawn in {page}"
    text = page.read_text()
    assert f"<title>{title}</title>" in text
    assert text.count("Plotly.newPlot(") == figures
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="http', text)
    assert list(tmp_path.iterdir()) == [page]


def test_a_name_is_text_and_no_markup(forecurve: Forecurve, tmp_path: Path) -> None:
    name = HOSTILE.replace('"', '""')
    rows = "".join(f'"{name}",{c},{0.5 - 0.4 / c}\n' for c in range(1, 9))
    (tmp_path / "runs.csv").write_text(f"series,compute,reward\n{rows}")
    page = tmp_path / "page.html"
    assert forecurve("fit", tmp_path / "runs.csv", "--html", page).code == 0
    assert "<script>alert" not in page.read_text()
    assert "<img src=x" not in page.read_text()


def test_a_page_that_cannot_be_written_is_bad_input(forecurve: Forecurve, tmp_path: Path) -> None:
    refused = forecurve("fit", EXAMPLE, "--html", tmp_path / "nowhere" / "page.html")
    refused.check_is_bad_input(["--html: ", "page.html cannot be written"])


def test_without_plotly_the_way_out_is_named(
    forecurve: Forecurve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "plotly":
            raise ImportError(name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    refused = forecurve("fit", EXAMPLE, "--html", tmp_path / "page.html")
    refused.check_is_bad_input(["figures need plotly: pip install plotly"])
    assert list(tmp_path.iterdir()) == []
