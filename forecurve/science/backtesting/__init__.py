"""How good forecasts would have been, and were, beside those of the paper and of plain baselines."""
