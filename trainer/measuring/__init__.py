"""What a run costs and does: the compute ledger, times between steps, and the metrics of a step."""
