"""Prompts from files: rows, faults named with their number, held-out sets, templates, and passing by verifier."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pyarrow.parquet
import pytest
import torch
from tokenizers import AddedToken
from transformers import GenerationConfig

from forecurve.recipes.schema import Dataset
from trainer.engines import sampling_config
from trainer.errors import ConfigurationError
from trainer.models.tokenizer import end_tokens
from trainer.tasks import DatasetTask

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<go>{% endif %}"
)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """One token a byte, an end token, and a chat template."""
    from tests.trainer.byte_tokenizer import byte_tokenizer

    return byte_tokenizer(chat_template=TEMPLATE)


@pytest.fixture
def write(tmp_path) -> Callable[..., str]:
    """A JSONL file of rows."""

    def make(rows: list[Any], name: str = "train.jsonl") -> str:
        file = tmp_path / name
        file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return str(file)

    return make


def sums(count: int, **more) -> list[dict[str, Any]]:
    return [{"prompt": f"What is {i} + {i}?", "answer": str(2 * i), **more} for i in range(count)]


def task(tokenizer: Any, train: str, **section) -> DatasetTask:
    return DatasetTask(Dataset(**({"train": train, "verifiers": {"math": "exact"}} | section)), tokenizer)


def training(made: DatasetTask) -> list[str]:
    assert made.training_count is not None
    return [made.training_prompt(index).text for index in range(made.training_count)]


def test_every_row_is_either_trained_on_or_held_out_by_a_hash_of_its_text(tokenizer, write):
    rows = sums(400)
    made = task(tokenizer, write(rows), held_out_share=0.25)
    held_out = [prompt.text for prompt in made.held_out_prompts(400)]
    assert sorted(training(made) + held_out) == sorted(row["prompt"] for row in rows)
    assert 70 < len(held_out) < 130
    shuffled = task(tokenizer, write(rows[::-1], "other.jsonl"), held_out_share=0.25)
    assert [prompt.text for prompt in shuffled.held_out_prompts(30)] == held_out[:30]
    assert training(shuffled) == training(made)[::-1]
    assert [made.training_prompt(index).index for index in range(3)] == [0, 1, 2]
    assert made.held_out_prompts(1)[0].index == -1


def test_a_held_out_file_and_downstream_sets_are_judged_on_and_never_trained_on(tokenizer, write):
    made = task(
        tokenizer,
        write(sums(20)),
        held_out=write(sums(3), "held-out.jsonl"),
        downstream={"harder": write(sums(6)[4:], "harder.jsonl")},
    )
    assert {prompt.text for prompt in made.held_out_prompts(9)} == {f"What is {i} + {i}?" for i in range(3)}
    assert [prompt.text for prompt in made.downstream_prompts()["harder"]] == ["What is 4 + 4?", "What is 5 + 5?"]
    assert training(made) == [f"What is {i} + {i}?" for i in (3, *range(6, 20))]
    assert made.left_out["held_out_elsewhere"] == 5


def test_duplicates_and_too_long_prompts_are_left_out_and_counted(tokenizer, write):
    rows = [*sums(10), *sums(2), {"prompt": "x" * 100, "answer": "1"}]
    made = task(tokenizer, write(rows), max_prompt_tokens=60, held_out=write(sums(1), "held-out.jsonl"))
    assert len(training(made)) == 9
    assert made.left_out == {"duplicates": 2, "too_long": 1, "held_out_elsewhere": 1, "without_weight": 0}


def test_rows_of_a_task_without_weight_are_left_out_and_counted(tokenizer, write):
    rows = [*sums(40), *({"prompt": f"a riddle {i}", "answer": "cat", "task": "riddles"} for i in range(30))]
    verifiers, mixture = {"math": "exact", "riddles": "exact"}, {"math": 3, "riddles": 0}
    made = task(tokenizer, write(rows), held_out_share=0.3, verifiers=verifiers, mixture=mixture)
    assert made.left_out["without_weight"] == 30
    assert made.trained_on + len(made.held_out_prompts(70)) == 40


def test_parquet_rows_are_those_of_json_lines(tokenizer, write, tmp_path):
    from pyarrow import Table, parquet

    rows = sums(60, difficulty=2.5)
    parquet.write_table(Table.from_pylist(rows), tmp_path / "train.parquet")
    one, other = task(tokenizer, write(rows)), task(tokenizer, str(tmp_path / "train.parquet"))
    assert training(one) == training(other)
    assert {prompt.difficulty for prompt in other.held_out_prompts(60)} == {2.5}


def test_files_are_read_as_other_programs_write_them(tokenizer, write, tmp_path):
    from decimal import Decimal

    import pyarrow as pa
    from pyarrow import parquet

    usual = write(sums(60))
    marked = tmp_path / "marked.jsonl"
    marked.write_bytes(b"\xef\xbb\xbf" + Path(usual).read_bytes())
    assert training(task(tokenizer, str(marked))) == training(task(tokenizer, usual))
    rows = [{"prompt": row["prompt"], "answer": Decimal(row["answer"]) / 4} for row in sums(60)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "TRAIN.PARQUET")
    decimal = task(tokenizer, str(tmp_path / "TRAIN.PARQUET"))
    assert training(decimal) == training(task(tokenizer, usual))
    packed = tmp_path / "train.jsonl.gz"
    packed.write_bytes(b"\x1f\x8b")
    with pytest.raises(ConfigurationError, match="which is packed"):
        task(tokenizer, str(packed))


def test_a_prompt_passes_through_the_chat_template_with_the_system_message_first(tokenizer, write):
    made = task(tokenizer, write(sums(60)), system_prompt="Be brief.")
    prompt = made.training_prompt(0)
    assert made.texts(prompt.tokens[None], [len(prompt.tokens)]) == [f"<system>Be brief.<user>{prompt.text}<go>"]
    plain = task(tokenizer, write(sums(60)), chat_template=False).training_prompt(0)
    assert made.texts(plain.tokens[None], [len(plain.tokens)]) == [plain.text]


def test_a_response_passes_when_its_verifier_says_so_and_it_ended_itself(tokenizer, write):
    rows = [*sums(20), {"prompt": "Add.", "answer": "unused", "task": "programs", "tests": ["assert add(1, 1) == 2"]}]
    made = task(
        tokenizer,
        write(rows),
        held_out=write(sums(1), "held-out.jsonl"),
        verifiers={"math": "math", "programs": "code"},
    )
    by_text = {made.training_prompt(index).text: made.training_prompt(index) for index in range(20)}
    try:
        given = [r"\boxed{10}<end>", r"\boxed{10}", r"\boxed{20/2}<end>", r"\boxed{11}<end>", "<end>"]
        assert judged(made, tokenizer, by_text["What is 5 + 5?"], given) == [True, False, True, False, False]
        program = "```python\ndef add(a, b):\n    return a + b\n```<end>"
        assert judged(made, tokenizer, by_text["Add."], [program, "add<end>"]) == [True, False]
        assert made.metrics()["verifier/judged"] == 6  # the one that was cut was not worth a look
    finally:
        made.close()


def judged(made: DatasetTask, tokenizer: Any, prompt: Any, responses: list[str]) -> list[bool]:
    rows = [tokenizer.encode(response) for response in responses]
    tokens = np.zeros((len(rows), max(map(len, rows)) + 1), dtype=np.int64)
    for padded, row in zip(tokens, rows, strict=True):
        padded[: len(row)] = row
    return list(made.passed(prompt, tokens, [len(row) for row in rows]))


def test_a_response_passes_whichever_end_token_it_ends_with_and_none_of_them_is_read(tokenizer, write):
    turn = tokenizer.encode("!")[0]
    made = DatasetTask(Dataset(train=write(sums(60)), verifiers={"math": "exact"}), tokenizer, (0, turn))
    prompt = next(made.training_prompt(i) for i in range(60) if made.training_prompt(i).answer == "10")
    assert judged(made, tokenizer, prompt, ["10<end>", "10!", "10", "!"]) == [True, True, False, False]


@pytest.mark.parametrize("special", [True, False])
def test_only_what_follows_the_thinking_counts_whatever_the_tokenizer_makes_of_its_end(write, special):
    thinks = thinking_tokenizer(special)
    made = task(thinks, write(sums(60)), chat_template=False)
    prompt = next(made.training_prompt(i) for i in range(60) if made.training_prompt(i).answer == "10")
    given = [r"\boxed{10}</think>I give up<end>", r"\boxed{3}</think>\boxed{10}<end>", "</think></think>10<end>"]
    assert judged(made, thinks, prompt, given) == [False, True, True]
    assert judged(made, thinks, prompt, ["10</think><end>", "10<end>", "<end>"]) == [False, True, False]


@pytest.mark.parametrize("special", [True, False])
def test_a_users_own_verifier_gets_the_thinking_too(write, tmp_path, monkeypatch, special):
    (tmp_path / "sees_all.py").write_text("def check(response, answer):\n    return response == 'so</think>then'\n")
    monkeypatch.syspath_prepend(tmp_path)
    thinks = thinking_tokenizer(special)
    made = task(thinks, write(sums(60)), chat_template=False, verifiers={"math": "sees_all:check"})
    try:
        assert judged(made, thinks, made.training_prompt(0), ["so</think>then<end>", "then<end>"]) == [True, False]
    finally:
        made.close()


def thinking_tokenizer(special: bool) -> Any:
    """One that has a token for the end of thinking."""
    from tests.trainer.byte_tokenizer import byte_tokenizer

    made = byte_tokenizer()
    made.add_tokens([AddedToken("</think>", special=special)], special_tokens=special)
    return made


@pytest.mark.parametrize("special", [True, False, None])
def test_thinking_is_over_when_the_phrases_last_word_stands_in_a_response_however_it_is_cut_into_tokens(
    special, recipe, write
):
    from tests.trainer.byte_tokenizer import byte_tokenizer

    cuts = byte_tokenizer(merges=[("Ġ", "<"), (">", "Ċ")]) if special is None else thinking_tokenizer(special)
    made = task(cuts, write(sums(60)), chat_template=False)
    control = {"kind": "interruption", "phrase": "Stop. </think>", "after_low": 1, "after_high": 1, "answer_tokens": 1}
    given = recipe({f"length_control.{name}": value for name, value in control.items()})
    interruption = sampling_config(given, made).interruption
    assert made.texts(np.array([interruption.phrase]), [len(interruption.phrase)]) == ["Stop. </think>"]
    for text, over in [("4. </think>", True), ("4.\n</think>\nSo", True), ("<think>4", False), ("</think", False)]:
        assert interruption.closed(np.array([made.encode(text)])).tolist() == [over], text


def test_an_interruption_phrase_is_encoded_without_special_tokens(tokenizer, write):
    made = task(tokenizer, write(sums(60)))
    tokens = made.encode("Time is up.</think>")
    assert made.texts(np.array([tokens]), [len(tokens)]) == ["Time is up.</think>"]
    assert not set(made.end_tokens) & set(tokens)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{not json", "row 3: not JSON"),
        ('["a", "list"]', "row 3: a list, not an object"),
        ({"answer": "1"}, "row 3: prompt is None, not text"),
        ({"prompt": ["a"], "answer": "1"}, r"row 3: prompt is \['a'\], not text"),
        ({"prompt": "  ", "answer": "1"}, "row 3: prompt is '  ', not text"),
        ({"prompt": "a"}, "row 3: no answer"),
        ({"prompt": "a", "answer": ""}, "row 3: no answer"),
        ({"prompt": "a", "answer": "  "}, "row 3: no answer"),
        ({"prompt": "a", "answer": float("nan")}, "row 3: answer is nan, neither text nor a number"),
        ({"prompt": "a", "answer": "1", "task": ["math"]}, r"row 3: task is \['math'\]"),
        ({"prompt": "half \ud800 of a pair", "answer": "1"}, r"row 3: prompt is 'half \\ud800"),
        ({"prompt": "a", "answer": "1", "difficulty": 10**400}, "row 3: difficulty is 1000"),
        ({"prompt": "a", "answer": "1", "difficulty": float("inf")}, "row 3: difficulty is inf"),
        ("[" * 100_000, "row 3: not JSON"),
        ({"prompt": "a", "answer": {"x": 1}}, "row 3: answer is {'x': 1}, neither text nor a number"),
        (
            {"prompt": "a", "answer": "1", "task": "chess"},
            "row 3: task is 'chess', and task.verifiers has",
        ),
        ({"prompt": "a", "answer": "1", "difficulty": "hard"}, "row 3: difficulty is 'hard', not a number"),
        ({"prompt": "a", "task": "code"}, "row 3: no answer; a program needs `tests`"),
        ({"prompt": "a", "task": "code", "tests": []}, "row 3: no answer; a program needs `tests`"),
        ({"prompt": "a", "task": "code", "tests": [{"input": 1}]}, "row 3: tests are neither"),
    ],
)
def test_a_faulty_row_is_refused_with_file_and_number(tokenizer, write, row, message):
    file = write([*sums(2), row, *sums(2)])
    with pytest.raises(ConfigurationError, match=message) as refused:
        task(tokenizer, file, verifiers={"math": "exact", "code": "code"})
    assert file in str(refused.value)


def test_text_that_is_not_utf8_is_refused_with_its_row(tokenizer, tmp_path):
    file = tmp_path / "train.jsonl"
    file.write_bytes(b'{"prompt": "a", "answer": "1"}\n{"prompt": "\xff", "answer": "1"}\n')
    with pytest.raises(ConfigurationError, match="row 2: not UTF-8"):
        task(tokenizer, str(file))


def test_missing_empty_and_unreadable_files_are_refused_by_field(tokenizer, write, tmp_path):
    with pytest.raises(ConfigurationError, match=r"task.train is 'nowhere.jsonl', and there is no such file"):
        task(tokenizer, "nowhere.jsonl")
    with pytest.raises(ConfigurationError, match=r"task.held_out is '.*none.jsonl', and there is no such file"):
        task(tokenizer, write(sums(3)), held_out=str(tmp_path / "none.jsonl"))
    with pytest.raises(ConfigurationError, match=r"task.downstream.aime is .* which has no rows"):
        task(tokenizer, write(sums(30)), downstream={"aime": write([], "empty.jsonl")})
    (tmp_path / "broken.parquet").write_text("no parquet")
    with pytest.raises(ConfigurationError, match="cannot be read as Parquet"):
        task(tokenizer, str(tmp_path / "broken.parquet"))


def test_a_set_with_nothing_left_in_it_is_refused_with_the_reasons(tokenizer, write):
    with pytest.raises(ConfigurationError, match=r"no training prompt is left of the data \(.* 30 too long"):
        task(tokenizer, write(sums(30)), max_prompt_tokens=3, held_out=write(sums(1), "held-out.jsonl"))
    with pytest.raises(ConfigurationError, match="no held-out prompt is left"):
        task(tokenizer, write(sums(1)), held_out_share=1e-9)


def test_a_tokenizer_without_a_chat_template_is_refused_unless_none_is_wanted(tokenizer, write):
    from transformers import PreTrainedTokenizerFast

    bare = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, eos_token="<end>")
    with pytest.raises(ConfigurationError, match="has no chat template; set it to false"):
        task(bare, write(sums(60)))
    assert task(bare, write(sums(60)), chat_template=False).training_count


def test_a_template_that_takes_no_system_prompt_is_refused_with_what_it_says(tokenizer, write):
    strict = copy.deepcopy(tokenizer)
    strict.chat_template = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}hi"
    with pytest.raises(ConfigurationError, match=r"\(no system role\); set task\.system_prompt to null"):
        task(strict, write(sums(60)), system_prompt="Be brief.")
    assert task(strict, write(sums(60))).training_count


def test_a_response_ends_with_any_token_that_the_models_folder_names(tokenizer, tmp_path):
    assert end_tokens(tmp_path, tokenizer) == (0,)
    for named, found in ((None, (0,)), (0, (0,)), (5, (0, 5)), ([5, 0, 7], (0, 5, 7))):
        GenerationConfig(eos_token_id=named).save_pretrained(tmp_path)
        assert end_tokens(tmp_path, tokenizer) == found


def test_numbers_are_answers_too(tokenizer, write):
    rows = [{"prompt": f"{i}", "answer": i / 2} for i in range(40)]
    made = task(tokenizer, write(rows))
    assert made.training_prompt(0).answer == str(float(made.training_prompt(0).text) / 2)


def test_the_file_s_own_path_may_be_relative(tokenizer, write, monkeypatch):
    file = Path(write(sums(40)))
    monkeypatch.chdir(file.parent)
    assert training(task(tokenizer, file.name)) == training(task(tokenizer, str(file)))


def test_a_run_trains_a_model_on_a_mixture_and_judges_it_on_sets_apart(tokenizer, write, tmp_path, monkeypatch):
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from forecurve.recipes import Recipe
    from trainer.launch import Launch, train

    (tmp_path / "own_verifier.py").write_text("def check(response, answer):\n    return len(response) % 2 == 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    config = Qwen3Config(vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id, **sizes, **heads)
    Qwen3ForCausalLM(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    rows = sums(30) + [{**row, "prompt": row["prompt"] + " Say it in words.", "task": "words"} for row in sums(60)]
    recipe = Recipe.model_validate(
        {
            "task": {
                "kind": "dataset",
                "train": write(rows),
                "held_out_share": 0.4,
                "verifiers": {"math": "exact", "words": "own_verifier:check"},
                "mixture": {"math": 1, "words": 3},
                "downstream": {"easy": write(sums(3), "easy.jsonl")},
            },
            "model": {"kind": "huggingface", "path": str(tmp_path / "model")},
            "algorithm": {"no_positive_resampling": 0.9, "min_active_prompts": 1},
            "batch": {"prompts_per_step": 4, "generations_per_prompt": 4},
            "generation": {"max_tokens": 64},
            "evaluation": {"every_steps": 2, "prompts": 16, "samples": 1},
            "budget": {"unit": "steps", "compute": 2},
        }
    )
    train(recipe, Launch(tmp_path / "run", ray=False, progress=False))
    metrics = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    evaluations = [json.loads(line) for line in (tmp_path / "run" / "evaluations.jsonl").open()]
    told = {name for line in metrics for name in line.get("metrics", line)}
    assert {"verifier/judged", "verifier/timeouts", "verifier/crashes", "prompts/active"} <= told
    assert [line["step"] for line in evaluations] == [0, 2]
    assert all(line["details"]["downstream/easy/prompts"] == 3 for line in evaluations)
    rewards = [line.get("metrics", line).get("train/pass_rate_all") for line in metrics]
    assert max(rate for rate in rewards if rate is not None) > 0


def test_a_text_that_many_rows_of_parquet_have_is_in_memory_once(tmp_path):
    from trainer.tasks import rows

    arrow = pytest.importorskip("pyarrow")
    many, same = tmp_path / "many.parquet", arrow.array(["What is 1 + 1?", "2"])
    numbers = arrow.array([0, 0, 0])
    prompts, answers = (arrow.DictionaryArray.from_arrays(indices, same) for indices in (numbers, arrow.array([1] * 3)))
    columns = {"prompt": prompts, "answer": answers, "unread": prompts}
    arrow.parquet.write_table(arrow.table(columns), many, row_group_size=2)
    found = rows.read_rows("task.train", str(many), {"math": "math"})
    assert [(row.prompt, row.answer) for row in found] == [("What is 1 + 1?", "2")] * 3
    assert len({id(row.prompt) for row in found}) == 1


def test_more_than_memory_holds_is_refused_while_it_is_read(write, tmp_path, monkeypatch):
    from trainer.tasks import rows

    path = write([{"prompt": f"{number}?", "answer": "1"} for number in range(3)])
    many = tmp_path / "many.parquet"
    arrow.parquet.write_table(arrow.table({"prompt": ["1?"] * 3, "answer": ["1"] * 3}), many)
    monkeypatch.setattr(rows, "MOST_ROWS", 2)
    for file in (path, str(many)):
        with pytest.raises(ConfigurationError, match="which has more than 2 rows; give fewer"):
            rows.read_rows("task.train", file, {"math": "math"})
    monkeypatch.setattr(rows, "MOST_IN_A_LINE", 20)
    with pytest.raises(ConfigurationError, match="row 1: has more than 20 bytes; one object a line"):
        rows.read_rows("task.train", path, {"math": "math"})
