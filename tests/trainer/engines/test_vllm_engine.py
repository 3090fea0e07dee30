"""A real vLLM engine, on a GPU where there is one, started once for all.

Log-probs, weight swaps under way, interruption, the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from forecurve.recipes import SCALERL, Recipe, with_changes
from tests.trainer.closings import closes_with
from tests.trainer.engines.vllm_parts import (
    DEVICE,
    VOCABULARY,
    logprobs_over_swaps,
    make_biased_folder,
    options,
    plain_logprobs,
    read,
)
from trainer.engines.base import Interruption, SamplingConfig
from trainer.engines.vllm_adapter import CPU_HEAD_SIZES, PREFILL_TOKENS, missing
from trainer.engines.vllm_engine import VllmEngine
from trainer.errors import ConfigurationError, TrainerError
from trainer.generation.counted_engine import CountedEngine
from trainer.learner import Learner
from trainer.models import huggingface
from trainer.models.base import pad_left
from trainer.types import Group, Prompt, Request, Responses

pytestmark = [pytest.mark.vllm, pytest.mark.skipif(missing() is not None, reason=str(missing()))]

END, TEMPERATURE, MAX_TOKENS, ROWS = 1, 0.8, 96, 512
PHRASE = (5, 6, 7)
# The two run the same sums in another order, over up to a hundred steps; vLLM's attention in float32 multiplies with 10
# bits of a number on a GPU (TF32), most likely the difference there.
TOLERANCE = 2e-3 if DEVICE == "cpu" else 4e-2
MISMATCH = 1e-6 if DEVICE == "cpu" else 2e-5


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two models of one shape: the one an engine starts with, and the one it is given later."""
    home = tmp_path_factory.mktemp("qwen2")
    return make_biased_folder(home / "old", 0), make_biased_folder(home / "new", 1)


@pytest.fixture(scope="module")
def engine(folders: tuple[Path, Path]) -> Iterator[VllmEngine]:
    sampling = SamplingConfig(
        MAX_TOKENS, TEMPERATURE, (END,), interruption=Interruption(PHRASE, closes_with(*PHRASE), 4)
    )
    made = VllmEngine(options(folders[0], context=128, rows=ROWS), sampling)
    yield made
    made.close()


def weights(folder: Path) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in read(folder).state_dict().items()}


def requests(count: int, samples: int = 4, interrupt_at: list[int] | None = None, seed: int = 7) -> list[Request]:
    rng = np.random.default_rng(3)
    at = None if interrupt_at is None else np.array(interrupt_at)
    prompts = [Prompt("", "", rng.integers(2, VOCABULARY, 4 + key)) for key in range(count)]
    return [Request(key, prompt, samples, (seed, key), at) for key, prompt in enumerate(prompts)]


def drained(engine: VllmEngine) -> list[Responses]:
    finished: list[Responses] = []
    while engine.busy:
        finished += engine.step()
    return sorted(finished, key=lambda responses: responses.key)


def run(engine: VllmEngine, batch: list[Request]) -> list[Responses]:
    engine.submit(batch)
    return drained(engine)


def rows(batch: list[Request], made: list[Responses]):
    """Of every row: its prompt, and what was made of it within its length."""
    for request, responses in zip(batch, made, strict=True):
        for g, length in enumerate(responses.lengths):
            inside = slice(0, int(length))
            yield request.prompt.tokens, responses.tokens[g, inside], responses, g, inside


def _family(core: int) -> list[psutil.Process]:
    process = psutil.Process(core)
    return [process, *process.children(recursive=True)]


@pytest.fixture
def at_start(engine: VllmEngine, folders: tuple[Path, Path]) -> int:
    """The engine holds the old weights; the version they have."""
    engine.load_weights(0, weights(folders[0]))
    return 0


def test_logprobs_are_those_of_the_policy_that_the_learner_trains(engine, folders, at_start):
    batch = requests(4)
    made = run(engine, batch)
    policy = huggingface.load(folders[0])
    prompts, mask = pad_left([request.prompt.tokens for request in batch])
    with torch.inference_mode():
        last, cache = policy.prefill(prompts, mask)
        for index, responses in enumerate(made):
            owner = torch.full((len(responses.tokens),), index)
            tokens = torch.from_numpy(responses.tokens)
            rest = policy.respond(tokens[:, :-1], cache.rows(owner))
            logits = policy.logits(torch.cat([last[owner][:, None], rest], 1)) / TEMPERATURE
            expected = logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0].numpy()
            np.testing.assert_allclose(
                responses.logprobs[responses.sampled], expected[responses.sampled], atol=TOLERANCE
            )
    assert np.concatenate([responses.logprobs.ravel() for responses in made]).min() < -4  # far from uniform


def test_a_response_ends_with_its_first_end_token_or_at_the_budget(engine, at_start):
    batch = requests(4, samples=8)
    for _, tokens, responses, g, inside in rows(batch, run(engine, batch)):
        ends = np.flatnonzero(tokens == END)
        assert ends.tolist() == ([len(tokens) - 1] if responses.finished[g] else [])
        assert responses.finished[g] or len(tokens) == MAX_TOKENS
        assert responses.sampled[g, inside].all()
        assert not responses.sampled[g, inside.stop :].any()


@pytest.mark.slow
def test_a_vllm_that_stands_still_shows_no_sign_of_life_while_it_is_asked_for_results(engine, at_start):
    """Its processes are stopped in the middle of a batch: looks at what is finished are no signs, tokens are."""
    counted = CountedEngine(engine)
    counted.submit(requests(8, samples=32))
    begun = counted.signs
    while counted.signs == begun:
        assert counted.busy
        counted.step()
    family = [process for core in engine.process_ids for process in _family(core)]
    try:
        for process in family:
            process.suspend()
        finished = [each for _ in range(20) for each in counted.step()]  # what was on its way arrives
        stopped = counted.signs
        finished += [each for _ in range(20) for each in counted.step()]
        assert counted.signs == stopped
    finally:
        for process in family:
            process.resume()
    finished += drained(engine)
    assert counted.signs > stopped
    made = sum(int(responses.lengths.sum()) for responses in finished)
    assert len(finished) == 8
    assert counted.signs - begun == pytest.approx(made)


@pytest.mark.slow  # 5 s; rows that wait are vLLM's own
def test_more_prompts_than_run_together_are_all_answered(engine, at_start):
    rng = np.random.default_rng(5)
    prompts = [Prompt("", "", rng.integers(2, VOCABULARY, 28)) for _ in range(16)]
    batch = [Request(key, prompt, ROWS // 16, (9, key)) for key, prompt in enumerate(prompts)]
    assert ROWS * 28 > PREFILL_TOKENS
    made = run(engine, batch)
    assert [responses.key for responses in made] == [request.key for request in batch]


def test_a_seed_decides_a_response_whatever_else_is_in_the_batch(engine, at_start):
    together, alone = run(engine, requests(4)), run(engine, requests(1))
    other = run(engine, requests(1, seed=8))
    size = min(together[0].tokens.shape[1], alone[0].tokens.shape[1])
    assert (together[0].tokens[:, :size] == alone[0].tokens[:, :size]).all()
    assert other[0].tokens[:, :8].tolist() != alone[0].tokens[:, :8].tolist()
    assert len({tuple(row[:8]) for row in alone[0].tokens.tolist()}) > 1  # samples differ from one another


def test_a_swap_on_a_cpu_writes_over_the_weights_of_a_model_of_matrices(engine):
    told = engine._call(engine._running._llm.collective_rpc("swaps_in_place"), "tell its way")
    assert told == [DEVICE == "cpu"]


def test_running_requests_live_through_swaps_and_later_tokens_are_the_new_weights_on_kept_caches(engine, folders):
    old, new = read(folders[0]), read(folders[1])
    both = [weights(folder) for folder in folders]
    engine.load_weights(0, both[0])
    batch, made, version = requests(6, samples=8), [], 0
    engine.submit(batch)
    while engine.busy:  # a new version whenever the engine has had a moment: even ones are old weights, odd ones new
        made += engine.step()
        version += 1
        engine.load_weights(version, both[version % 2])
    made.sort(key=lambda responses: responses.key)
    assert [responses.key for responses in made] == [request.key for request in batch]
    for _, tokens, responses, g, inside in rows(batch, made):
        assert responses.finished[g] or len(tokens) == MAX_TOKENS
        assert (np.diff(responses.versions[g, inside]) >= 0).all()
    swapped = [part for part in rows(batch, made) if len(set(part[2].versions[part[3], part[4]])) > 1]
    assert swapped
    stale, naive = [], []
    for prompt, tokens, responses, g, inside in swapped[:12]:  # the plain forward below goes a token at a time
        versions, said = responses.versions[g, inside], responses.logprobs[g, inside]
        expected = logprobs_over_swaps([(old, new)[v % 2] for v in versions], prompt, tokens, TEMPERATURE)
        np.testing.assert_allclose(said, expected, atol=TOLERANCE)
        by_new = versions % 2 == 1
        stale.append(np.abs(said - plain_logprobs(old, prompt, tokens, TEMPERATURE))[by_new])
        naive.append(np.abs(said - plain_logprobs(new, prompt, tokens, TEMPERATURE))[by_new])
    assert np.concatenate(stale).max() > 0.5  # not the old weights
    assert np.concatenate(naive).max() > 0.1  # nor caches made anew


def test_generation_goes_on_while_new_weights_are_made_ready_for_the_workers(engine, folders, at_start, monkeypatch):
    finished: list[Responses] = []
    stage = engine._stage

    def slow(version, tensors):
        for _ in range(3000):  # a step waits a moment for what finishes
            finished.extend(engine.step())
            if finished:
                break
        return stage(version, tensors)

    monkeypatch.setattr(engine, "_stage", slow)
    batch = requests(4)
    engine.submit(batch)
    assert engine.load_weights(3, weights(folders[1])) > 0
    assert finished
    assert len(finished + drained(engine)) == len(batch)


def learning_recipe(folder: Path) -> Recipe:
    model = {"kind": "huggingface", "path": str(folder), "dtype": "fp32"}
    changes = {"temperature": TEMPERATURE, "engine": "vllm", "max_tokens": MAX_TOKENS}
    return with_changes(
        Recipe.model_validate(SCALERL.to_dict() | {"model": model}),
        {f"generation.{name}": value for name, value in changes.items()}
        | {"optimizer.learning_rate": 3e-3, "optimizer.warmup_steps": 0},
    )


def test_a_learner_fed_by_the_engine_makes_likelier_what_is_rewarded_while_weights_are_swapped_in_flight(
    engine, folders, at_start
):
    learner, shares, measured = Learner(learning_recipe(folders[0]), huggingface.load(folders[0])), [], []
    prompts = [request.prompt for request in requests(8)]

    def submit(step: int) -> list[Request]:
        batch = [Request(key, prompt, 16, (step, key), budget=4) for key, prompt in enumerate(prompts)]
        engine.submit(batch)
        return batch

    def learn(batch: list[Request], made: list[Responses], passed: list[np.ndarray]) -> None:
        pairs = zip(batch, made, passed, strict=True)
        result = learner.step([Group(q.key, q.prompt, a, np.where(p, 1.0, -1.0), p) for q, a, p in pairs])
        engine.load_weights(result.version, result.weights.source)
        measured.append(result.metrics)

    batch = submit(0)
    for step in range(12):
        made = drained(engine)
        following = submit(step + 1)  # under way when the new weights come
        right = [responses.tokens[:, 0] % 4 == 3 for responses in made]
        shares.append(np.mean(right))
        learn(batch, made, right)
        batch = following
    drained(engine)
    # All by the newest weights. Half of each group passes, whatever it says: where all pass there is no
    # gradient, and a step without one measures nothing.
    learn(batch, run(engine, batch), [np.arange(16) % 2 == 0 for _ in batch])
    assert np.mean(shares[:2]) < 0.5
    assert np.mean(shares[-2:]) > np.mean(shares[:2]) + 0.3
    assert abs(measured[0]["policy/mismatch_kl"]) < MISMATCH  # learner and engine are one policy at the start,
    assert abs(measured[-1]["policy/mismatch_kl"]) < MISMATCH  # and after a dozen swaps still


def test_after_a_swap_fresh_requests_know_nothing_of_the_old_weights(engine, folders, at_start):
    batch = requests(3)
    run(engine, batch)  # the same prompts under the old weights: a prefix cache would keep their blocks
    engine.load_weights(12, weights(folders[1]))
    new = read(folders[1])
    for prompt, tokens, responses, g, inside in rows(batch, run(engine, batch)):
        assert set(responses.versions[g, inside]) == {12}
        expected = plain_logprobs(new, prompt, tokens, TEMPERATURE)
        np.testing.assert_allclose(responses.logprobs[g, inside], expected, atol=TOLERANCE)


def test_an_interrupted_response_holds_the_phrase_at_its_place_and_an_answer_within_its_budget(
    engine, folders, at_start
):
    places = [0, 3, 10, 2000]
    batch, old = requests(4, interrupt_at=places), read(folders[0])
    seen = 0
    for prompt, tokens, responses, g, inside in rows(batch, run(engine, batch)):
        at, forced = places[g], ~responses.sampled[g, inside]
        assert responses.interrupted[g] == forced.any()
        if not responses.interrupted[g]:
            assert at > MAX_TOKENS or responses.finished[g]
            continue
        seen += 1
        assert np.flatnonzero(forced).tolist() == [at, at + 1, at + 2]
        assert tokens[forced].tolist() == list(PHRASE)
        assert responses.finished[g] or len(tokens) == at + 3 + 4
        expected = plain_logprobs(old, prompt, tokens, TEMPERATURE)
        said = responses.logprobs[g, inside]
        np.testing.assert_allclose(said[~forced], expected[~forced], atol=TOLERANCE)
        assert (said[forced] == 0).all()
    assert seen >= 4


def test_time_that_only_vllms_own_processes_know_is_told(engine, folders, at_start):
    before = engine.cpu_seconds()
    run(engine, requests(4))
    assert engine.cpu_seconds() > before
    assert engine.load_weights(0, weights(folders[0])) > 0


def test_weights_that_lack_a_tensor_of_the_model_are_refused_by_name(engine, folders, at_start):
    given = weights(folders[0])
    del given["model.layers.1.mlp.up_proj.weight"]
    with pytest.raises(TrainerError, match=r"model\.layers\.1\.mlp\.up_proj\.weight"):
        engine.load_weights(5, given)
    assert engine.version == 0
    assert len(run(engine, requests(2))) == 2  # and the engine goes on with what it has


def test_a_prompt_that_leaves_no_room_for_its_response_is_refused(engine, at_start):
    long = Request(0, Prompt("", "", np.full(40, 3)), 1, (1,))
    with pytest.raises(ConfigurationError, match="do not fit into the model's context of 128"):
        engine.submit([long])
    assert not engine.busy


@pytest.mark.skipif(DEVICE != "cpu", reason="of vLLM's build for CPUs")
def test_the_head_sizes_that_recipes_may_have_are_those_of_vllms_cpu_kernels():
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

    assert sorted(CPU_HEAD_SIZES) == sorted(CPUAttentionBackend.get_supported_head_sizes())


def test_a_closed_engine_leaves_no_process_and_no_file_behind(engine):
    family = [p for pid in engine.process_ids for p in (psutil.Process(pid), *psutil.Process(pid).children(True))]
    assert family
    staging = engine.staging
    assert staging.is_dir()
    engine.close()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive
    assert not staging.exists()
    with pytest.raises(TrainerError, match="closed"):
        engine.submit(requests(1))
    engine.close()
