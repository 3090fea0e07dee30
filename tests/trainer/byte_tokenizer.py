"""The smallest tokenizer that takes any text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast


def byte_tokenizer(merges: Sequence[tuple[str, str]] = (), **options: Any) -> PreTrainedTokenizerFast:
    """One token a byte, one for each of `merges`, and an end token with the id 0; `options` are further ones of
    transformers."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<end>", *alphabet, *("".join(pair) for pair in merges)]
    body = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, list(merges)))
    body.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    body.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=body, eos_token="<end>", **options)
