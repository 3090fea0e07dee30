"""The doors that MLflow's clients report a run by, under `/mlflow`: `MLFLOW_TRACKING_URI=http://HOST:PORT/mlflow`.

They are part of MLflow's REST API, which describes them; so they are not in ours.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from forecurve.limits import MAX_STEP
from server.dependencies import Caller, DbSession, Now, Operator, Reader
from server.errors import Invalid, NotFound
from server.metrics.service import metric_points

from . import answers, experiments, runs
from .numbers import take
from .route import MlflowRoute
from .schemas import (
    Batch,
    ExperimentCreate,
    ExperimentTag,
    Number,
    NumberOfRun,
    OfRun,
    RunCreate,
    RunUpdate,
    Tag,
    TagOfRun,
)

PREFIX = "/mlflow/api/2.0/mlflow"
_MOST = 25_000

router = APIRouter(prefix=PREFIX, route_class=MlflowRoute, include_in_schema=False)

Answer = dict[str, Any]


@router.post("/experiments/create")
def create_experiment(body: ExperimentCreate, session: DbSession, _: Operator) -> Answer:
    return {"experiment_id": experiments.create(session, body).id}


@router.get("/experiments/get")
def get_experiment(session: DbSession, _: Reader, experiment_id: str = "") -> Answer:
    return {"experiment": answers.experiment(experiments.get(session, experiment_id))}


@router.get("/experiments/get-by-name")
def get_experiment_by_name(session: DbSession, _: Reader, experiment_name: str = "") -> Answer:
    return {"experiment": answers.experiment(experiments.by_name(session, experiment_name))}


@router.post("/experiments/search")
def search_experiments(body: dict[str, Any], session: DbSession, _: Reader) -> Answer:
    """All of them: a filter is refused, for a list that does not heed it would be another answer."""
    if body.get("filter"):
        raise Invalid.field("filter", body["filter"], "is not heeded here; leave it out")
    return {"experiments": [answers.experiment(one) for one in experiments.every(session)]}


@router.post("/experiments/set-experiment-tag")
def set_experiment_tag(body: ExperimentTag, session: DbSession, _: Operator, now: Now) -> Answer:
    experiments.set_tag(session, body, now=now)
    return {}


@router.post("/runs/create")
def create_run(body: RunCreate, session: DbSession, identity: Operator, now: Now) -> Answer:
    return {"run": answers.run(session, runs.create(session, body, actor=identity.token_id, now=now))}


@router.post("/runs/update")
def update_run(body: RunUpdate, session: DbSession, identity: Operator, now: Now) -> Answer:
    return {"run_info": answers.info(session, runs.update(session, body, actor=identity.token_id, now=now))}


@router.get("/runs/get")
def get_run(session: DbSession, _: Reader, run_id: str = "", run_uuid: str = "") -> Answer:
    return {"run": answers.run(session, runs.mine_of(session, run_id or run_uuid))}


@router.post("/runs/log-metric")
def log_metric(body: NumberOfRun, session: DbSession, identity: Operator, now: Now) -> Answer:
    number = Number(**body.model_dump(include=set(Number.model_fields)))
    take(session, Batch(run_id=body.run, metrics=[number]), actor=identity.token_id, now=now)
    return {}


@router.post("/runs/log-batch")
def log_batch(body: Batch, session: DbSession, identity: Operator, now: Now) -> Answer:
    take(session, body, actor=identity.token_id, now=now)
    return {}


@router.post("/runs/log-parameter")
def log_parameter(body: TagOfRun, session: DbSession, identity: Operator, now: Now) -> Answer:
    told = Tag(key=body.key, value=body.value)
    take(session, Batch(run_id=body.run, params=[told]), actor=identity.token_id, now=now)
    return {}


@router.post("/runs/set-tag")
def set_tag(body: TagOfRun, session: DbSession, identity: Operator, now: Now) -> Answer:
    told = Tag(key=body.key, value=body.value)
    take(session, Batch(run_id=body.run, tags=[told]), actor=identity.token_id, now=now)
    return {}


@router.post("/runs/delete-tag")
def delete_tag(body: TagOfRun, session: DbSession, _: Operator) -> Answer:
    runs.drop_tag(session, *runs.locked(session, body.run), body.key)
    return {}


@router.post("/runs/log-inputs")
@router.post("/runs/outputs")
def log_inputs(body: OfRun, session: DbSession, _: Operator) -> Answer:
    """Which data sets and models a run has: they are not kept, which is no reason to end a training."""
    runs.mine_of(session, body.run)
    return {}


@router.get("/metrics/get-history")
def get_history(
    session: DbSession,
    _: Reader,
    metric_key: str,
    run_id: str = "",
    run_uuid: str = "",
    max_results: Annotated[int, Query(ge=1, le=_MOST)] = _MOST,
    page_token: Annotated[str, Query(pattern=r"^\d{0,10}$")] = "",
) -> Answer:
    """Each step once, from the newest attempt; the page's token is the step that follows."""
    mine = runs.mine_of(session, run_id or run_uuid)
    rows, following = metric_points(
        session, mine.run_id, metric_key, since_step=min(int(page_token or 0), MAX_STEP), limit=max_results
    )
    told: Answer = {"metrics": [answers.number(row) for row in rows]}
    return told if following is None else told | {"next_page_token": str(following)}


@router.api_route("/{rest:path}", methods=["GET", "POST", "PATCH", "DELETE"])
def elsewhere(rest: str, request: Request, _: Caller) -> Answer:
    """What else MLflow has: models, traces, artifacts."""
    ways = [route.path.removeprefix(f"{PREFIX}/") for route in router.routes[:-1] if hasattr(route, "path")]
    takes = f"a run is reported by {', '.join(ways)}, and nothing else of MLflow is here"
    raise NotFound.field("path", f"{request.method} {rest}", takes)
