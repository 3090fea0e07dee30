"""The smallest tokenizer that takes any text."""

from __future__ import annotations

from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast


def byte_tokenizer(**options: Any) -> PreTrainedTokenizerFast:
    """One token a byte, and an end token with the id 0; `options` are further ones of transformers."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    body = Tokenizer(models.BPE({"<end>": 0} | {letter: i + 1 for i, letter in enumerate(alphabet)}, []))
    body.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    body.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=body, eos_token="<end>", **options)
