"""The style sheet's colours: readable in light and in dark (WCAG AA)."""

from __future__ import annotations

import re

import pytest

from web.assets import STATIC

CSS = (STATIC / "css" / "forecurve.css").read_text()
TEXT = ("ink", "quiet", "accent", "alert", "good")
MARKS = ("neutral", *(f"series-{k}" for k in range(6)))


def _tokens(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


LIGHT, DARK, DARK_BY_SYSTEM = (_tokens(block) for block in re.findall(r":root[^{]*\{([^}]*)\}", CSS)[:3])


def _luminance(colour: str) -> float:
    channels = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The WCAG contrast ratio of two colours, 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_measure_itself_is_right() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_is_readable_on_every_ground_it_stands_on(theme: dict[str, str]) -> None:
    pairs = [(text, ground) for text in TEXT for ground in ("paper", "field")]
    pairs += [("ink", "accentField"), ("accent", "accentField"), ("quiet", "accentField")]
    pairs += [("ink", "alertField"), ("alert", "alertField"), ("quiet", "alertField"), ("accent", "alertField")]
    pairs += [("onAccent", "accent")]
    poor = {pair: round(contrast(theme[pair[0]], theme[pair[1]]), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in poor.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_and_marks_stand_out_from_the_paper(theme: dict[str, str]) -> None:
    poor = {mark: round(contrast(theme[mark], theme["paper"]), 2) for mark in MARKS}
    assert {mark: ratio for mark, ratio in poor.items() if ratio < 3} == {}


def test_dark_is_the_same_by_the_switch_and_by_the_system() -> None:
    assert len(DARK) == len(LIGHT) > 15
    assert DARK == DARK_BY_SYSTEM
