"""The policy: `model`, a union by `kind`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from .base import Conflict, Section


class TinyModel(Section):
    """A small decoder for the testbed, started from a warmed-up base checkpoint. Not of the paper."""

    kind: Literal["tiny"] = "tiny"
    width: int = Field(64, ge=16, le=512, description="Residual width; a multiple of `heads`.")
    layers: int = Field(2, ge=1, le=12, description="Blocks of attention and MLP.")
    heads: int = Field(4, ge=1, le=16, description="Attention heads.")
    base: Literal["warm-start"] = Field(
        "warm-start", description="Weights the run starts from: the supervised warm start."
    )

    def conflicts(self) -> Iterator[Conflict]:
        """See `Section`."""
        if self.width % self.heads:
            yield Conflict("width", self.width, f"is not a multiple of heads {self.heads}")


class HuggingFaceModel(Section):
    """Any causal language model in a local folder, dense or mixture of experts: what its config says.

    The paper trains an 8B dense model and the 17Bx16 Llama-4 Scout mixture of experts (§5), both after its own SFT.
    """

    kind: Literal["huggingface"] = "huggingface"
    path: str = Field(
        min_length=1, description="Local folder with config, weights and tokenizer; nothing is downloaded."
    )
    dtype: Literal["fp32", "bf16"] = Field(
        "fp32", description="Precision of the weights' forward pass; the head has its own, algorithm.logits_precision."
    )
    gradient_checkpointing: bool = Field(
        False, description="Activations are computed again in the backward pass: less memory, more time."
    )


Model = TinyModel | HuggingFaceModel
