"""A task from files: prompts with checkable answers, in the words of a model's own tokenizer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecurve.recipes.schema import Dataset
from trainer.errors import ConfigurationError
from trainer.types import Prompt
from trainer.verifiers import Judges
from trainer.verifiers.text import THINKING_ENDS

from .rows import Row, read_rows


class DatasetTask:
    """Prompts of a dataset and its verifiers; see `Task`.

    The held-out set is a file of its own, or the share of the training rows whose prompt's hash is lowest: a rule, so
    that it is the same for every run. A prompt that is in it, or in a downstream set, is never trained on. `left_out`
    counts the rows that are not used, by reason, and `trained_on` the training prompts that the mixture gives a weight.

    Args:
        section: the recipe's `task`.
        tokenizer: of the model: `transformers`' interface.
        end_tokens: what ends a response; () for the tokenizer's end token.

    Raises:
        ConfigurationError: a file is missing or empty, a row is faulty (named with its number), no row is left, or
            the tokenizer has no chat template although the recipe wants one, or has one that
            refuses the messages.
    """

    def __init__(self, section: Dataset, tokenizer: Any, end_tokens: tuple[int, ...] = ()):
        self._section, self._tokenizer = section, tokenizer
        self.vocabulary_size = len(tokenizer)
        self.end_tokens = end_tokens or (int(tokenizer.eos_token_id),)
        if section.chat_template and not tokenizer.chat_template:
            raise ConfigurationError(
                "task.chat_template is true but the model's tokenizer has no chat template; set it to false, "
                "or take a model that has one"
            )
        self.left_out: dict[str, int] = {"duplicates": 0, "too_long": 0, "held_out_elsewhere": 0, "without_weight": 0}
        rows = self._distinct(read_rows("task.train", section.train, section.verifiers))
        held_out, rows = self._split(rows)
        downstream = {name: self._distinct(self._read_downstream(name)) for name in section.downstream}
        self._held_out = self._prompts(held_out, indexed=False)
        self._downstream = {name: self._prompts(rows, indexed=False) for name, rows in downstream.items()}
        self._training = self._prompts(self._unseen(rows, [held_out, *downstream.values()]), indexed=True)
        self.training_count: int | None = len(self._training)
        self.trained_on = sum(self._has_weight(prompt.task) for prompt in self._training)
        self.left_out["without_weight"] += len(self._training) - self.trained_on
        self.training_digest = _digest(self._training)
        self._refuse_empty()
        sets = (self._training, self._held_out, *self._downstream.values())
        self.longest_prompt = max(len(prompt.tokens) for prompts in sets for prompt in prompts)

    @property
    def graded(self) -> bool:
        """Whether training prompts differ in their difficulty."""
        return len({prompt.difficulty for prompt in self._training}) > 1

    def training_prompt(self, index: int) -> Prompt:
        """See `Task`. In the order of the file."""
        return self._training[index]

    def held_out_prompts(self, count: int) -> list[Prompt]:
        """See `Task`. In the order of their hashes, so that any number of them is a fair sample."""
        return self._held_out[:count]

    def downstream_prompts(self) -> dict[str, list[Prompt]]:
        """See `Task`."""
        return dict(self._downstream)

    def passed(self, prompt: Prompt, tokens: NDArray[np.int64], lengths: Sequence[int]) -> NDArray[np.bool_]:
        """See `Task`. A response that did not end itself within the budget has not passed, whatever it says."""
        ended = np.array([row[n - 1] in self.end_tokens for row, n in zip(tokens, lengths, strict=True)], dtype=bool)
        responses = [self._text(row[: n - 1]) for row, n, whole in zip(tokens, lengths, ended, strict=True) if whole]
        if responses:
            ended[ended] = self._judges.passed(prompt.task, responses, prompt.answer)
        return ended

    def encode(self, text: str) -> list[int]:
        """See `Task`."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def texts(self, tokens: NDArray[np.int64], lengths: Sequence[int]) -> list[str]:
        """See `Task`."""
        return [self._tokenizer.decode(row[:n].tolist()) for row, n in zip(tokens, lengths, strict=True)]

    def metrics(self) -> dict[str, float]:
        """See `Task`."""
        judges = self.__dict__.get("_judges")
        return judges.metrics() if judges else {}

    def cpu_seconds(self) -> float:
        """See `Task`."""
        judges = self.__dict__.get("_judges")
        return judges.cpu_seconds() if judges else 0.0

    def start(self) -> None:
        """Start the verifiers now instead of at the first response; ConfigurationError when one cannot work."""
        self._judges.start()

    def close(self) -> None:
        """See `Task`."""
        judges = self.__dict__.pop("_judges", None)
        if judges:
            judges.close()

    @cached_property
    def _judges(self) -> Judges:
        section = self._section
        return Judges(section.verifiers, section.code_seconds, section.code_memory_mb, modules=section.verifier_modules)

    def _read_downstream(self, name: str) -> list[Row]:
        section = self._section
        return read_rows(f"task.downstream.{name}", section.downstream[name], section.verifiers)

    def _split(self, rows: list[Row]) -> tuple[list[Row], list[Row]]:
        """Held-out rows by rising hash, of tasks that the mixture trains on; and the others in their order."""
        held_out, kept = self._by_place(rows)
        judged_on = [row for row in held_out if self._has_weight(row.task)]
        self.left_out["without_weight"] += len(held_out) - len(judged_on)
        return judged_on, kept

    def _has_weight(self, task: str) -> bool:
        weights = self._section.mixture
        return not weights or weights.get(task, 0.0) > 0

    def _by_place(self, rows: list[Row]) -> tuple[list[Row], list[Row]]:
        section = self._section
        if section.held_out is not None:
            held_out = self._distinct(read_rows("task.held_out", section.held_out, section.verifiers))
            return sorted(held_out, key=lambda row: row.place), rows
        held_out = [row for row in rows if row.place < section.held_out_share]
        kept = [row for row in rows if row.place >= section.held_out_share]
        return sorted(held_out, key=lambda row: row.place), kept

    def _distinct(self, rows: Iterable[Row]) -> list[Row]:
        """The first row of every prompt text."""
        rows = list(rows)
        first = {row.prompt: row for row in reversed(rows)}
        kept = [row for row in rows if first[row.prompt] is row]
        self.left_out["duplicates"] += len(rows) - len(kept)
        return kept

    def _unseen(self, rows: list[Row], others: Iterable[Iterable[Row]]) -> list[Row]:
        """Training rows that are in no set on which runs are judged."""
        judged_on = {row.prompt for other in others for row in other}
        kept = [row for row in rows if row.prompt not in judged_on]
        self.left_out["held_out_elsewhere"] += len(rows) - len(kept)
        return kept

    def _prompts(self, rows: Iterable[Row], indexed: bool) -> list[Prompt]:
        """Rows as tokens, without those beyond `max_prompt_tokens`."""
        prompts: list[Prompt] = []
        for row in rows:
            tokens = self._prompt_tokens(row.prompt)
            if len(tokens) > self._section.max_prompt_tokens:
                self.left_out["too_long"] += 1
                continue
            index = len(prompts) if indexed else -1
            prompts.append(Prompt(row.prompt, row.answer, tokens, row.task, row.difficulty, index))
        return prompts

    def _prompt_tokens(self, text: str) -> NDArray[np.int64]:
        if not self._section.chat_template:
            return np.array(self._tokenizer.encode(text), dtype=np.int64)
        system = self._section.system_prompt
        messages = [{"role": "system", "content": system}] if system is not None else []
        try:
            tokens = self._tokenizer.apply_chat_template(
                [*messages, {"role": "user", "content": text}], add_generation_prompt=True, return_dict=False
            )
        except Exception as error:  # noqa: BLE001 - a template is a program, which may end in any way
            out = "" if system is None else "task.system_prompt to null if it takes none, or "
            raise ConfigurationError(
                f"the chat template of the model's tokenizer fails on the prompt {text!r:.60} ({error}); set {out}"
                "task.chat_template to false"
            ) from None
        return np.array(tokens, dtype=np.int64)

    def _text(self, tokens: NDArray[np.int64]) -> str:
        """Without special tokens, but with the ends of thinking: verifiers read only what follows the last."""
        ends = np.flatnonzero(tokens == self._thinking_ends)
        return THINKING_ENDS.join(
            self._tokenizer.decode(part[part != self._thinking_ends].tolist(), skip_special_tokens=True)
            for part in np.split(tokens, ends)
        )

    @cached_property
    def _thinking_ends(self) -> int:
        """The token that ends thinking, where it is a special one that decoding leaves out; else -1, which is none."""
        mark = self._tokenizer.encode(THINKING_ENDS, add_special_tokens=False)
        left_out = len(mark) == 1 and not self._tokenizer.decode(mark, skip_special_tokens=True)
        return int(mark[0]) if left_out else -1

    def _refuse_empty(self) -> None:
        sets = {"training": self._training, "held-out": self._held_out} | {
            f"downstream {name}": prompts for name, prompts in self._downstream.items()
        }
        for name, prompts in sets.items():
            if not prompts:
                reasons = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in self.left_out.items())
                raise ConfigurationError(
                    f"task: no {name} prompt is left of the data ({reasons}); raise task.max_prompt_tokens, change "
                    "task.held_out_share, or give more rows"
                )


def _digest(prompts: Iterable[Prompt]) -> str:
    digest = hashlib.sha256()
    for prompt in prompts:
        digest.update(json.dumps([prompt.text, prompt.answer, prompt.task]).encode())
    return digest.hexdigest()
