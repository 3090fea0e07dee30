"""The state that transformers' and TRL's trainers leave, in a checkpoint or in the output folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forecurve.curve_cells import CurveFileError
from forecurve.importers import read


def _state(path: Path, steps: int) -> Path:
    """What GRPOTrainer writes with an evaluation every 10 steps, the first before training."""
    history = [{"epoch": 0, "eval_loss": 0.0, "eval_reward": 0.1, "eval_rewards/accuracy/std": 0.2, "step": 0}]
    for step in range(5, steps + 1, 5):
        history.append({"epoch": step / 100, "loss": 0.0, "reward": 0.9, "num_tokens": 1000.0 * step, "step": step})
        if step % 10 == 0:
            history.append({"epoch": step / 100, "eval_reward": 0.1 + step / 100, "eval_runtime": 3.0, "step": step})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"global_step": steps, "log_history": history, "max_steps": 100}, indent=2))
    return path


def test_an_output_folder_is_read_by_its_newest_checkpoint(tmp_path: Path) -> None:
    for steps in (20, 100, 40):
        _state(tmp_path / f"grpo/checkpoint-{steps}/trainer_state.json", steps)
    found = read(tmp_path / "grpo")
    assert found.metric == "eval_reward"
    assert [row["compute"] for row in found.rows] == list(range(0, 101, 10))
    assert {row["series"] for row in found.rows} == {"grpo"}
    assert [row["compute"] for row in read(tmp_path / "grpo/checkpoint-20").rows] == [0, 10, 20]
    _state(tmp_path / "grpo/trainer_state.json", 120)
    assert read(tmp_path / "grpo").rows[-1]["compute"] == 120


@pytest.mark.parametrize(("bonus", "is_one"), [(0.0, True), (0.05, False)])
def test_the_mean_of_the_only_reward_function_is_the_reward(tmp_path: Path, bonus: float, is_one: bool) -> None:
    path = _state(tmp_path / "x/trainer_state.json", 30)
    state = json.loads(path.read_text())
    for line in state["log_history"]:
        if "eval_reward" in line:
            line["eval_rewards/accuracy/mean"] = line["eval_reward"] - (bonus if line["step"] == 20 else 0.0)
    path.write_text(json.dumps(state))
    if is_one:
        assert [row["reward"] for row in read(path).rows] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    else:
        with pytest.raises(CurveFileError, match="several could be the reward"):
            read(path)


def test_a_folder_of_output_folders_is_a_run_each(tmp_path: Path) -> None:
    for name in ("a-s1", "a-s2"):
        _state(tmp_path / f"runs/{name}/checkpoint-30/trainer_state.json", 30)
        (tmp_path / f"runs/{name}/runs").mkdir()
        (tmp_path / f"runs/{name}/runs/events.out.tfevents.1").write_bytes(b"the same run again")
    found = read(tmp_path / "runs", seeds_in_names=True)
    assert {(row["series"], row["seed"]) for row in found.rows} == {("a", 1), ("a", 2)}


def test_links_to_runs_elsewhere_are_told_and_not_followed(tmp_path: Path) -> None:
    for name in ("store/a", "store/b", "runs/c"):
        _state(tmp_path / name / "trainer_state.json", 30)
    (tmp_path / "runs/latest").symlink_to("c")
    found = read(tmp_path / "runs")
    assert (found.runs, "link" in str(found.notes)) == (1, False)
    for name in ("a", "b"):
        (tmp_path / "runs" / name).symlink_to(tmp_path / "store" / name)
    found = read(tmp_path / "runs")
    assert found.runs == 1
    told = f"runs has 2 links to folders elsewhere, not followed: name such a folder itself ({tmp_path / 'runs/a'})"
    assert told in found.notes
    assert read([tmp_path / "runs", tmp_path / "runs/a"]).runs == 2
    (tmp_path / "links").mkdir()
    (tmp_path / "links/a").symlink_to(tmp_path / "store/a")
    with pytest.raises(CurveFileError, match=r"links to folders are not followed: name them one by one, such as .*/a"):
        read(tmp_path / "links")


def test_tokens_as_compute(tmp_path: Path) -> None:
    found = read(_state(tmp_path / "x/trainer_state.json", 30), compute="num_tokens")
    assert [row["compute"] for row in found.rows] == [10_000, 20_000, 30_000]
    assert found.rows[0]["unit"] == "tokens"
    assert found.left_out == {"before any compute was logged": 1}


def test_a_state_that_was_copied_is_called_as_its_file(tmp_path: Path) -> None:
    assert read(_state(tmp_path / "here/grpo.json", 30)).rows[0]["series"] == "grpo"


def test_a_state_without_a_log_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text('{"log_history": [], "global_step": 0}')
    with pytest.raises(CurveFileError, match="its log_history is empty"):
        read(path)
