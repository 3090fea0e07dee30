"""Every table of the service, imported once so that the metadata is whole (Alembic, tests)."""

from server.access.models import IdempotencyKey, Token
from server.alerts.models import Alert, Channel, Delivery
from server.checkpoints.models import Checkpoint
from server.database import Base
from server.events.models import Event, OutboxMessage
from server.forecasts.models import Forecast, Recommendation
from server.logs.models import AttemptLog
from server.metrics.models import Evaluation, IngestBatch, MetricPoint
from server.mlflow.models import MlflowExperiment, MlflowRun
from server.recipes.models import RecipeRow
from server.runs.models import Attempt, Run
from server.runs.ticks import Tick
from server.sweeps.models import Sweep, SweepComparison

__all__ = [
    "Alert",
    "Attempt",
    "AttemptLog",
    "Base",
    "Channel",
    "Checkpoint",
    "Delivery",
    "Evaluation",
    "Event",
    "Forecast",
    "IdempotencyKey",
    "IngestBatch",
    "MetricPoint",
    "MlflowExperiment",
    "MlflowRun",
    "OutboxMessage",
    "RecipeRow",
    "Recommendation",
    "Run",
    "Sweep",
    "SweepComparison",
    "Tick",
    "Token",
]
