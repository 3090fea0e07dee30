"""The `/v1` API for people and scripts: a thin wrapper over HTTP. Answers are plain JSON objects as documented."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from typing import Any

from forecurve.limits import OVER

from .calls import Calls, Json, part
from .patience import PATIENCE_S, retried


class Api(Calls):
    """Calls the service at `url` with a bearer token; `with` closes it.

    Bodies and answers are those of docs/reference/http-api.md, as dicts. What gives many gives them one by one, newest
    first, and asks for the next page when it is needed; its `filters` are the query parameters of its list, and `limit`
    is the most that are given.

    Every method raises ApiError: with the service's own words (field, value, way out) when it refused, with
    `code="unreachable"` when no answer came.

    Args:
        timeout_s: for one answer.
        patience_s: seconds that a call may wait in all when the service says to ask again later (429 with
            `Retry-After`). Only what may be sent twice is: what reads, and what has an idempotency key.

    Raises:
        ClientError: `url` or `token` cannot be one.
    """

    # recipes and sweeps

    def plan_sweep(self, body: Json) -> Json:
        """What `create_sweep` would create of the same body: arms, runs, compute, plan_hash."""
        return self.post("/v1/sweeps:plan", body)

    def create_sweep(self, body: Json, *, idempotency_key: str | None = None) -> Json:
        """Submit a sweep; the answer has its `id` and its `runs`. The same body with the same key is one sweep."""
        return self.post("/v1/sweeps", body, idempotency_key=idempotency_key)

    def sweeps(self, **filters: Any) -> Iterator[Json]:
        """Sweeps with what is known of their arms."""
        return self.items("/v1/sweeps", **filters)

    def sweep(self, sweep_id: str) -> Json:
        """One sweep with its runs."""
        return self.get(f"/v1/sweeps/{part(sweep_id)}")

    def rename_sweep(self, sweep_id: str, name: str) -> Json:
        """Call it otherwise."""
        return self.patch(f"/v1/sweeps/{part(sweep_id)}", name=name)

    def label_sweep(self, sweep_id: str, **labels: Any) -> Json:
        """Tags and a note of it, as for `label_run`."""
        return self.patch(f"/v1/sweeps/{part(sweep_id)}", **labels)

    def change_sweep_policy(self, sweep_id: str, policy: str, *, budget_compute: float | None = None) -> Json:
        """Let it only `advise`, follow advice to stop by itself (`auto`), or share `budget_compute` among its runs
        (`allocate`): those that are worth more train on. Where that is left out it stays, or is the sum of their
        budgets."""
        shared = {} if budget_compute is None else {"budget_compute": budget_compute}
        return self.patch(f"/v1/sweeps/{part(sweep_id)}", policy=policy, **shared)

    def add_seeds(self, sweep_id: str, body: Json, *, idempotency_key: str | None = None) -> Json:
        """Queue further seeds: `seeds` of each of `arms` (all by default), `control_seeds` of the control. What would
        decide an undecided arm is in the sweep's comparison, as `further.request` of the arm."""
        return self.post(f"/v1/sweeps/{part(sweep_id)}/seeds", body, idempotency_key=idempotency_key)

    def add_arm(self, sweep_id: str, body: Json, *, idempotency_key: str | None = None) -> Json:
        """Queue an arm that it has not: `changes` against its base recipe, and maybe a `name`."""
        return self.post(f"/v1/sweeps/{part(sweep_id)}/arms", body, idempotency_key=idempotency_key)

    def archive_sweep(self, sweep_id: str) -> Json:
        """Put a sweep that is over away, with its runs."""
        return self.post(f"/v1/sweeps/{part(sweep_id)}:archive", {})

    def restore_sweep(self, sweep_id: str) -> Json:
        """Take it out again, with the runs that went with it."""
        return self.post(f"/v1/sweeps/{part(sweep_id)}:restore", {})

    def stop_sweep(self, sweep_id: str, reason: str | None = None) -> Json:
        """Stop every run of it."""
        return self.post(f"/v1/sweeps/{part(sweep_id)}:stop", {"reason": reason})

    # runs

    def create_run(self, body: Json, *, idempotency_key: str | None = None) -> Json:
        """Submit a run: `preset` or `recipe`, `changes`, `name`. The same body with the same key is one run."""
        return self.post("/v1/runs", body, idempotency_key=idempotency_key)

    def import_run(self, body: Json) -> Json:
        """Bring in a run that is over elsewhere, with its `evaluations`. The very same one again changes nothing, and
        its answer says so (`was_there`); one that has more of them by now gets these (`added`)."""
        return self.post("/v1/runs:import", body, idempotency_key=secrets.token_hex(16))

    def begin_attempt(self, run_id: str, body: Json, *, idempotency_key: str | None = None) -> Json:
        """Go on with a run that you launched: its next attempt, with an ingest token. What `body` names must be what
        the run has."""
        return self.post(f"/v1/runs/{part(run_id)}/attempts", body, idempotency_key=idempotency_key)

    def fork_run(self, run_id: str, body: Json, *, idempotency_key: str | None = None) -> Json:
        """Queue a run that goes on from a checkpoint of this one: `step` or `checkpoint_id`, `changes`, `name`."""
        return self.post(f"/v1/runs/{part(run_id)}/forks", body, idempotency_key=idempotency_key)

    def forks(self, run_id: str, **filters: Any) -> Iterator[Json]:
        """Runs that went on from its checkpoints."""
        return self.items(f"/v1/runs/{part(run_id)}/forks", **filters)

    def runs(self, **filters: Any) -> Iterator[Json]:
        """Runs, such as those with `sweep_id=...`, `status="running"`, `task=...` or `tag=[...]`."""
        return self.items("/v1/runs", **filters)

    def count_runs(self) -> dict[str, int]:
        """How many runs have each status."""
        return dict(self.get("/v1/runs:count")["statuses"])

    def run(self, run_id: str) -> Json:
        """One run: its status, what it reached and spent, its newest forecast and advice in short."""
        return self.get(f"/v1/runs/{part(run_id)}")

    def wait(self, run_id: str, timeout_s: float | None = None, *, every_s: float = 2.0) -> Json:
        """The run once it is over, which it is looked at for every few seconds; for ever without a timeout. A service
        that is away, as while it is restarted, is waited for 30 s.

        Raises:
            TimeoutError: it is not over by then.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while (run := retried(lambda: self.run(run_id), PATIENCE_S))["status"] not in OVER:
            if deadline is not None and time.monotonic() + every_s > deadline:
                raise TimeoutError(f"{run_id} is {run['status']} after {timeout_s:g} s")
            time.sleep(every_s)
        return run

    def rename_run(self, run_id: str, name: str) -> Json:
        """Call it otherwise."""
        return self.patch(f"/v1/runs/{part(run_id)}", name=name)

    def name_task(self, run_id: str, task: str | None) -> Json:
        """Say of which task a run without a recipe is; None: of none."""
        return self.patch(f"/v1/runs/{part(run_id)}", task=task)

    def label_run(self, run_id: str, **labels: Any) -> Json:
        """What people find it by: `tags` are all that it has from now on, `add_tags` and `remove_tags` change those
        that it has; `note` is a text, None takes it away."""
        return self.patch(f"/v1/runs/{part(run_id)}", **labels)

    def archive_run(self, run_id: str) -> Json:
        """Put a run that is over away: out of lists, inbox and counts, and no forecast learns from it."""
        return self.post(f"/v1/runs/{part(run_id)}:archive", {})

    def restore_run(self, run_id: str) -> Json:
        """Take a run out of the archive."""
        return self.post(f"/v1/runs/{part(run_id)}:restore", {})

    def stop_run(self, run_id: str, reason: str | None = None) -> Json:
        """It finishes its step, is evaluated, saves a checkpoint and ends."""
        return self.post(f"/v1/runs/{part(run_id)}:stop", {"reason": reason})

    def cancel_run(self, run_id: str, reason: str | None = None) -> Json:
        """It ends at once, without waiting for a checkpoint."""
        return self.post(f"/v1/runs/{part(run_id)}:cancel", {"reason": reason})

    def pause_run(self, run_id: str, reason: str | None = None) -> Json:
        """It ends as for a stop and gives its place away, until `resume_run`."""
        return self.post(f"/v1/runs/{part(run_id)}:pause", {"reason": reason})

    def resume_run(self, run_id: str) -> Json:
        """Queue a paused run: it goes on from its newest checkpoint."""
        return self.post(f"/v1/runs/{part(run_id)}:resume", {})

    def curve(self, run_id: str) -> Json:
        """All that a chart of the run needs: points, forecast with its band, frozen forecast, marks."""
        return self.get(f"/v1/runs/{part(run_id)}/curve")

    def track_record(self, **filters: Any) -> Json:
        """The forecasts of finished runs against what came: `table` by share of what they spent, `forecasts`,
        `waiting`."""
        return self.get("/v1/track-record", **filters)

    def checkpoints(self, run_id: str, **filters: Any) -> Iterator[Json]:
        """Its checkpoints: step, compute, where each lies, its size and digest, and whether its trainer keeps it."""
        return self.items(f"/v1/runs/{part(run_id)}/checkpoints", **filters)

    def attempts(self, run_id: str, **filters: Any) -> Iterator[Json]:
        """Each time that it was begun or went on, and how that ended."""
        return self.items(f"/v1/runs/{part(run_id)}/attempts", **filters)

    def logs(self, run_id: str, **which: Any) -> Json:
        """What its job printed: `lines`, the last ones or those from number `after` on, at most `limit`; of its newest
        attempt, or of `attempt`. `next` is the number to go on from, `whole` says that nothing more will come."""
        return self.get(f"/v1/runs/{part(run_id)}/logs", **which)

    def evaluations(self, run_id: str) -> Json:
        """The run's validation curve: `unit` and `items`."""
        return self.get(f"/v1/runs/{part(run_id)}/evaluations")

    def metric_names(self, run_id: str) -> list[str]:
        """Of all that it logged."""
        return list(self.get(f"/v1/runs/{part(run_id)}/metrics")["metrics"])

    def metric_points(self, run_id: str, metric: str) -> Iterator[Json]:
        """The whole series of one metric, oldest first, page after page."""
        since: int | None = 0
        while since is not None:
            page = self.get(f"/v1/runs/{part(run_id)}/metrics", metric=metric, since_step=since)
            yield from page["points"]
            since = page["next_step"]

    def metric_forecast(self, run_id: str, metric: str, **asked: float | None) -> Json:
        """Any metric as a curve over compute, and its forecast, made now: `low` and `high` are the range of its values,
        0 to 1 where they are left out, `budget` where it is to end, else the run's own."""
        return self.get(f"/v1/runs/{part(run_id)}/metrics:forecast", metric=metric, **asked)

    def run_events(self, run_id: str, **filters: Any) -> Iterator[Json]:
        """What happened to it."""
        return self.items(f"/v1/runs/{part(run_id)}/events", **filters)

    def recipe(self, run_id: str) -> Json:
        """Its recipe in full, every default included."""
        return self.get(f"/v1/runs/{part(run_id)}/recipe")

    def events(self, since: int = 0, **filters: Any) -> Json:
        """What happened after a cursor, oldest first: `items`, and the `cursor` to go on from."""
        return self.get("/v1/events", since=since, **filters)

    # advice

    def recommendations(self, **filters: Any) -> Iterator[Json]:
        """Advice, such as that with `status="open"` or `run_id=...`."""
        return self.items("/v1/recommendations", **filters)

    def recommendation(self, advice_id: str) -> Json:
        """One, and what became of it."""
        return self.get(f"/v1/recommendations/{part(advice_id)}")

    def accept_recommendation(self, advice_id: str, reason: str | None = None) -> Json:
        """Accepting `stop` stops the run."""
        return self.post(f"/v1/recommendations/{part(advice_id)}:accept", {"reason": reason})

    def dismiss_recommendation(self, advice_id: str, reason: str) -> Json:
        """Do not follow it, and say why."""
        return self.post(f"/v1/recommendations/{part(advice_id)}:dismiss", {"reason": reason})

    # alerts

    def alerts(self, **filters: Any) -> Iterator[Json]:
        """Alerts, such as those with `open=True` or `run_id=...`."""
        return self.items("/v1/alerts", **filters)

    def alert(self, alert_id: str) -> Json:
        """One alert, also of an archived run."""
        return self.get(f"/v1/alerts/{part(alert_id)}")

    def acknowledge_alert(self, alert_id: str) -> Json:
        """Somebody has seen it; it stays open."""
        return self.post(f"/v1/alerts/{part(alert_id)}:acknowledge", {})

    def resolve_alert(self, alert_id: str) -> Json:
        """It is over."""
        return self.post(f"/v1/alerts/{part(alert_id)}:resolve", {})

    def deliveries(self, **filters: Any) -> Iterator[Json]:
        """Messages to channels, and how each fared."""
        return self.items("/v1/deliveries", **filters)

    def delivery(self, delivery_id: str) -> Json:
        """One message to a channel."""
        return self.get(f"/v1/deliveries/{part(delivery_id)}")

    def channels(self, **filters: Any) -> Iterator[Json]:
        """Where alerts go."""
        return self.items("/v1/channels", **filters)

    def create_channel(self, body: Json) -> Json:
        """Register where alerts go; the signing secret is in this answer and never again."""
        return self.post("/v1/channels", body)

    def test_channel(self, channel_id: str) -> Json:
        """Send a test message; the answer is its delivery, which `delivery` tells the end of."""
        return self.post(f"/v1/channels/{part(channel_id)}:test", {})

    def delete_channel(self, channel_id: str) -> None:
        """Send nothing there any more."""
        self.delete(f"/v1/channels/{part(channel_id)}")

    # access

    def tokens(self, **filters: Any) -> Iterator[Json]:
        """Every token there was, or those of one `kind`: api, session (browsers), ingest (runs), login (codes)."""
        return self.items("/v1/tokens", **filters)

    def create_token(self, body: Json) -> Json:
        """Mint a token; its secret is in this answer and never again."""
        return self.post("/v1/tokens", body)

    def revoke_token(self, token_id: str) -> Json:
        """From now on it opens nothing."""
        return self.delete(f"/v1/tokens/{part(token_id)}") or {}
