"""What the learner and the torch engine ask of a policy, whatever its architecture.

A prompt runs once (`prefill`); its keys and values serve all its responses, whether those are sampled token by token
(`decode`) or run whole (`respond`). Hidden states come out, never logits: the head is apart, so that its precision
is the recipe's and so that log-probs can be taken without holding [tokens, vocabulary] at once.

Letters in shapes: P prompts, S prompt tokens (padded on the left), N responses, T response tokens, D width,
H heads of keys, K width of a head, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .products import product

if TYPE_CHECKING:
    from .packed import PackedRows

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(q [N, H', T, K], k and v [N, H, T, K]) -> [N, H', T, K]: how a layer's queries look at keys; scale 1/sqrt(K).

H' is a multiple of H: query heads share key heads in order. Caches live behind it."""


@dataclass(frozen=True, slots=True)
class PromptCache:
    """Keys and values of P prompts: per layer a pair [P, H, S, K].

    `mask` [P, S] is False on the padding to the left of a prompt; None where no prompt is padded. `lengths` [P] counts
    the tokens of each.
    """

    layers: tuple[tuple[Tensor, Tensor], ...]
    lengths: Tensor
    mask: Tensor | None = None

    @property
    def padding(self) -> Tensor | None:
        """[P, 1, S, 1]: True on padding; None where there is none."""
        return None if self.mask is None else ~self.mask[:, None, :, None]

    def rows(self, index: Tensor) -> PromptCache:
        """The caches of these prompts, by index [N], a prompt as often as it is named."""
        layers = tuple((k.index_select(0, index), v.index_select(0, index)) for k, v in self.layers)
        mask = None if self.mask is None else self.mask.index_select(0, index)
        return PromptCache(layers, self.lengths.index_select(0, index), mask)


class Policy(nn.Module):
    """A causal language model in the shape in which it is sampled and trained."""

    shortest_prompt: int = 1
    """Tokens of the shortest prompt that it takes."""

    @property
    def head_weight(self) -> Tensor:
        """[V, D], the parameter itself, never a copy: it is right after every weight swap."""
        raise NotImplementedError

    def prefill(self, prompts: Tensor, mask: Tensor | None = None) -> tuple[Tensor, PromptCache]:
        """Run prompts [P, S] once: hidden state of each last token [P, D], and the keys and values.

        `mask` [P, S] is False on padding, which lies to the left (see `pad_left`).
        """
        raise NotImplementedError

    def respond(self, tokens: Tensor, cache: PromptCache) -> Tensor:
        """Whole responses [N, T], each after its own row of `cache` (N rows): hidden [N, T, D]."""
        raise NotImplementedError

    def respond_packed(self, tokens: Tensor, rows: PackedRows, cache: PromptCache) -> Tensor:
        """The same of rows that lie end to end: tokens [M] -> hidden [M, D]. `cache` has the P prompts of `rows.owner`;
        `packed.kernel_takes` says whether its keys and values can be looked at like that."""
        raise NotImplementedError

    def decode(self, tokens: Tensor, places: Tensor, prompt_lengths: Tensor, attends: Sequence[Attend]) -> Tensor:
        """One more token of every response: tokens [N] at response places [N] (0 the first) -> hidden [N, D].

        `attends` has one way of attending per layer; the cache is behind it. `prompt_lengths` [N].
        """
        raise NotImplementedError

    def full(self, prompts: Tensor, tokens: Tensor) -> Tensor:
        """Prompts [N, S] of one length, each with its own response [N, T]: hidden [N, 1 + T, D].

        The first is that of the prompt's last token.
        """
        last, cache = self.prefill(prompts)
        return torch.cat([last[:, None], self.respond(tokens, cache)], dim=1)

    def logits(self, hidden: Tensor, precision: str = "fp32") -> Tensor:
        """The head, [..., D] -> [..., V] in float32; see `head_logits`."""
        return head_logits(hidden, self.head_weight, precision)

    def named_tensors(self) -> dict[str, Tensor]:
        """All that decides what the policy does, each tensor once, by the name under which engines load it."""
        return dict(self.named_parameters())

    def load_tensors(self, tensors: Mapping[str, Any]) -> None:
        """Copy these arrays or tensors in; every one of `named_tensors` must be there, and no other.

        Raises:
            ValueError: a name or a shape that is not this policy's.
        """
        copy_into(self.named_tensors(), tensors)


def head_logits(hidden: Tensor, weight: Tensor, precision: str) -> Tensor:
    """Logits [..., V] in float32. With `bf16` the product itself is taken in bfloat16.

    No copy of the weight outlives the call: a kept float32 head would serve old weights after a swap.
    """
    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    logits = product(hidden.flatten(0, -2), weight.T, dtype)
    return logits.view(*hidden.shape[:-1], -1)


def pad_left(prompts: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor | None]:
    """Prompts of unlike length as one rectangle: tokens [P, S] and mask [P, S], or None where nothing is padded."""
    longest = max(map(len, prompts))
    if all(len(prompt) == longest for prompt in prompts):
        return torch.from_numpy(np.stack(prompts)), None
    tokens = np.zeros((len(prompts), longest), dtype=np.int64)
    for row, prompt in zip(tokens, prompts, strict=True):
        row[longest - len(prompt) :] = prompt
    lengths = np.array([len(prompt) for prompt in prompts])
    mask = np.arange(longest) >= longest - lengths[:, None]
    return torch.from_numpy(tokens), torch.from_numpy(mask)


def copy_into(own: Mapping[str, Tensor], tensors: Mapping[str, Any]) -> None:
    """Copy arrays or tensors into parameters of the same names and shapes; ValueError says what does not fit."""
    if own.keys() != tensors.keys():
        missing, foreign = sorted(own.keys() - tensors.keys()), sorted(tensors.keys() - own.keys())
        raise ValueError(f"tensors missing: {missing[:3]}; not of this model: {foreign[:3]}")
    with torch.no_grad():
        for name, parameter in own.items():
            value = tensors[name]
            source = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
            if source.shape != parameter.shape:
                raise ValueError(f"{name} has shape {tuple(source.shape)}, this model's is {tuple(parameter.shape)}")
            parameter.copy_(source)
