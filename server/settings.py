"""Configuration, read once at the edge from the environment (FORECURVE_*, DATABASE_URL, REDIS_URL)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pydantic import AwareDatetime, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from forecurve.recipes.wording import in_words

from .given_urls import (
    BrokerUrl,
    Command,
    DatabaseUrl,
    Folder,
    HttpUrl,
    HttpUrlOrNone,
    MailServer,
    RayToken,
    Sender,
)


class Settings(BaseSettings):
    """What a process of the service needs to know of its surroundings."""

    model_config = SettingsConfigDict(env_prefix="FORECURVE_", extra="ignore")

    database_url: DatabaseUrl = Field(
        validation_alias="DATABASE_URL", description="PostgreSQL (tested with 18); no other database."
    )
    statement_timeout_s: float = Field(
        30.0, ge=0, le=86_400, description="How long one statement of the API may take in the database; 0: for ever."
    )
    lock_timeout_s: float = Field(
        10.0, ge=0, le=86_400, description="How long one may wait for what another transaction holds; 0: for ever."
    )
    idle_transaction_timeout_s: float = Field(
        60.0, ge=0, le=86_400, description="How long a transaction of the API or a worker may do nothing; 0: for ever."
    )
    redis_url: BrokerUrl = Field(
        "redis://127.0.0.1:6379/0",
        validation_alias="REDIS_URL",
        description="The broker. It may lose all it has: work is rows of the database.",
    )

    wrong_tokens_a_minute: int = Field(
        30, ge=1, description="Different unknown tokens or login links that one address may send."
    )
    public_url: HttpUrl = Field("http://127.0.0.1:8400", description="Where people and trainers reach the API.")
    trainer_url: HttpUrlOrNone = Field(
        "", description="Where launched trainers reach the API, when that is not FORECURVE_PUBLIC_URL."
    )
    data_dir: Path = Field(Path(".data"), description="What the service keeps on disk, beside its database.")

    ray_url: HttpUrl = Field("http://127.0.0.1:8265", description="The Jobs API of the Ray head.")
    ray_token: RayToken | None = Field(None, description="Bearer token of the Ray cluster.")
    ray_since: AwareDatetime | None = Field(
        None, description="When the Ray head was started, where that is known: what was submitted before is gone."
    )
    trainer_command: Command = Field("python -m trainer", description="Entry point of a launched job.")
    trainer_path: str = Field(
        "", description="Put on PYTHONPATH of a launched job; empty where the trainer is installed."
    )
    trainer_dir: Folder = Field(
        "",
        description="Where launched trainers keep their runs: a path of the machine that they run on; `runs` in "
        "FORECURVE_DATA_DIR when empty.",
    )

    signs_dir: Folder = Field(
        "",
        description="Folder in which worker and scheduler touch `worker.alive` and `scheduler.alive` every few "
        "seconds, for health checks; one worker has it to itself. Nowhere when empty.",
    )

    cluster_cpus: float | None = Field(
        None,
        gt=0,
        description="CPUs that the cluster has for runs, where that is known: no more run at once than fit.",
    )
    cluster_gpus: float | None = Field(None, ge=0, description="GPUs, likewise.")
    max_concurrent_runs: int = Field(2, ge=1, description="Runs that may hold a place on the cluster at once.")
    max_attempts: int = Field(3, ge=1, description="Launches of a run that count before it is given up.")
    stop_grace_s: float = Field(30.0, gt=0, description="From the cooperative stop to Ray's stop.")
    launch_deadline_s: float = Field(300.0, gt=0, le=30 * 86_400, description="From submission to the first heartbeat.")
    heartbeat_interval_s: float = Field(5.0, gt=0, le=3_600, description="What trainers are told to keep.")
    suspect_after_s: float = Field(30.0, gt=0, description="Silence after which a run is suspect.")
    lost_after_s: float = Field(
        600.0, gt=0, description="Silence, with the executor unreachable too, after which an attempt is lost."
    )
    external_lost_after_s: float = Field(
        7 * 86_400.0,
        gt=0,
        description="Silence after which a run that its user launched counts as failed, begun or not.",
    )
    tick_s: float = Field(
        2.0,
        gt=0,
        le=3_600,
        description="How often the scheduler rings the dispatcher, the reconciler and the reader of logs.",
    )
    refit_every_s: float = Field(1.0, ge=0, le=86_400, description="Least time between two refits of a run.")
    lease_s: float = Field(
        60.0, gt=0, le=86_400, description="How long a claimed row stays claimed when its worker dies."
    )

    freeze_fraction: float = Field(
        0.35, gt=0, lt=1, description="Share of the budget at which a run's forecast is frozen."
    )
    freeze_min_points: int = Field(8, ge=4, description="Evaluations that a forecast is frozen with at least.")
    allow_private_webhooks: bool = Field(
        False, description="Deliver to loopback and private addresses (on-premises proxies, the demo)."
    )
    smtp_url: MailServer = Field(
        SecretStr(""),
        description="The server that alerts by e-mail are handed to: `smtp://USER:PASSWORD@HOST:587`, with STARTTLS "
        "where it is offered, or `smtps://...:465`. No mail is sent when empty.",
    )
    smtp_from: Sender = Field("forecurve@localhost", description="Whom their mail is from.")


def variable(name: str, info: FieldInfo) -> str:
    """Of the environment."""
    return str(info.validation_alias or f"FORECURVE_{name.upper()}")


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The process's settings; tests call `get_settings.cache_clear()`.

    Raises:
        SystemExit: with each variable that cannot be meant. A process that has no settings can do nothing else.
    """
    try:
        return Settings()
    except ValidationError as error:
        raise SystemExit("; ".join(_faults(error))) from None


_HOLD_SECRETS = frozenset({"DATABASE_URL", "REDIS_URL", "FORECURVE_RAY_TOKEN", "FORECURVE_SMTP_URL"})


def _faults(error: ValidationError) -> Iterator[str]:
    variables = {name: variable(name, info) for name, info in Settings.model_fields.items()}
    for fault in error.errors(include_url=False):
        name = variables.get(str(fault["loc"][0]), str(fault["loc"][0]))
        said = in_words(fault["type"], fault.get("ctx", {}), fault["msg"].removeprefix("Value error, "))
        yield f"{name} {_given(name, fault)}{said}"


def _given(name: str, fault: ErrorDetails) -> str:
    """The value, unless a password may stand in it."""
    if fault["type"] == "missing" or name in _HOLD_SECRETS:
        return ""
    given = str(fault["input"])
    if "://" in given and "@" in given:
        return "has a user or a password in it: "
    return f"is {given!r}: "
