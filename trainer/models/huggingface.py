"""Any Hugging Face causal language model from a local folder, dense or mixture of experts, as a `Policy`.

The model's own modules run; only attention is ours: it is registered under `ATTENTION`, and looks through the
`Attend` functions of the call, so that keys and values of a prompt are shared by its responses and caches have the
engine's layout. Nothing is downloaded and no code from the folder is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion
from transformers.initialization import no_init_weights
from transformers.modeling_utils import AttentionInterface
from transformers.utils import logging as transformers_logging

from trainer.errors import ConfigurationError
from trainer.models.attention import after_prompts, causal
from trainer.models.base import Attend, Policy, PromptCache
from trainer.models.norms import write_out_norms
from trainer.models.one_token import AttendProjected, usual
from trainer.models.packed import PackedRows, after_prompts_packed, positions
from trainer.models.rotary import rotate_in_one_pass

ATTENTION = "forecurve"
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
WEIGHT_FILES = ("*.safetensors", "pytorch_model*.bin")
PROBE_TOKENS = 6
"""Length of the sequence on which a freshly loaded model is compared with its own plain forward."""
PROBE_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.15}
"""Largest difference of log-probs between the two; what a wrong mask or position makes is far larger."""

AGREEMENT = 1e-4
"""Largest difference of hidden states, as a share of the largest, between `OneToken` and the model's own forward."""


class HuggingFacePolicy(Policy):
    """See `Policy`. `model` is the transformers model, and shares its parameters with whoever holds it."""

    def __init__(self, model: PreTrainedModel):
        super().__init__()
        self.model = model
        model.config._attn_implementation = ATTENTION
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0  # log-probs of learner and engine must be those of one policy
        write_out_norms(model)
        self._backbone: nn.Module = getattr(model, model.base_model_prefix)
        rotate_in_one_pass(self._backbone)
        self._one_token, self._agreed = usual(self._backbone), False

    @property
    def config(self) -> Any:
        """The transformers configuration."""
        return self.model.config

    @property
    def head_weight(self) -> Tensor:
        """See `Policy`."""
        weight: Tensor = self.model.get_output_embeddings().weight
        return weight

    def prefill(self, prompts: Tensor, mask: Tensor | None = None) -> tuple[Tensor, PromptCache]:
        """See `Policy`."""
        layers: dict[int, tuple[Tensor, Tensor]] = {}
        attend = causal(mask)

        def remember(layer: int) -> Attend:
            def attend_and_remember(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
                layers[layer] = (k, v)
                return attend(q, k, v)

            return attend_and_remember

        whole = torch.ones_like(prompts, dtype=torch.bool) if mask is None else mask
        positions = (whole.cumsum(1) - 1).clamp(min=0)
        hidden = self._run(prompts, positions, [remember(i) for i in range(self._layer_count)])
        if len(layers) < self._layer_count:
            raise NotImplementedError(
                f"{self._layer_count - len(layers)} of its layers have no attention of the usual form"
            )
        pairs = tuple(layers[i] for i in range(self._layer_count))
        return hidden[:, -1], PromptCache(pairs, whole.sum(1), mask)

    def respond(self, tokens: Tensor, cache: PromptCache) -> Tensor:
        """See `Policy`."""
        positions = cache.lengths[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
        return self._run(tokens, positions, after_prompts(cache, tokens.shape[1]))

    def respond_packed(self, tokens: Tensor, rows: PackedRows, cache: PromptCache) -> Tensor:
        """See `Policy`."""
        return self._run(tokens[None], positions(cache, rows)[None], after_prompts_packed(cache, rows))[0]

    def decode(self, tokens: Tensor, places: Tensor, prompt_lengths: Tensor, attends: Sequence[Attend]) -> Tensor:
        """See `Policy`."""
        positions = prompt_lengths + places
        if self._one_token is None or not _take_projections(attends) or torch.is_grad_enabled():
            return self._run(tokens[:, None], positions[:, None], attends)[:, 0]
        hidden = self._one_token(tokens, positions, attends)
        return hidden if self._agreed else self._compared(hidden, tokens, positions, attends)

    def _compared(self, hidden: Tensor, tokens: Tensor, positions: Tensor, attends: Sequence[Attend]) -> Tensor:
        """The model's own hidden states where ours differ, which then are not made again."""
        own = self._run(tokens[:, None], positions[:, None], attends)[:, 0]
        self._agreed = bool((hidden - own).abs().max() <= AGREEMENT * own.abs().max())
        if self._agreed:
            return hidden
        self._one_token = None
        return own

    def named_tensors(self) -> dict[str, Tensor]:
        """See `Policy`. Names are those of the transformers model; a tied head goes by its embedding's name."""
        unique: dict[int, tuple[str, Tensor]] = {}
        for name, tensor in self.model.state_dict(keep_vars=True).items():
            unique.setdefault(id(tensor), (name, tensor))
        return dict(unique.values())

    def save_folder(self, folder: Path) -> None:
        """Write configuration and weights as transformers does; any of its users can load the folder."""
        self.model.save_pretrained(folder)

    @property
    def _layer_count(self) -> int:
        return int(self.model.config.num_hidden_layers)

    def _run(self, tokens: Tensor, positions: Tensor, attends: Sequence[Attend]) -> Tensor:
        output = self._backbone(input_ids=tokens, position_ids=positions, use_cache=False, attends=attends)
        hidden: Tensor = output.last_hidden_state
        return hidden


def load(path: str | Path, dtype: str = "fp32") -> HuggingFacePolicy:
    """The policy in a local folder, checked against the model's own forward.

    Raises:
        ConfigurationError: the folder, its weights or its architecture is not what it has to be.
    """
    config = checked_config(path)
    quiet_transformers()
    try:
        model, info = AutoModelForCausalLM.from_pretrained(
            path, config=config, dtype=DTYPES[dtype], local_files_only=True, output_loading_info=True
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise ConfigurationError(f"model.path {str(path)!r} cannot be loaded: {first_line(error)}") from None
    missing = sorted(info["missing_keys"])
    if missing:
        raise ConfigurationError(
            f"model.path {str(path)!r} lacks {len(missing)} of the model's tensors, {missing[0]} among them; "
            "they would be random"
        )
    return _ready(model, str(path))


def from_config(config: Any, dtype: str = "fp32") -> HuggingFacePolicy:
    """A policy of this shape with random weights (torch's global seed)."""
    quiet_transformers()
    model = AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype])
    return _ready(model, type(config).__name__)


def blank(config: Any, dtype: str) -> HuggingFacePolicy:
    """A policy of this shape whose weights are about to be loaded: nothing is drawn, nothing is checked."""
    quiet_transformers()
    with no_init_weights():
        model = AutoModelForCausalLM.from_config(config, dtype=DTYPES[dtype])
    model.tie_weights()  # part of what was left out
    return HuggingFacePolicy(model.eval())


class SavedForm:
    """Names and shapes that weights have in the files of a folder's model: transformers itself may hold them otherwise
    (the matrices of all experts of a layer as one)."""

    def __init__(self, folder: str | Path):
        quiet_transformers()
        with torch.device("meta"):
            self._model = AutoModelForCausalLM.from_config(read_config(folder))

    def __call__(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The same weights, named as `Policy.named_tensors` names them, as `save_folder` would write them."""
        saved: dict[str, Tensor] = revert_weight_conversion(self._model, dict(tensors))
        return saved


def checked_config(path: str | Path) -> Any:
    """The configuration of a folder that has weights too, as far as can be told without reading them.

    Raises:
        ConfigurationError: see `read_config`; or there are no weights, or the model has layers that are not supported.
    """
    config = read_config(path)
    if not any(next(Path(path).glob(pattern), None) for pattern in WEIGHT_FILES):
        raise ConfigurationError(f"model.path {str(path)!r} has no weights ({' or '.join(WEIGHT_FILES)})")
    _refuse_windows(config, str(path))
    return config


def read_config(path: str | Path) -> Any:
    """The configuration in a local folder.

    Raises:
        ConfigurationError: there is no such folder, or no configuration in it that transformers knows.
    """
    if not Path(path).is_dir():
        raise ConfigurationError(f"model.path {str(path)!r} is not a folder; it is that of a Hugging Face model")
    if not (Path(path) / "config.json").exists():
        raise ConfigurationError(f"model.path {str(path)!r} has no config.json; it is no Hugging Face model")
    try:
        return AutoConfig.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise ConfigurationError(
            f"model.path {str(path)!r} has a config.json without use: {first_line(error)}"
        ) from None


def quiet_transformers() -> None:
    """No progress bars, and no warnings about what is checked here anyway."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()


def _ready(model: PreTrainedModel, name: str) -> HuggingFacePolicy:
    _refuse_windows(model.config, name)
    model.eval()
    probe = (torch.arange(PROBE_TOKENS)[None] * 7 + 1) % model.config.vocab_size
    with torch.inference_mode():
        expected = model(probe, use_cache=False).logits.float().log_softmax(-1)
        policy = HuggingFacePolicy(model)
        try:
            found = _probe(policy, probe)
        except (TypeError, AttributeError, KeyError, IndexError, RuntimeError, NotImplementedError) as error:
            raise _unsupported(name, model, first_line(error)) from error
    difference = float((found - expected).abs().max())
    if not difference <= PROBE_TOLERANCE[model.dtype]:
        raise _unsupported(name, model, f"its log-probs differ by {difference:.2g} from those of its own forward")
    return policy


def _probe(policy: HuggingFacePolicy, tokens: Tensor) -> Tensor:
    """Log-probs of all places, the first half as a prompt and the second as a response."""
    half = tokens.shape[1] // 2
    hidden = [policy.prefill(tokens[:, : n + 1])[0][:, None] for n in range(half)]
    _, cache = policy.prefill(tokens[:, :half])
    hidden.append(policy.respond(tokens[:, half:], cache))
    return policy.logits(torch.cat(hidden, dim=1)).log_softmax(-1)


def _refuse_windows(config: Any, name: str) -> None:
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    windowed = getattr(config, "sliding_window", None) and not hasattr(config, "layer_types")
    if windowed or kinds != {"full_attention"}:
        others = sorted(kinds - {"full_attention"}) or ["sliding_attention"]
        raise ConfigurationError(
            f"{name} ({config.model_type}) has layers of {', '.join(others)}; only full attention is supported"
        )


def _unsupported(name: str, model: PreTrainedModel, why: str) -> ConfigurationError:
    return ConfigurationError(f"{name}: the architecture {type(model).__name__} is not supported: {why}")


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _take_projections(attends: Sequence[Attend]) -> TypeGuard[Sequence[AttendProjected]]:
    return all(isinstance(attend, AttendProjected) for attend in attends)


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    attends: Sequence[Attend] | None = None,
    s_aux: Tensor | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it, through the call's `attends`."""
    if attends is None:
        raise NotImplementedError("it does not hand its arguments on to attention")
    if s_aux is not None or softcap is not None:
        raise NotImplementedError("its attention has sinks or a soft cap")
    width = query.shape[-1]
    if scaling is not None and scaling != width**-0.5:
        query = query * (scaling * width**0.5)
    layer: Any = module.layer_idx
    return attends[layer](query, key, value).transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION, _attention)
