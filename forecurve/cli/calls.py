"""The calls of `/v1` that only commands make, beside those of the Python client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forecurve.client.api import Api, Json, _part


class Calls(Api):
    """The whole API, as the commands ask it."""

    # access

    def tokens(self, **filters: Any) -> Iterator[Json]:
        """Every token there was: of the API, of browser sessions, of runs, and login codes."""
        return self.items("/v1/tokens", **filters)

    def create_token(self, body: Json) -> Json:
        """Mint a token; its secret is in this answer and never again."""
        return self.post("/v1/tokens", body)

    def revoke_token(self, token_id: str) -> Json:
        return dict(self._send("DELETE", f"/v1/tokens/{_part(token_id)}").json())

    # alerts

    def channels(self, **filters: Any) -> Iterator[Json]:
        return self.items("/v1/channels", **filters)

    def acknowledge_alert(self, alert_id: str) -> Json:
        return self.post(f"/v1/alerts/{_part(alert_id)}:acknowledge", {})

    def resolve_alert(self, alert_id: str) -> Json:
        return self.post(f"/v1/alerts/{_part(alert_id)}:resolve", {})

    # advice

    def recommendations(self, **filters: Any) -> Iterator[Json]:
        return self.items("/v1/recommendations", **filters)

    def accept_recommendation(self, advice_id: str, reason: str | None) -> Json:
        return self.post(f"/v1/recommendations/{_part(advice_id)}:accept", {"reason": reason})

    def dismiss_recommendation(self, advice_id: str, reason: str) -> Json:
        return self.post(f"/v1/recommendations/{_part(advice_id)}:dismiss", {"reason": reason})

    # what a run has

    def checkpoints(self, run_id: str, **filters: Any) -> Iterator[Json]:
        return self.items(f"/v1/runs/{_part(run_id)}/checkpoints", **filters)

    def attempts(self, run_id: str, **filters: Any) -> Iterator[Json]:
        return self.items(f"/v1/runs/{_part(run_id)}/attempts", **filters)

    def run_events(self, run_id: str, **filters: Any) -> Iterator[Json]:
        return self.items(f"/v1/runs/{_part(run_id)}/events", **filters)

    def evaluations(self, run_id: str) -> Json:
        """The run's validation curve: `unit` and `items`."""
        return self.get(f"/v1/runs/{_part(run_id)}/evaluations")

    def metric_names(self, run_id: str) -> list[str]:
        return list(self.get(f"/v1/runs/{_part(run_id)}/metrics")["metrics"])

    def metric_points(self, run_id: str, metric: str) -> Iterator[Json]:
        """The whole series of one metric, oldest first, page after page."""
        since: int | None = 0
        while since is not None:
            page = self.get(f"/v1/runs/{_part(run_id)}/metrics", metric=metric, since_step=since)
            yield from page["points"]
            since = page["next_step"]
