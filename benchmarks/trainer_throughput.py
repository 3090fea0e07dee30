"""Completions trained per second and time to a pass rate, beside TRL's GRPOTrainer: same model, task, batch, machine.

    python -m venv --system-site-packages /tmp/peer && /tmp/peer/bin/pip install trl
    python benchmarks/trainer_throughput.py --peer-python /tmp/peer/bin/python [--steps 60] [--threads 2]

A Qwen3 of 100 thousand parameters is warm-started on demonstrations of the torus task (minutes; `--base FOLDER` keeps
it and takes it again). Both trainers start from it, on the CPU, with 32 prompts x 16 completions of at most 24 tokens
a step, the same reward and learning rate, an evaluation of 256 held-out prompts x 4 before the first step and every 20,
logging, and a checkpoint every 50: what their users get. Ours runs as `python -m trainer` does by default (generator
and learner at the same time, a thread each), TRL on `--threads` threads. They run one after the other, by turns
(`--runs`). Speed is that of all steps between the first and the last, evaluations and checkpoints included. Time to the
pass rate begins where training does, models loaded and workers up (ours have rehearsed a step by then), before the
first evaluation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from common import answer, note, parser, table

ROOT = Path(__file__).parents[1]
PROMPTS, SAMPLES, TOKENS = 32, 16, 24
EVALUATED, EVALUATION_SAMPLES, EVALUATE_EVERY, CHECKPOINT_EVERY = 256, 4, 20, 50
LEARNING_RATE, WARMUP, WEIGHT_CAP = 3e-4, 20, 4.0
WARM_START_STEPS = 400


def main() -> None:
    """Make the base, run both by turns, print the ratios."""
    arguments = parser(__doc__, runs=1)
    arguments.add_argument("--peer-python", default=sys.executable, help="a Python that has trl, and all that we need")
    arguments.add_argument("--steps", type=int, default=60)
    arguments.add_argument("--threads", type=int, default=2, help="of the peer")
    arguments.add_argument("--base", type=Path, help="folder of the warm-started model; made when it is not there")
    arguments.add_argument("--target", type=float, default=0.4, help="pass rate to reach")
    arguments.add_argument("--ours-only", action="store_true", help="leave the peer out")
    arguments.add_argument("--peer", type=Path, help="(the script calls itself with this to run the peer)")
    given = arguments.parse_args()
    if given.peer:
        run_peer(given)
        return
    with tempfile.TemporaryDirectory() as scratch:
        given.base = given.base or Path(scratch) / "base"
        make_base(given.base)
        found: dict[str, list[dict[str, Any]]] = {"ours": [], "trl": []}
        for turn in range(given.runs):
            found["ours"].append(ours(given, Path(scratch) / f"ours-{turn}", seed=turn))
            if not given.ours_only:
                found["trl"].append(peer(given, Path(scratch) / f"trl-{turn}"))
            note(
                ", ".join(f"{name} {runs[-1]['completions_per_second']:,.0f}/s" for name, runs in found.items() if runs)
            )
    report(given, found)


def make_base(folder: Path, head_size: int = 16) -> None:
    """The warm-started Qwen3 and a tokenizer of single characters."""
    if (folder / "config.json").exists():
        return
    import torch
    from transformers import Qwen3Config

    from trainer.base_weights import warm_start
    from trainer.models import huggingface
    from trainer.tasks import TorusTask
    from trainer.tasks import vocabulary as vocab

    note(f"warm-starting the base model in {folder}")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    config = Qwen3Config(
        vocab_size=vocab.SIZE,
        hidden_size=64,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=head_size,
        max_position_embeddings=256,
        initializer_range=0.1,
        tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
        pad_token_id=vocab.PAD,
        bos_token_id=vocab.BEGIN,
        eos_token_id=vocab.END,
    )
    policy, task = huggingface.from_config(config), TorusTask()
    warm_start.teach(policy, task, WARM_START_STEPS, progress=True)
    note(f"skill {warm_start.skill(policy, task, walks=32):.2f}")
    policy.save_folder(folder)
    character_tokenizer().save_pretrained(folder)


def character_tokenizer() -> Any:
    """The torus task's tokens as a Hugging Face tokenizer: the peer needs one."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from trainer.tasks import vocabulary as vocab

    named = ["_", "$", "^", *vocab.CHARACTERS]
    words = {name: place for place, name in enumerate(named + [f"<{n}>" for n in range(len(named), vocab.SIZE)])}
    made = Tokenizer(models.WordLevel(words, "_"))
    made.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="_", eos_token="$", bos_token="^")


def ours(given: Namespace, directory: Path, seed: int) -> dict[str, Any]:
    """Our trainer as its command runs it."""
    directory.mkdir()
    recipe = {
        "name": "throughput",
        "task": {"kind": "torus"},
        "model": {"kind": "huggingface", "path": str(given.base)},
        "algorithm": {"is_weight_cap": WEIGHT_CAP},
        "length_control": {"kind": "none"},
        "batch": {"prompts_per_step": PROMPTS, "generations_per_prompt": SAMPLES},
        "generation": {"max_tokens": TOKENS},
        "optimizer": {"learning_rate": LEARNING_RATE, "warmup_steps": WARMUP},
        "evaluation": {"every_steps": EVALUATE_EVERY, "prompts": EVALUATED, "samples": EVALUATION_SAMPLES},
        "checkpoint": {"every_steps": CHECKPOINT_EVERY},
        "budget": {"compute": given.steps, "unit": "steps"},
        "resources": {"cpus": 2},
        "seed": seed,
    }
    file = directory / "recipe.json"
    file.write_text(json.dumps(recipe))
    command = [sys.executable, "-m", "trainer", "--recipe", str(file), "--out", str(directory / "run")]
    run(command, threads=1)
    lines = [json.loads(line) for line in (directory / "run" / "metrics.jsonl").read_text().splitlines()]
    steps = [(line["step"], seconds(line["time"])) for line in lines if "train/reward" in line["metrics"]]
    first = next(line for line in lines if "time/step" in line["metrics"])
    began = seconds(first["time"]) - first["metrics"]["time/step"]
    judged = [json.loads(line) for line in (directory / "run" / "evaluations.jsonl").read_text().splitlines()]
    evaluations = [(line["step"], seconds(line["time"]), line["reward"]) for line in judged]
    kept = [
        line["metrics"]["train/kept_prompts"] / PROMPTS for line in lines if "train/kept_prompts" in line["metrics"]
    ]
    return summary(began, steps, evaluations, given.target) | {"kept_share": sum(kept) / len(kept)}


def peer(given: Namespace, directory: Path) -> dict[str, Any]:
    """TRL, in a process of its own."""
    command = [given.peer_python, __file__, "--peer", str(directory), "--base", str(given.base)]
    run([*command, "--steps", str(given.steps), "--threads", str(given.threads)], given.threads)
    lines = [json.loads(line) for line in (directory / "times.jsonl").read_text().splitlines()]
    began, *lines = lines
    steps = [(line["step"], line["time"]) for line in lines if "reward" not in line]
    evaluations = [(line["step"], line["time"], line["reward"]) for line in lines if "reward" in line]
    return summary(began["time"], steps, evaluations, given.target) | {"kept_share": 1.0}


def run(command: list[str], threads: int) -> None:
    """The command, with our modules on its path and so many threads."""
    note(" ".join(command[:6]) + " ...")
    variables = {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(ROOT), "TRL_EXPERIMENTAL_SILENCE": "1"}
    subprocess.run(command, env=os.environ | variables, check=True, stdout=subprocess.DEVNULL)


def run_peer(given: Namespace) -> None:
    """GRPOTrainer with the same settings; writes when each step and each evaluation was done."""
    import time

    import numpy as np
    import torch
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from trainer.tasks import TorusTask

    torch.set_num_threads(given.threads)
    task = TorusTask()
    training = [task.training_prompt(index) for index in range(PROMPTS * given.steps)]
    held_out = task.held_out_prompts(EVALUATED)
    given.peer.mkdir(parents=True)
    times = (given.peer / "times.jsonl").open("w", buffering=1)

    def rows(prompts: list[Any], name: str) -> Any:
        texts = [task.texts(prompt.tokens[None], [len(prompt.tokens)])[0] for prompt in prompts]
        return Dataset.from_list([{"prompt": text, "of": name, "at": at} for at, text in enumerate(texts)])

    def reward(completion_ids: list[list[int]], of: list[str], at: list[int], **_: Any) -> list[float]:
        sets = {"training": training, "held-out": held_out}
        return [
            1.0 if task.passed(sets[name][place], np.array([ids]), [len(ids)])[0] else -1.0
            for ids, name, place in zip(completion_ids, of, at, strict=True)
        ]

    class Times(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            times.write(json.dumps({"time": time.time()}) + "\n")

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            times.write(json.dumps({"step": state.global_step, "time": time.time()}) + "\n")

        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
            rate = (metrics["eval_reward"] + 1) / 2
            times.write(json.dumps({"step": state.global_step, "time": time.time(), "reward": rate}) + "\n")

    settings = GRPOConfig(
        output_dir=str(given.peer / "run"),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=PROMPTS * SAMPLES,
        gradient_accumulation_steps=1,
        num_generations=SAMPLES,
        num_generations_eval=EVALUATION_SAMPLES,
        per_device_eval_batch_size=EVALUATED * EVALUATION_SAMPLES,
        max_completion_length=TOKENS,
        max_steps=given.steps,
        shuffle_dataset=False,
        loss_type="cispo",
        epsilon_high=WEIGHT_CAP,
        scale_rewards="batch",
        beta=0.0,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=WARMUP,
        adam_beta1=0.9,
        adam_beta2=0.95,
        adam_epsilon=1e-15,
        weight_decay=0.01,
        max_grad_norm=1.0,
        eval_strategy="steps",
        eval_steps=EVALUATE_EVERY,
        eval_on_start=True,
        save_steps=CHECKPOINT_EVERY,
        report_to="none",
        disable_tqdm=True,
        seed=0,
    )
    GRPOTrainer(
        model=str(given.base),
        reward_funcs=reward,
        args=settings,
        train_dataset=rows(training, "training"),
        eval_dataset=rows(held_out, "held-out"),
        processing_class=character_tokenizer(),
        callbacks=[Times()],
    ).train()


def summary(
    began: float, steps: list[tuple[int, float]], evaluations: list[tuple[int, float, float]], target: float
) -> dict[str, Any]:
    """Speed between the first and the last step; seconds from the beginning to the first evaluation at the target."""
    completions = (steps[-1][0] - steps[0][0]) * PROMPTS * SAMPLES
    reached = [time - began for _, time, rate in evaluations if rate >= target]
    return {
        "completions_per_second": completions / (steps[-1][1] - steps[0][1]),
        "seconds_to_target": reached[0] if reached else None,
        "first": evaluations[0][2],
        "last": evaluations[-1][2],
    }


def seconds(moment: str) -> float:
    """Seconds of an ISO time."""
    return datetime.fromisoformat(moment).timestamp()


def report(given: Namespace, found: dict[str, list[dict[str, Any]]]) -> None:
    """Medians over the turns; and the ratios of each turn, because a machine's own speed may change between turns."""
    body = {name: {key: middle([run[key] for run in runs]) for key in runs[0]} for name, runs in found.items() if runs}
    ratios = {
        "speed": by_turn(found, lambda ours, theirs: ours["completions_per_second"] / theirs["completions_per_second"]),
        "time_to_target": by_turn(found, sooner),
    }
    if given.json:
        answer({"target": given.target, "steps": given.steps, "runs": given.runs, "ratios": ratios} | body)
        return
    columns = ["completions_per_second", "seconds_to_target", "first", "last", "kept_share"]
    table(["", *columns], [[name, *(row[key] for key in columns)] for name, row in body.items()])
    says = {"speed": "times TRL's", "time_to_target": f"times less than TRL to a pass rate of {given.target:g}"}
    for name, of_turns in ratios.items():
        if of_turns:
            each = " ".join(f"{ratio:.2f}" for ratio in of_turns)
            print(f"{name}: {median(of_turns):.2f} {says[name]} (asked: 4); by turn {each}")


def by_turn(found: dict[str, list[dict[str, Any]]], ratio: Callable[..., float | None]) -> list[float]:
    """The ratio in each turn in which both have one."""
    ratios = (ratio(ours, theirs) for ours, theirs in zip(found["ours"], found["trl"], strict=False))
    return [value for value in ratios if value is not None]


def sooner(ours: dict[str, Any], theirs: dict[str, Any]) -> float | None:
    """How many times sooner we were at the target; None where one was not."""
    times = theirs["seconds_to_target"], ours["seconds_to_target"]
    return None if None in times else float(times[0] / times[1])


def middle(values: list[Any]) -> float | None:
    """Median; None where a run has no figure."""
    return None if any(value is None for value in values) else median(values)


if __name__ == "__main__":
    main()
