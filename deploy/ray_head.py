"""The Ray head of a container: `python deploy/ray_head.py [flags of ray start]`.

Told to end, it first gives every job the time to judge its weights, write a checkpoint and report. Ray by itself takes
their cluster from under them, and what they trained since their last checkpoint is lost.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

from forecurve.cli.supervisor.jobs import end_jobs

LOOK_EVERY_S = 0.5


def main(flags: list[str]) -> int:
    told: list[int] = []
    # Set before there is a head, which would outlive a signal that comes in between.
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    head = subprocess.Popen(["ray", "start", "--head", "--block", *flags])
    while not told:
        with suppress(subprocess.TimeoutExpired):
            return head.wait(LOOK_EVERY_S)
    jobs_api = os.environ.get("RAY_API_SERVER_ADDRESS", "http://127.0.0.1:8265")
    end_jobs(jobs_api, os.environ["RAY_AUTH_TOKEN"], float(os.environ["RAY_JOB_STOP_WAIT_TIME_S"]))
    head.terminate()
    return head.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
