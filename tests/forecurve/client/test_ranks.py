"""Of the processes of a distributed job one reports, whatever launched them."""

from __future__ import annotations

import pytest

from forecurve.client import init

pytestmark = pytest.mark.usefixtures("own_directory")

STEP = {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "8"}


@pytest.mark.parametrize(
    ("launched", "reports"),
    [
        ({}, True),
        ({"RANK": ""}, True),
        ({"RANK": "0"}, True),
        ({"RANK": "3"}, False),
        ({"OMPI_COMM_WORLD_RANK": "0"}, True),
        ({"OMPI_COMM_WORLD_RANK": "3"}, False),
        ({"PMI_RANK": "3"}, False),
        ({**STEP, "SLURM_PROCID": "0"}, True),
        ({**STEP, "SLURM_PROCID": "3"}, False),
        ({**STEP, "SLURM_PROCID": "3", "RANK": "0"}, True),
        ({**STEP, "SLURM_PROCID": "0", "PMI_RANK": "3"}, False),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "3"}, True),
        ({"SLURM_STEP_ID": "0", "SLURM_NTASKS": "1", "SLURM_PROCID": "3"}, True),
        ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "3"}, True),
    ],
)
def test_only_the_first_process_of_a_job_reports(
    launched: dict[str, str], reports: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in launched.items():
        monkeypatch.setenv(name, value)
    run = init("mine", mode="offline")
    run.finish()
    assert (run.directory is not None) is reports
