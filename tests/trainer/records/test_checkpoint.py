"""Checkpoints: whole or not there, whenever the writer dies."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from trainer.errors import CheckpointError
from trainer.records import checkpoint as checkpoints

FILES = {"a.bin": b"a" * 1000, "b.json": b"{}"}


def test_a_checkpoint_reads_back_with_its_step_digest_and_size(tmp_path):
    written = checkpoints.write(tmp_path, 7, FILES, keep_last=2)
    found = checkpoints.newest_valid(tmp_path)
    assert found == written
    assert (found.step, found.read("a.bin")) == (7, FILES["a.bin"])
    assert found.size_bytes == sum(path.stat().st_size for path in found.path.iterdir())


def test_only_the_newest_few_are_kept(tmp_path):
    for step in (1, 2, 3, 10):
        checkpoints.write(tmp_path, step, FILES, keep_last=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step_000003", "step_000010"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: (path / "a.bin").write_bytes(b"a" * 999),
        lambda path: (path / "a.bin").write_bytes(b"x" + b"a" * 999),
        lambda path: (path / "b.json").unlink(),
        lambda path: (path / "manifest.json").unlink(),
        lambda path: (path / "manifest.json").write_text('{"format": 1, "step": 2, "fi'),
        lambda path: (path / "manifest.json").write_text("[]"),
    ],
)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path, damage):
    checkpoints.write(tmp_path, 1, FILES, keep_last=5)
    damage(checkpoints.write(tmp_path, 2, FILES, keep_last=5).path)
    assert checkpoints.newest_valid(tmp_path).step == 1


@pytest.mark.parametrize("fatal_call", range(1, 8))
def test_a_writer_killed_at_any_point_leaves_the_checkpoint_before_or_the_new_one_whole(tmp_path, fatal_call):
    """A child process dies without any clean-up at the n-th flush or rename of its second checkpoint."""
    program = f"""
import os, pathlib
from trainer.records import checkpoint as c
files = {FILES!r}
c.write(pathlib.Path({str(tmp_path)!r}), 1, files, 1)
calls = 0
def dying(function):
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls == {fatal_call}:
            os._exit(9)
        return function(*arguments, **options)
    return call
os.fsync, pathlib.Path.rename = dying(os.fsync), dying(pathlib.Path.rename)
c.write(pathlib.Path({str(tmp_path)!r}), 2, files, 1)
"""
    code = subprocess.run([sys.executable, "-c", program], check=False).returncode
    found = checkpoints.newest_valid(tmp_path)
    # Six calls make a checkpoint: three files, their directory, the rename, the parent directory.
    assert (code, found.step) == ((9, 1 if fatal_call < 6 else 2) if fatal_call <= 6 else (0, 2))
    assert found.read("a.bin") == FILES["a.bin"]
    checkpoints.write(tmp_path, 3, FILES, keep_last=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step_000003"]  # leftovers are gone


def test_a_full_disk_is_named_and_loses_nothing(tmp_path, monkeypatch):
    checkpoints.write(tmp_path, 1, FILES, keep_last=1)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match=r"step 2 .*No space left on device"):
        checkpoints.write(tmp_path, 2, FILES, keep_last=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step_000001"]


def test_a_checkpoint_written_over_one_of_the_same_step_replaces_it(tmp_path):
    damaged = checkpoints.write(tmp_path, 4, FILES, keep_last=2)
    (damaged.path / "a.bin").unlink()
    checkpoints.write(tmp_path, 4, {"a.bin": b"new"}, keep_last=2)
    assert checkpoints.newest_valid(tmp_path).read("a.bin") == b"new"


def test_no_directory_is_no_checkpoint(tmp_path):
    assert checkpoints.newest_valid(tmp_path / "none") is None


def test_names_that_are_no_checkpoints_are_left_alone(tmp_path):
    (tmp_path / "step_notes").mkdir()
    checkpoints.write(tmp_path, 1, FILES, keep_last=1)
    checkpoints.write(tmp_path, 2, FILES, keep_last=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step_000002", "step_notes"]
