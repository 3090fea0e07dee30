"""TensorBoard's event files, as its own writer and torch's leave them."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from forecurve.curve_cells import CurveFileError
from forecurve.importers import read


def _write(folder: Path, points: list[tuple[int, float]], suffix: str = "", hours: float | None = None) -> Path:
    """With the writer that transformers and verl use."""
    pytest.importorskip("tensorboard")
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(str(folder), filename_suffix=suffix) as writer:
        writer.add_text("note", "no number", 0)
        for step, value in points:
            writer.add_scalar("eval/pass_rate", value, step)
            writer.add_scalar("train/loss", 1 / (1 + step), step)
            if hours is not None:
                writer.add_scalar("perf/gpu_hours", hours * step, step)
    return next(folder.glob(f"events.out.tfevents.*{suffix}"))


def test_a_folder_of_runs(tmp_path: Path) -> None:
    for seed in (1, 2):
        _write(tmp_path / f"tb/grpo/seed{seed}", [(step, 0.1 + step / 100) for step in range(0, 50, 10)], hours=0.5)
    found = read(tmp_path / "tb", compute="perf/gpu_hours", seeds_in_names=True)
    assert list(dict.fromkeys((row["series"], row["seed"]) for row in found.rows)) == [("grpo", 1), ("grpo", 2)]
    assert [row["reward"] for row in found.rows[:5]] == [0.1, 0.2, 0.3, 0.4, 0.5]  # written with 32 bits
    assert [row["compute"] for row in found.rows[:5]] == [0, 5, 10, 15, 20]
    assert read(tmp_path / "tb/grpo/seed1").rows[0]["series"] == "seed1"


def test_a_run_that_went_on_has_two_files(tmp_path: Path) -> None:
    first = _write(tmp_path / "run", [(10, 0.1), (20, 0.2), (30, 0.3)], ".a")
    first.rename(first.with_name("events.out.tfevents.1700000000.host.1.0"))
    second = _write(tmp_path / "run", [(20, 0.25), (30, 0.35), (40, 0.4)], ".b")
    second.rename(second.with_name("events.out.tfevents.1700009999.host.1.0"))
    found = read(tmp_path / "run")
    assert [(row["compute"], row["reward"]) for row in found.rows] == [(10, 0.1), (20, 0.25), (30, 0.35), (40, 0.4)]
    assert found.left_out == {"of steps that were logged again later (the last report counts)": 2}


def test_scalars_as_tensors(tmp_path: Path) -> None:
    """As TensorFlow 2 and JAX write them, by tensorboard's own writer."""
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path))
    for step in (1, 2, 3):
        writer.add_event(Event(step=step, summary=scalar_pb("eval/accuracy", step / 10)))
    writer.close()
    assert [row["reward"] for row in read(tmp_path).rows] == [0.1, 0.2, 0.3]


def test_a_file_that_a_killed_run_left_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    file = _write(tmp_path / "run", [(step, 0.5) for step in range(20)])
    whole = file.read_bytes()
    file.write_bytes(whole[:-30])
    found = read(file)
    assert found.rows[0]["series"] == "run"
    assert 17 <= len(found.rows) <= 20
    assert any("bytes at its end are no whole record and left out" in note for note in found.notes)


def test_without_tensorboard_it_is_said_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _write(tmp_path / "run", [(1, 0.5)])
    absent: dict[str, Any] = dict.fromkeys(name for name in sys.modules if name.split(".")[0] == "tensorboard")
    for name in {*absent, "tensorboard", "tensorboard.backend.event_processing.event_file_loader"}:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(CurveFileError, match=r"pip install 'forecurve\[tensorboard\]'"):
        read(file)


def test_what_stands_behind_a_damaged_record_is_told(tmp_path: Path) -> None:
    whole = _write(tmp_path / "run", [(step, 0.5) for step in range(20)]).read_bytes()
    damaged = tmp_path / "events.out.tfevents.1"
    for at in range(0, len(whole), 41):
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with suppress(CurveFileError):
            found = read(damaged, metric="eval/pass_rate")
            assert 1 <= len(found.rows) <= 20
            assert any("bytes at its end are no whole record and left out" in note for note in found.notes)
