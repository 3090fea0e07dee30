"""One line for whoever trains with transformers or TRL: `callbacks=[ForecurveCallback(...)]`.

callback      the hooks of the trainer, and nothing else
beginning     which run is reported for
evaluations   which logged number is the pass rate, and how many prompts and samples it is made of
spending      what the training has spent, also over restarts
checkpoints   what proves a checkpoint of the trainer whole
ranks         a wish to stop that all processes hear at the same step
"""

from __future__ import annotations

try:
    from .callback import ForecurveCallback
except ModuleNotFoundError as error:
    if error.name != "transformers":
        raise
    raise ImportError("ForecurveCallback is for transformers, which is missing: pip install transformers") from error

__all__ = ["ForecurveCallback"]
