"""What requests look like: an example or two of each body, by the name of its schema. Each of them holds."""

from __future__ import annotations

from typing import Any

_LEAVE_ONE_OUT = {"preset": "scalerl", "changes": {"budget.compute": 60}, "design": {"kind": "leave_one_out"}}
_GRID = {
    "preset": "scalerl",
    "design": {"kind": "grid", "factors": {"optimizer.learning_rate": [0.0001, 0.0003]}, "seeds": [1, 2]},
}

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "RecipeCreate": [{"name": "slower", "preset": "scalerl", "changes": {"optimizer.learning_rate": 0.0001}}],
    "RunCreate": [
        {"preset": "scalerl", "changes": {"budget.compute": 60}},
        {
            "executor": "external",
            "name": "my run",
            "compute_unit": "GPU-hours",
            "budget_compute": 4000,
            "task": "gsm8k, 512 held-out prompts",
        },
    ],
    "RunImport": [
        {
            "name": "the run of March",
            "compute_unit": "GPU-hours",
            "task": "gsm8k, 512 held-out prompts",
            "evaluations": [
                {"step": step, "compute": 8.0 * step, "reward": reward, "prompts": 512, "samples": 4}
                for step, reward in enumerate([0.2, 0.31, 0.44, 0.5])
            ],
        }
    ],
    "AttemptCreate": [{"compute_unit": "GPU-hours", "budget_compute": 4000}],
    "RunChange": [{"name": "the one that broke"}, {"task": "gsm8k, 512 held-out prompts"}, {"add_tags": ["baseline"]}],
    "ForkCreate": [{"step": 100, "changes": {"optimizer.learning_rate": 0.0001}}],
    "StopRequest": [{"reason": "Its place is needed."}],
    "SweepPlanRequest": [_LEAVE_ONE_OUT, _GRID],
    "SweepCreate": [{**_LEAVE_ONE_OUT, "name": "what matters in ScaleRL", "policy": "advise"}],
    "SweepChange": [{"tags": ["paper"], "note": "Which ingredient moves the ceiling?"}],
    "MoreSeeds": [{"seeds": 2}, {"seeds": 2, "arms": ["control"]}],
    "NewArm": [{"changes": {"optimizer.learning_rate": 0.0001}}],
    "Batch": [
        {
            "attempt": 1,
            "seq": 7,
            "points": [{"metric": "train/reward", "step": 40, "compute": 8.1, "value": 0.41}],
            "evaluations": [{"step": 40, "compute": 8.1, "samples": 4, "counts": [4, 0, 3, 1]}],
        }
    ],
    "Heartbeat": [{"attempt": 1, "step": 41, "compute": 8.3}],
    "CheckpointCreate": [
        {
            "attempt": 1,
            "step": 40,
            "compute": 8.1,
            "path": "/checkpoints/step-40",
            "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "size_bytes": 424242,
        }
    ],
    "Outcome": [
        {"attempt": 1, "outcome": "succeeded"},
        {"attempt": 1, "outcome": "failed", "reason": "Out of memory."},
    ],
    "Acceptance": [{"reason": "As advised."}],
    "Dismissal": [{"reason": "The task becomes harder from here on."}],
    "ChannelCreate": [{"name": "ops", "kind": "webhook", "url": "https://hooks.example.com/forecurve"}],
    "TokenCreate": [{"name": "ci", "scopes": ["read"], "expires_in_s": 86400}],
}
