"""What holds of every source: which metric is meant, what cannot be read, and that nothing is lost."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.curve_cells import CurveFileError
from forecurve.importers import read


def _logged(folder: Path, *names: str) -> Path:
    path = folder / "run.jsonl"
    rows = [{"step": at} | {name: (at + place) / 10 for place, name in enumerate(names)} for at in range(5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["eval/pass_rate", "train/reward", "eval/loss"], "eval/pass_rate"),
        (["eval_reward", "eval_reward_std", "eval_rewards/f/std", "reward"], "eval_reward"),
        (["val-core/gsm8k/acc/mean@8", "val-core/gsm8k/acc/best@8/mean", "val-aux/gsm8k/reward/mean@8"],
         "val-core/gsm8k/acc/mean@8"),
        (["pass_rate", "loss"], "pass_rate"),
        (["accuracy", "val_accuracy"], "val_accuracy"),
        (["test/success_rate", "train/accuracy"], "test/success_rate"),
        (["reward", "loss"], None),
        (["train/accuracy", "critic/rewards/mean"], None),
        (["eval/math/acc", "eval/code/acc"], None),
        (["eval_mean_token_accuracy"], None),
    ],
)  # fmt: skip
def test_the_metric_is_taken_where_only_one_can_be_meant(tmp_path: Path, names: list[str], taken: str | None) -> None:
    path = _logged(tmp_path, *names)
    if taken is None:
        with pytest.raises(CurveFileError, match="one must be named, got none; there are") as refused:
            read(path)
        assert all(name in str(refused.value) for name in names)
        return
    found = read(path)
    assert found.metric == taken
    assert any(taken in note for note in found.notes)


def test_an_unknown_metric_is_told_what_there_is(tmp_path: Path) -> None:
    path = _logged(tmp_path, "eval/pass_rate", "loss")
    with pytest.raises(CurveFileError, match=r"did you mean eval/pass_rate\? There are eval/pass_rate, loss"):
        read(path, metric="eval/pas_rate")
    with pytest.raises(CurveFileError, match="compute: nothing is logged as that, got 'hours'; there are loss"):
        read(path, compute="hours")
    with pytest.raises(CurveFileError, match="run: no run is called so, got 'b\\*'; there are run"):
        read(path, runs=["b*"])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "it is empty"),
        (b" \n ", "it is empty"),
        (b"\x7fELF\x00\x00\x01", "it is binary"),
        (b":W&B\x00\x00", "W&B's own file of a run"),
        (b"SQLite format 3\x00", "it is a database"),
        (b"PAR1 and nothing", "it is not Parquet"),
        (b"a,b\n\xff\xfe,1\n", "no text in UTF-8"),
        (b"step,eval/acc\n", "nothing is logged"),
        (b"step,eval/acc\n1,.1,7\n", "line 2: more cells than columns"),
        (b"step,note\n1,good\n", "no numbers are logged"),
        (b"[1, 2]", "a JSON object is needed"),
        (b"{'step': 1}", "not JSON"),
        (b"[" * 100_000, "JSON that cannot be taken"),
        (b"step,eval/acc\n1,nan\n2,nan\n", "no evaluation of it is left: 2 not finite"),
        (b"step,eval/acc\n-1,.1\n2,.2\n", "compute must be 0, or lie in"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(CurveFileError, match=told) as refused:
        read(path)
    assert refused.value.field
    assert refused.value.way_out


def test_folders_without_logs_are_told(tmp_path: Path) -> None:
    with pytest.raises(CurveFileError, match="a folder without logs"):
        read(tmp_path)
    (tmp_path / "a.csv").write_text("step,eval/acc\n1,.1\n")
    with pytest.raises(CurveFileError, match=r"name its tables one by one, such as .*a\.csv"):
        read(tmp_path)
    (tmp_path / "run-1.wandb").write_bytes(b":W&B")
    with pytest.raises(CurveFileError, match="W&B's own files are not read"):
        read(tmp_path)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "log.csv"
    path.write_bytes(content)
    with suppress(CurveFileError):
        assert read(path).rows


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.lists(st.integers(), max_size=2)
)
NAMES = st.sampled_from(["step", "eval/acc", "data", "seed", "run", "log_history", "loss", ""])
DOCUMENTS = st.recursive(CELLS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4))


@given(DOCUMENTS | st.lists(st.dictionaries(NAMES, CELLS, max_size=5), max_size=5))
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, document: object) -> None:
    path = tmp_path_factory.mktemp("any") / "log.json"
    path.write_text(json.dumps(document))
    with suppress(CurveFileError):
        assert read(path, metric="eval/acc").rows


@given(st.lists(st.tuples(st.integers(0, 9), st.one_of(st.floats(0, 1), st.just(math.nan))), min_size=1, max_size=30))
def test_the_last_report_of_a_step_counts_and_none_is_lost(
    tmp_path_factory: pytest.TempPathFactory, reports: list[tuple[int, float]]
) -> None:
    path = tmp_path_factory.mktemp("run") / "run.csv"
    path.write_text("step,eval/acc\n" + "".join(f"{step},{value!r}\n" for step, value in reports))
    last = {step: value for step, value in reports if math.isfinite(value)}
    if not last:
        with pytest.raises(CurveFileError, match="no evaluation of it is left"):
            read(path)
        return
    found = read(path)
    assert [(row["compute"], row["reward"]) for row in found.rows] == sorted(last.items())
    assert len(found.rows) + sum(found.left_out.values()) == len(reports)
