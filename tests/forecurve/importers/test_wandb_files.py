"""W&B's own files: two that `wandb` 0.16.6 and 0.31.0 wrote of the same small run, and others after their pattern."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.curve_cells import CurveFileError
from forecurve.importers import metrics, read
from forecurve.importers.wandb_records import HEAD

DATA = Path(__file__).parent / "data"
WRITTEN = [DATA / "wandb-0.16.6.wandb", DATA / "wandb-0.31.0.wandb"]
BLOCK = 32_768


def _varint(value: int) -> bytes:
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F)
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def _field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _item(name: str, value: Any) -> bytes:
    return _field(1, name) + _field(16, json.dumps(value))


def _logged(step: int, **numbers: Any) -> bytes:
    items = b"".join(_field(1, _item(name.replace("__", "/"), value)) for name, value in numbers.items())
    return _field(2, items + _field(2, _field(1, step)))


def _run(run_id: str, name: str, seconds: int, **config: Any) -> bytes:
    updates = b"".join(_field(1, _item(key, value)) for key, value in config.items())
    return _field(17, _field(1, run_id) + _field(4, updates) + _field(8, name) + _field(17, _field(1, seconds)))


def _file(path: Path, records: list[bytes]) -> Path:
    """A log as LevelDB writes it: no piece goes beyond a block of 32 KiB, no head lies across the end of one."""
    log = bytearray(HEAD)
    for record in records:
        rest, begun = record, False
        while not begun or rest:
            left = BLOCK - len(log) % BLOCK
            if left < 7:
                log += bytes(left)
                continue
            piece, rest = rest[: left - 7], rest[left - 7 :]
            kind = (3 if rest else 4) if begun else (2 if rest else 1)
            log += struct.pack("<IHB", zlib.crc32(bytes([kind]) + piece), len(piece), kind) + piece
            begun = True
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(log)
    return path


def _evaluations(path: Path, **options: Any) -> list[tuple[str, float, float]]:
    return [(row["series"], row["compute"], row["reward"]) for row in read(path, **options).rows]


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_what_wandb_wrote(path: Path) -> None:
    found = read(path)
    assert found.metric == "eval/pass_rate"
    assert [(row["compute"], row["reward"]) for row in found.rows] == [(0, 0.1), (20, 0.2), (40, 0.3), (60, 0.4)]
    assert {(row["series"], row["seed"], row["unit"]) for row in found.rows} == {("grpo", 3, "steps")}
    by_hours = read(path, compute="perf/gpu_hours", seed="data.seed").rows[1]
    assert (by_hours["compute"], by_hours["seed"], by_hours["unit"]) == (1, 7, "GPU-hours")
    losses = read(path, metric="train/loss")
    assert len(losses.rows) == 7
    assert losses.left_out == {"not finite (NaN)": 1}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_numbers_inside_others_are_named_as_on_its_pages(path: Path) -> None:
    told = metrics(path)
    assert {"nested.a", "nested.b.c", "big"} <= set(told)
    assert not {name for name in told if name.startswith(("hist", "word", "flag", "list", "none", "_"))}


def test_runs_of_one_name_are_its_seeds(tmp_path: Path) -> None:
    for seed in (1, 2):
        _file(
            tmp_path / f"wandb/run-2026010{seed}_000000-id{seed}/run-id{seed}.wandb",
            [
                _run(f"id{seed}", "grpo", seed, seed=seed),
                *(_logged(at, eval__acc=at / 10 + seed / 100) for at in (1, 2, 3)),
            ],
        )
    rows = read(tmp_path / "wandb").rows
    assert [(row["series"], row["seed"], row["reward"]) for row in rows] == [
        ("grpo", seed, at / 10 + seed / 100) for seed in (1, 2) for at in (1, 2, 3)
    ]


def test_a_seed_that_does_not_tell_runs_of_one_name_apart_is_refused(tmp_path: Path) -> None:
    for seed in (1, 2):
        rows = [_logged(at, eval__acc=at / 10) for at in (1, 2, 3)]
        config = _run(f"id{seed}", "grpo", seed, **{"seed": seed, "data.seed": 7})
        _file(tmp_path / f"run-id{seed}/run-id{seed}.wandb", [config, *rows])
    assert {row["seed"] for row in read(tmp_path, seeds_in_names=True).rows} == {1, 2}
    with pytest.raises(CurveFileError, match="both called so"):
        read(tmp_path, seed="data.seed")


def test_runs_of_one_name_and_seed_have_their_folders_before_it(tmp_path: Path) -> None:
    for run in ("aa", "bb"):
        rows = [_logged(at, eval__acc=at / 10) for at in (1, 2, 3)]
        _file(tmp_path / f"wandb/run-{run}/run-{run}.wandb", [_run(run, "grpo", 1, seed=42), *rows])
    rows = read(tmp_path / "wandb").rows
    assert {(row["series"], row["seed"]) for row in rows} == {("run-aa/grpo", 42), ("run-bb/grpo", 42)}


def test_a_run_that_was_resumed_goes_on(tmp_path: Path) -> None:
    later = [_run("aa", "grpo", 20), *(_logged(at, eval__acc=at / 10 + 0.5) for at in (3, 4, 5))]
    first = [_run("aa", "", 10), *(_logged(at, eval__acc=at / 10) for at in (1, 2, 3))]
    _file(tmp_path / "wandb/run-1-aa/run-aa.wandb", later)
    _file(tmp_path / "wandb/run-2-aa/run-aa.wandb", first)
    (tmp_path / "wandb/latest-run").symlink_to("run-1-aa")
    found = _evaluations(tmp_path / "wandb")
    assert found == [("grpo", 1, 0.1), ("grpo", 2, 0.2), ("grpo", 3, 0.8), ("grpo", 4, 0.9), ("grpo", 5, 1.0)]
    assert _evaluations(tmp_path / "wandb/latest-run") == [("grpo", at, at / 10 + 0.5) for at in (3, 4, 5)]


def test_a_run_that_has_just_begun_hinders_none(tmp_path: Path) -> None:
    _file(tmp_path / "run-1-aa/run-aa.wandb", [_logged(at, eval__acc=at / 10) for at in (1, 2, 3)])
    (tmp_path / "run-2-bb").mkdir()
    for size in (0, 3, 7):
        (tmp_path / "run-2-bb/run-bb.wandb").write_bytes(HEAD[:size])
        found = read(tmp_path)
        assert len(found.rows) == 3
        assert "run-bb.wandb: no numbers are logged in it" in found.notes


def test_a_run_without_a_name_is_called_by_its_id(tmp_path: Path) -> None:
    rows = [_logged(at, eval__acc=at / 10) for at in (1, 2, 3)]
    assert _evaluations(_file(tmp_path / "run-aa.wandb", [_run("aa", "", 1), *rows]))[0] == ("aa", 1, 0.1)
    assert _evaluations(_file(tmp_path / "run-bb.wandb", rows))[0] == ("bb", 1, 0.1)


@pytest.mark.parametrize("length", [0, *range(32_703, 32_773, 7), 200_000])
def test_records_across_blocks(tmp_path: Path, length: int) -> None:
    records = [_field(4, b"x" * length), *(_logged(at, eval__acc=at / 1000) for at in range(1, 50))]
    found = _evaluations(_file(tmp_path / "run-aa.wandb", records))
    assert found == [("aa", at, at / 1000) for at in range(1, 50)]


def test_numbers_as_protobuf_has_them(tmp_path: Path) -> None:
    """`wandb_internal.proto` has fields for them, beside the JSON that versions so far write."""
    acc = b"".join([_field(2, "eval/acc"), bytes([6 << 3 | 1]), struct.pack("<d", 0.25)])
    records = [_field(2, _field(1, acc) + _field(1, _field(2, "step") + _field(5, step << 1))) for step in (3, 4, 5)]
    back = _field(2, _field(1, _field(1, "down") + _field(5, 2 * 7 - 1)))
    path = _file(tmp_path / "run-aa.wandb", [*records, back])
    assert _evaluations(path, metric="eval/acc") == [("aa", step, 0.25) for step in (3, 4, 5)]
    assert read(path, metric="down", compute="_step", per_step=1.0).rows[0]["reward"] == -7


def test_a_killed_run_leaves_half_a_record(tmp_path: Path) -> None:
    whole = _file(tmp_path / "run-aa.wandb", [_logged(at, eval__acc=at / 10) for at in (1, 2, 3, 4)]).read_bytes()
    told = [("aa", at, at / 10) for at in (1, 2, 3, 4)]
    cut = tmp_path / "run-bb.wandb"
    for size in range(len(whole) // 4 + 8, len(whole)):
        cut.write_bytes(whole[:size])
        found = read(cut)
        assert [("aa", row["compute"], row["reward"]) for row in found.rows] == told[: len(found.rows)]
        left = [note for note in found.notes if "no whole record" in note]
        assert left or size == len(HEAD) + (len(whole) - len(HEAD)) // 4 * len(found.rows)
        assert not [note for note in read(cut, growing=True).notes if "record" in note]
    assert len(found.rows) == 3


def test_damage_is_named(tmp_path: Path) -> None:
    whole = _file(tmp_path / "run-aa.wandb", [_logged(at, eval__acc=at / 10) for at in (1, 2, 3, 4)]).read_bytes()
    bent = tmp_path / "run-bb.wandb"
    for at in range(len(HEAD) - 3, len(whole), 5):
        bent.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            rows = read(bent).rows
        except CurveFileError as error:
            assert "bb.wandb" in str(error)  # noqa: PT017
        else:  # a length, which lies beyond the end of the file then: as if that were on its way
            assert [row["reward"] for row in rows] == [0.1, 0.2, 0.3, 0.4][: len(rows)]
            assert len(rows) < 4


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, records: list[bytes]) -> None:
    path = _file(tmp_path_factory.mktemp("any") / "run-aa.wandb", records)
    with pytest.raises(CurveFileError):
        read(path)
    path.write_bytes(HEAD + b"".join(records))
    with pytest.raises(CurveFileError):
        read(path)
