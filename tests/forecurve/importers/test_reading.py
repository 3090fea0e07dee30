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
        (["val-core/gsm8k/acc/mean_at_8", "val-core/gsm8k/acc/best_at_8/mean", "val-core/gsm8k/acc/maj_at_8/mean"],
         "val-core/gsm8k/acc/mean_at_8"),
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
        (b":W&B\x00\x00\x01", "it begins unlike the files"),
        (b"SQLite format 3\x00", "the database cannot be read"),
        (b"PAR1 and nothing", "it is not Parquet"),
        ("step\teval/acc\n1\t.1\n".encode("utf-16"), "text in UTF-16, .*; save it as CSV UTF-8"),
        (b"step;eval/acc\n1;0,1\n", "eval/acc at log, line 2: .* got '0,1'; write a point before decimals"),
        (b"step;score\n1;0,1\n", "score at log, line 2: .* got '0,1'; write a point before decimals"),
        (b"step;tokens;eval/acc\n1;9;0,1\n", "eval/acc at log, line 2: .* got '0,1'; write a point before decimals"),
        (b"a,b\n\xff\xfe,1\n", "no text in UTF-8"),
        (b"step,eval/acc\n", "nothing is logged"),
        (b"step,eval/acc\n1,.1,7\n", "line 2: more cells than columns"),
        (b"step,note\n1,good\n", "no numbers are logged"),
        (b"[1, 2]", "a JSON object is needed"),
        (b"{'step': 1}", "not JSON"),
        pytest.param(b"[" * 100_000, "JSON that cannot be taken", id="deep"),
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


def test_wherever_a_byte_of_a_parquet_file_is_damaged_it_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"step": [1, 2, 3], "eval/acc": [0.1, 0.2, 0.3]})
    pytest.importorskip("pyarrow.parquet").write_table(table, path, compression="none")
    whole = path.read_bytes()
    refused = 0
    for at in range(4, len(whole) - 8):
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        try:
            read(path)
        except CurveFileError as error:
            refused += "it is not Parquet, or is damaged (" in str(error)
    assert refused > 100


def test_a_parquet_file_with_two_columns_of_one_name_is_refused(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    columns = [arrow.array([1, 2]), arrow.array([3, 4]), arrow.array([0.1, 0.2])]
    table = arrow.table(columns, ["step", "step", "eval/acc"])
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "log.parquet")
    with pytest.raises(CurveFileError, match=r"step in log\.parquet: this column is needed once, got 2 columns"):
        read(tmp_path / "log.parquet")


REPORTS = st.lists(st.tuples(st.integers(0, 9), st.one_of(st.floats(0, 1), st.just(math.nan))), min_size=1, max_size=30)


@given(REPORTS)
def test_the_last_report_of_a_step_counts_and_none_is_lost(
    tmp_path_factory: pytest.TempPathFactory, reports: list[tuple[int, float]]
) -> None:
    path = tmp_path_factory.mktemp("run") / "run.csv"
    path.write_text("step,eval/acc\n" + "".join(f"{step},{value!r}\n" for step, value in reports))
    finite = [(step, value) for step, value in reports if math.isfinite(value)]
    if not finite:
        with pytest.raises(CurveFileError, match="no evaluation of it is left"):
            read(path)
        return
    found = read(path)
    points = [(row["compute"], row["reward"]) for row in found.rows]
    led_to_the_end = {(step, value) for at, (step, value) in enumerate(finite) if _leads_on(step, finite[at + 1 :])}
    unordered = any("in no order of steps" in note for note in found.notes)
    late = any("came in late" in note for note in found.notes)
    assert points == sorted(dict(finite).items()) if unordered else led_to_the_end <= set(points)
    assert unordered or late or len(points) == len(led_to_the_end)
    assert set(points) <= set(dict(finite).items())
    assert len(points) + sum(found.left_out.values()) == len(reports)


def _leads_on(step: int, later: list[tuple[int, float]]) -> bool:
    """That the run never went back to it, or before it."""
    return all(step < other for other, _ in later)
