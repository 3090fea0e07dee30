"""What other tools leave of runs, as curves: W&B, MLflow, transformers and TRL, verl, TensorBoard, trackio, tables.

`logs` says what every reader gives: `wandb_files`, `wandb_charts`, `histories`, `trainer_states`, `event_files`,
`databases` with `mlflow_stores` and `trackio_stores`, a kind of file each.
`sources` knows by the content which of them a file is for, `reading` puts it all together.
"""

from .reading import Imported, metrics, read

__all__ = ["Imported", "metrics", "read"]
