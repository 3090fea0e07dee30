"""Recipes at random: mostly valid, whatever kinds they are of."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from forecurve.recipes import Recipe

TORUS = st.fixed_dictionaries(
    {"kind": st.just("torus"), "pool": st.sampled_from([64, 2048])},
    optional={"layout": st.sampled_from(["open", "walls", "two-robots"]), "min_moves": st.integers(1, 3)},
)
DATASET = st.fixed_dictionaries(
    {"kind": st.just("dataset"), "train": st.sampled_from(["a.jsonl", "b.parquet"])},
    optional={
        "held_out": st.none() | st.just("c.jsonl"),
        "verifiers": st.just({"math": "math", "code": "code", "mine": "my.module:check"}),
        "mixture": st.dictionaries(st.just("math"), st.floats(0.1, 9)),
        "downstream": st.dictionaries(st.sampled_from(["aime", "gsm8k"]), st.just("d.jsonl")),
    },
)
TINY = st.fixed_dictionaries({"kind": st.just("tiny")}, optional={"width": st.sampled_from([32, 64])})
HUGGING_FACE = st.fixed_dictionaries(
    {"kind": st.just("huggingface"), "path": st.just("models/small")}, optional={"dtype": st.sampled_from(["bf16"])}
)
LENGTH_CONTROL = st.one_of(
    st.just({"kind": "none"}),
    st.builds(
        lambda low, more: {"kind": "interruption", "after_low": low, "after_high": low + more},
        st.integers(1, 10),
        st.integers(0, 10),
    ),
    st.builds(lambda longest: {"kind": "penalty", "longest": longest, "cushion": 2}, st.integers(3, 24)),
)
STALENESS = st.one_of(
    st.just({"off_policy": "on-policy", "max_staleness": 0}),
    st.builds(
        lambda scheme, k: {"off_policy": scheme, "max_staleness": k},
        st.sampled_from(["pipeline", "ppo"]),
        st.integers(1, 64),
    ),
)
LOSS = st.one_of(
    st.fixed_dictionaries(
        {"loss": st.sampled_from(["cispo", "dapo", "grpo"])},
        optional={"aggregation": st.sampled_from(["prompt", "sample", "token"])},
    ),
    st.builds(
        lambda clip: {"loss": "gspo", "clip_low": clip, "clip_high": clip, "aggregation": "sample"},
        st.floats(1e-4, 0.1),
    ),
)
ALGORITHM = st.builds(
    lambda *parts: {name: value for part in parts for name, value in part.items()},
    STALENESS,
    LOSS,
    st.fixed_dictionaries(
        {},
        optional={
            "zero_variance_filter": st.sampled_from(["shrink", "refill", "off"]),
            "no_positive_resampling": st.none() | st.floats(0.1, 1),
            "kl_coefficient": st.floats(0, 1),
        },
    ),
)


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """A valid recipe as a plain mapping, with some fields left to their defaults."""
    dataset = draw(st.booleans())
    model = draw(HUGGING_FACE if dataset else st.one_of(TINY, HUGGING_FACE))
    engine = draw(st.sampled_from(["torch", "vllm"])) if model["kind"] == "huggingface" else "torch"
    return {
        "task": draw(DATASET if dataset else TORUS),
        "model": model,
        "algorithm": draw(ALGORITHM),
        "length_control": draw(LENGTH_CONTROL),
        "generation": {"engine": engine, "max_tokens": draw(st.integers(24, 64))},
        "curriculum": draw(st.sampled_from(["none", "easy-first"])),
        "budget": {"max_steps": draw(st.integers(1000, 5000))},
        "optimizer": {"schedule": draw(st.sampled_from(["constant", "linear", "cosine"]))},
        "seed": draw(st.integers(0, 3)),
    }


recipes = bodies().map(Recipe.model_validate)
