"""The Ray Jobs executor: the REST API of a Ray head over httpx, so that the service needs no Ray installed.

Measured on Ray 2.60: submitting an id twice answers 500 with a traceback (not 409), the first submission after the
head's start takes 5 to 6 s and later ones 30 to 80 ms, a stopped or unknown job answers 404, and a failed job's
`message` carries the end of its log.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

import httpx

from forecurve.client.http import certificates as trusted_at
from forecurve.client.http import is_loopback

from .base import Away, JobSpec, Observation, State, SubmitError, Submitted
from .job_log import JobLog, decoded, job_log

TOKEN_ID = "forecurve_token"
"""Metadata of a job: the id (not the secret) of the ingest token that it was given."""

_STATES = {
    "PENDING": State.PENDING,
    "RUNNING": State.RUNNING,
    "SUCCEEDED": State.SUCCEEDED,
    "FAILED": State.FAILED,
    "STOPPED": State.STOPPED,
}
_NEVER_BETTER = {"JOB_ENTRYPOINT_COMMAND_ERROR", "JOB_ENTRYPOINT_COMMAND_START_ERROR"}
"""Error types that lie with the job itself; all others lie with the cluster, where another attempt may go better."""

_TRY_AGAIN = 75
"""Exit code of a trainer that lost a worker or its machine: sysexits' "temporary failure"."""

_NOT_THERE = (126, 127)
"""A shell's exit codes for a command that it cannot run, and one that it does not find."""


class RayJobs:
    """Executor on one Ray cluster, named by the URL of its dashboard."""

    def __init__(self, url: str, token: str | None = None, *, submit_timeout_s: float = 20.0):
        """`url` is the dashboard's. A submission needs its time: the first after the head's start takes seconds.

        Raises:
            ValueError: the address is not on this machine and no token is given. Whoever reaches an open Jobs API runs
                any command on the cluster. Or the environment names certificates that cannot be read.
        """
        self.url = url.rstrip("/")
        if token is None and not is_loopback(self.url):
            raise ValueError(
                f"{self.url} is not on this machine: set FORECURVE_RAY_TOKEN to the cluster's RAY_AUTH_TOKEN."
            )
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = httpx.Timeout(5.0, connect=3.0)
        self._submit_timeout = httpx.Timeout(submit_timeout_s, connect=3.0)
        # trust_env off: a proxy named in the environment must not see the cluster's token
        verify = certificates(self.url)
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, trust_env=False, verify=verify)

    def submit(self, job: JobSpec) -> Submitted:
        """Submit; whatever goes wrong, look whether the job is there: the answer may have been lost, not the job."""
        metadata = dict(job.metadata)
        body = {
            "submission_id": job.reference,
            "entrypoint": job.command,
            "runtime_env": {"env_vars": dict(job.environment)},
            "metadata": metadata,
            # the trainer reserves for its own actors; what is reserved here would come on top of it
            "entrypoint_num_cpus": 0,
            "entrypoint_num_gpus": 0,
        }
        try:
            answer = self._http.post("/api/jobs/", json=body, timeout=self._submit_timeout)
        except httpx.HTTPError as error:
            return self._adopt(
                job.reference, f"{self.url} did not answer the submission ({_name(error)})", retryable=True
            )
        if answer.is_success:
            return Submitted(job.reference, created=True, token_id=metadata.get(TOKEN_ID))
        if answer.status_code in (401, 403):
            raise SubmitError(
                f"{self.url} refused the token ({answer.status_code}): check FORECURVE_RAY_TOKEN", retryable=True
            )
        refused = answer.status_code < 500 and answer.status_code not in (404, 408, 429)
        reason = f"{self.url} answered {answer.status_code}: {_last_line(answer.text) or 'nothing'}"
        return self._adopt(job.reference, reason, retryable=not refused)

    def observe(self, references: Iterable[str]) -> dict[str, Observation]:
        wanted = list(references)
        if not wanted:
            return {}
        try:
            answer = self._http.get("/api/jobs/")
            answer.raise_for_status()
            jobs = {job["submission_id"]: job for job in answer.json() if job.get("submission_id")}
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
            silent = Observation(State.UNREACHABLE, reason=f"{self.url}: {_name(error)}")
            return dict.fromkeys(wanted, silent)
        return {reference: _observation(jobs.get(reference)) for reference in wanted}

    def stop(self, reference: str) -> bool:
        try:
            answer = self._http.post(f"/api/jobs/{quote(reference)}/stop")
        except httpx.HTTPError:
            return False
        return answer.is_success or answer.status_code == 404

    def log(self, reference: str, within_s: float = 25.0) -> JobLog | None:
        """See Executor. A job that printed what is no UTF-8 has no log: Ray answers 500 for it."""
        ends = time.monotonic() + within_s
        timeout = httpx.Timeout(within_s, connect=3.0)  # a long one is read whole before its first byte is sent
        try:
            with self._http.stream("GET", f"/api/jobs/{quote(reference)}/logs", timeout=timeout) as answer:
                if answer.status_code == 404:
                    return JobLog(0, ())
                return job_log(decoded(_until(ends, answer.iter_bytes()))) if answer.is_success else None
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise Away(_name(error)) from error
        except (httpx.HTTPError, ValueError):
            return None

    def _adopt(self, reference: str, reason: str, *, retryable: bool) -> Submitted:
        """The job when it is there after all; else SubmitError with `reason`."""
        try:
            answer = self._http.get(f"/api/jobs/{quote(reference)}")
            if answer.is_success:
                return Submitted(reference, created=False, token_id=_token_id(answer.json()))
        except (httpx.HTTPError, ValueError):
            raise SubmitError(reason, retryable=True) from None
        raise SubmitError(reason, retryable=retryable)


def certificates(url: str) -> ssl.SSLContext:
    """Those to trust at `url`, by SSL_CERT_FILE or SSL_CERT_DIR too, though no proxy of the environment is used.

    Raises:
        ValueError: none can be read there.
    """
    try:
        return trusted_at(url)
    except OSError as error:
        told = f"no certificates for {url} can be read where SSL_CERT_FILE or SSL_CERT_DIR says ({error})"
        raise ValueError(f"{told}; mend that, or unset it") from None


def _until(ends: float, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks as they come. Timeouts of a connection are for each read: one that trickles would go on for ever."""
    for chunk in chunks:
        yield chunk
        if time.monotonic() > ends:
            raise ValueError("the answer takes too long")


def _observation(job: dict[str, Any] | None) -> Observation:
    if job is None:
        return Observation(State.GONE, retryable=True, reason="The cluster knows no such job.")
    state = _STATES.get(str(job.get("status")))
    if state is None:
        return Observation(
            State.UNREACHABLE, reason=f"The cluster gave the job an unknown status, {job.get('status')!r}."
        )
    exit_code = job.get("driver_exit_code")
    message, _, log = str(job.get("message") or "").partition(", last available logs")
    return Observation(
        state,
        retryable=state is State.FAILED and _may_go_better(job.get("error_type"), exit_code),
        exit_code=exit_code,
        reason=_reason(message, job.get("error_type"), exit_code) if state in (State.FAILED, State.STOPPED) else None,
        log_tail=job_log([log.partition("\n")[2]]).tail() or None,
        token_id=_token_id(job),
    )


def _may_go_better(error_type: str | None, exit_code: int | None) -> bool:
    """Whether the cause lay outside the job: the cluster's fault, a signal (killed for memory, node taken away), or the
    trainer's own word."""
    if exit_code is not None and (exit_code < 0 or exit_code > 128 or exit_code == _TRY_AGAIN):
        return True
    return error_type not in _NEVER_BETTER


def _reason(message: str, error_type: str | None, exit_code: int | None) -> str:
    said = (next(iter(_lines(message)), None) or error_type or "The job failed.")[:300]
    if exit_code not in _NOT_THERE:
        return said
    return f"{said.rstrip('.')}: no trainer is there, FORECURVE_TRAINER_COMMAND names it"


def _token_id(job: dict[str, Any]) -> str | None:
    metadata = job.get("metadata")
    found = metadata.get(TOKEN_ID) if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else None


def _last_line(text: str) -> str:
    """Of what a head answered, which may hold what it was asked."""
    return (_lines(text) or [""])[-1][:300]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in job_log([text]).ended.lines if line.strip(" .")]


def _name(error: Exception) -> str:
    return str(error) or type(error).__name__
