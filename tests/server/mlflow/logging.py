"""What the tests of MLflow's doors share: a client's end of the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi.testclient import TestClient
from httpx import Response

from tests.server.reporting import Headers

DOORS = "/mlflow/api/2.0/mlflow"


@dataclass
class Logger:
    """Asks as MLflow's client does."""

    api: TestClient
    headers: Headers

    def post(self, door: str, scope: str = "operate", /, **body: Any) -> Response:
        return self.api.post(f"{DOORS}/{door}", json=body, headers=self.headers[scope])

    def get(self, door: str, **asked: Any) -> Response:
        return self.api.get(f"{DOORS}/{door}", params=asked, headers=self.headers["read"])

    def experiment(self, name: str = "gsm8k", **tags: Any) -> str:
        answer = self.post("experiments/create", name=name, tags=as_tags(tags))
        assert answer.status_code == 200, answer.text
        return str(answer.json()["experiment_id"])

    def begin(self, name: str = "grpo", experiment: str = "0", start: int = 1_790_000_000_000, **tags: Any) -> str:
        """Id of a run that has begun."""
        body = {"experiment_id": experiment, "run_name": name, "start_time": start, "tags": as_tags(tags)}
        answer = self.post("runs/create", **body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["run"]["info"]["run_id"])

    def log(self, run: str, step: int, at: int = 1_790_000_000_000, /, **numbers: float | str) -> Response:
        """Numbers of one step; `__` in a name is `/`."""
        metrics = [
            {"key": name.replace("__", "/"), "value": value, "timestamp": at, "step": step}
            for name, value in numbers.items()
        ]
        return self.post("runs/log-batch", run_id=run, metrics=metrics)

    def run(self, run: str) -> dict[str, Any]:
        """As our own API has it."""
        answer: dict[str, Any] = self.api.get(f"/v1/runs/{run}", headers=self.headers["read"]).json()
        return answer

    def curve(self, run: str) -> list[tuple[int, float, float]]:
        """(step, compute, reward) of its evaluations."""
        items = self.api.get(f"/v1/runs/{run}/evaluations", headers=self.headers["read"]).json()["items"]
        return [(one["step"], one["compute"], one["reward"]) for one in items]


def as_tags(tags: dict[str, Any]) -> list[dict[str, str]]:
    """`metric="x"` is the tag `forecurve.metric`."""
    return [{"key": f"forecurve.{name}", "value": str(value)} for name, value in tags.items()]
