"""What the model is asked to do: `task`, a union by `kind`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from .base import Conflict, Section

VERIFIERS = ("math", "code", "exact")
"""Verifiers that come with the trainer; any other is named `module:function`, or by the name it is registered under."""
VERIFIER_SECONDS = 10.0
"""Wall-clock limit of one verdict, of any verifier but code, which has `task.code_seconds`, and exact."""
REGISTERED_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
"""Names of verifiers that `forecurve.verifiers.register` takes."""

_OWN_VERIFIER = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_Name = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f]+$")]  # part of a metric's name
_SetName = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^/\x00-\x1f\x7f]+$")]
_Path = Annotated[str, Field(min_length=1)]
_Module = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]


class Torus(Section):
    """The testbed: walk on a 10 x 10 torus and state the last cell. Not of the paper.

    On the open layout the generation budget sets an exact ceiling: a chain of k moves needs 2k + 6 tokens with
    `echo_start` (2k + 4 without), and k is uniform in [min_moves, max_moves].
    """

    kind: Literal["torus"] = "torus"
    layout: Literal["open", "walls", "two-robots"] = Field(
        "open", description="open: nothing in the way. walls: some steps are blocked. two-robots: both end cells count."
    )
    min_moves: int = Field(3, ge=1, le=12, description="Fewest moves in a prompt.")
    max_moves: int = Field(12, ge=1, le=12, description="Most moves in a prompt.")
    echo_start: bool = Field(
        True, description="The response begins with the start cell; without it the curve has two phases."
    )
    pool: int | None = Field(
        None,
        ge=1,
        le=10_000_000,
        description="Distinct training prompts, drawn once and gone through in epochs; null: every prompt is new. "
        "The paper's pool is Polaris-53k (§2.1).",
    )

    def conflicts(self) -> Iterator[Conflict]:
        """See `Section`."""
        if self.min_moves > self.max_moves:
            yield Conflict("min_moves", self.min_moves, f"must not be larger than max_moves, {self.max_moves}")


class Dataset(Section):
    """Prompts with checkable answers from files: rows of `prompt`, `answer` and optionally `task`, `difficulty`."""

    kind: Literal["dataset"] = "dataset"
    train: _Path = Field(description="JSONL or Parquet file of training rows. The paper trains on Polaris-53k (§2.1).")
    held_out: _Path | None = Field(
        None, description="File of held-out rows; null: a share of `train`, `held_out_share`."
    )
    held_out_share: float = Field(
        0.1,
        gt=0,
        lt=1,
        description="Share of `train` held out, by a hash of the prompt's text, where `held_out` is null. The paper "
        "holds out 1,000 prompts at random (§2.1).",
    )
    verifiers: dict[_Name, str] = Field(
        {"math": "math"},
        min_length=1,
        description="A row's `task` (default `math`) to what checks its answer: math, code, exact, or your own "
        "`module:function` or registered name. The paper checks maths with Sympy and Math-Verify, code by unit tests "
        "(A.3).",
    )
    verifier_modules: tuple[_Module, ...] = Field(
        (), description="Python modules that register verifiers of your own (`forecurve.verifiers.register`)."
    )
    mixture: dict[_Name, Annotated[float, Field(ge=0)]] = Field(
        {},
        description="Weight of each `task` in the training order (§5, maths and code), 0 leaves it out; {}: as the "
        "data come.",
    )
    chat_template: bool = Field(True, description="Prompts pass through the tokenizer's chat template.")
    system_prompt: str | None = Field(None, description="First message of the chat; needs `chat_template`.")
    max_prompt_tokens: int = Field(
        2048, ge=1, le=131_072, description="Longer prompts are left out. The paper's prompt budget is 2,048 (A.3)."
    )
    code_seconds: float = Field(
        10.0, gt=0, le=600, description="Time for the unit tests of one response. Not stated in the paper."
    )
    code_memory_mb: int = Field(
        512, ge=32, le=65_536, description="Memory for the unit tests of one response. Not stated in the paper."
    )
    downstream: dict[_SetName, _Path] = Field(
        {},
        description="Further held-out sets, name to file, evaluated and tracked apart (§5 follows AIME-24 so).",
    )

    def conflicts(self) -> Iterator[Conflict]:
        """See `Section`."""
        yield from self._verifier_conflicts()
        for name, weight in self.mixture.items():
            if name not in self.verifiers:
                message = f"no verifier checks task `{name}`; name one in task.verifiers ({', '.join(self.verifiers)})"
                yield Conflict(f"mixture.{name}", weight, message)
        if self.system_prompt is not None and not self.chat_template:
            message = "a system prompt is a chat message; set task.chat_template or put the text into the prompts"
            yield Conflict("system_prompt", self.system_prompt, message)

    def _verifier_conflicts(self) -> Iterator[Conflict]:
        by_name = {
            name: verifier
            for name, verifier in self.verifiers.items()
            if verifier not in VERIFIERS and not _OWN_VERIFIER.fullmatch(verifier)
        }
        for name, verifier in by_name.items():
            if not self.verifier_modules or not REGISTERED_NAME.fullmatch(verifier):
                message = (
                    f"no such verifier; take one of {', '.join(VERIFIERS)}, your own as module:function, or a name "
                    "that a module of task.verifier_modules registers"
                )
                yield Conflict(f"verifiers.{name}", verifier, message)
        if self.verifier_modules and not by_name:
            message = "no task has a registered verifier; name one in task.verifiers, or leave the modules out"
            yield Conflict("verifier_modules", self.verifier_modules, message)


Task = Torus | Dataset
