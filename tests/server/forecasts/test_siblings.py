"""What is told of past runs is worked out at a share of the budget that stands for its neighbours."""

from __future__ import annotations

import pytest

from server.forecasts.siblings import about


@pytest.mark.parametrize("share", [1e-6, 0.1, 0.5, 0.9, 0.98, 1.0, 1.5])
def test_past_runs_are_never_forecast_from_their_end(share: float) -> None:
    assert 0 < about(share) < 0.9
    assert about(share) == pytest.approx(min(share, 0.9), rel=0.1)
