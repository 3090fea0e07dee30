"""The tokenizer in a model's folder, checked against the model's vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, GenerationConfig

from trainer.errors import ConfigurationError
from trainer.models.huggingface import first_line, quiet_transformers, read_config

GENERATION_CONFIG = "generation_config.json"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")


def load_tokenizer(path: str | Path) -> Any:
    """The tokenizer of a local model folder, with its chat template if it has one.

    Raises:
        ConfigurationError: there is none, it cannot be read, it ends no text, or it has tokens that the model lacks.
    """
    config = read_config(path)
    if not any((Path(path) / name).exists() for name in TOKENIZER_FILES):
        raise ConfigurationError(f"model.path {str(path)!r} has no tokenizer ({', '.join(TOKENIZER_FILES)})")
    quiet_transformers()
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    except Exception as error:  # noqa: BLE001 tokenizers raise bare Exceptions of the Rust side
        raise ConfigurationError(
            f"model.path {str(path)!r}: its tokenizer cannot be read: {first_line(error)}"
        ) from None
    if len(tokenizer) > config.vocab_size:
        raise ConfigurationError(
            f"model.path {str(path)!r}: the tokenizer has {len(tokenizer)} tokens, but the model's vocabulary only "
            f"{config.vocab_size}; they do not belong together"
        )
    if tokenizer.eos_token_id is None:
        raise ConfigurationError(f"model.path {str(path)!r}: the tokenizer has no end token (eos_token)")
    return tokenizer


def end_tokens(path: str | Path, tokenizer: Any) -> tuple[int, ...]:
    """What ends a response of the model in a folder: the tokenizer's end token and, where the folder has a generation
    config, those that it names. Chat models often end their turn with another token than the one that ends a text.
    """
    found = [int(tokenizer.eos_token_id)]
    if (Path(path) / GENERATION_CONFIG).exists():
        named = GenerationConfig.from_pretrained(path, local_files_only=True).eos_token_id
        found += named if isinstance(named, list) else [] if named is None else [named]
    return tuple(dict.fromkeys(found))
