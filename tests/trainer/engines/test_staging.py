"""Where weights lie while vLLM reads them: gone with its engine, or with the next engine if that was killed."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trainer.engines.staging import Staging

OWNER = """
import sys, time
from pathlib import Path
from trainer.engines.staging import Staging
staging = Staging(Path(sys.argv[1]))
(staging.path / "5.safetensors").write_text("weights")
print(staging.path, flush=True)
time.sleep(600)
"""


def owner(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process with a folder of its own."""
    process = subprocess.Popen([sys.executable, "-c", OWNER, str(parent)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.mark.slow
def test_what_a_killed_engine_left_behind_goes_when_the_next_one_starts_and_that_of_a_living_one_stays(tmp_path):
    (killed, left), (living, used) = owner(tmp_path), owner(tmp_path)
    try:
        killed.kill()
        killed.wait()
        assert list(left.iterdir()) == [left / "5.safetensors"]
        staging = Staging(tmp_path)
        assert set(tmp_path.iterdir()) == {used, staging.path}
        assert list(used.iterdir()) == [used / "5.safetensors"]
        staging.close()
        assert list(tmp_path.iterdir()) == [used]
    finally:
        for process in (killed, living):
            process.kill()
            process.wait()


def test_engines_that_start_at_once_do_not_remove_each_others_folders(tmp_path):
    def start_and_end(_: int) -> bool:
        staging = Staging(tmp_path)
        (staging.path / "1.safetensors").write_text("weights")
        there = staging.path.is_dir()
        staging.close()
        return there and not staging.path.exists()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(start_and_end, range(400)))
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_an_engines_folder_is_left_alone(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "forecurve-staging-link").symlink_to(elsewhere)
    (tmp_path / "forecurve-staging-file").write_text("")
    before = set(tmp_path.iterdir())
    Staging(tmp_path).close()
    assert set(tmp_path.iterdir()) == before
