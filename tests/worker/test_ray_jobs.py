"""The Ray Jobs executor against the answers that Ray gives, and (marked `ray`) against a real head."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import pytest

from server.access.service import authenticate
from server.logs.service import read_log
from tests.ray_head import RayHead, ray_head
from tests.worker.fake_ray import TOKEN, FakeRay
from tests.worker.harness import World
from worker.executors.base import OVER, Away, JobSpec, Observation, State, SubmitError
from worker.executors.ray_jobs import TOKEN_ID, RayJobs
from worker.launch import launch
from worker.read_logs import read_logs
from worker.reconcile import reconcile

__all__ = ["ray_head"]


@pytest.fixture
def executor(ray: FakeRay) -> RayJobs:
    return RayJobs(ray.url, TOKEN, submit_timeout_s=0.5)


def a_job(reference: str = "run_1-a1", command: str = "true") -> JobSpec:
    return JobSpec(reference, command, {"FORECURVE_TOKEN": "fc_ingest_0123456789"}, {TOKEN_ID: "tok_1"})


def test_a_secret_is_not_in_a_jobs_repr():
    assert "fc_ingest_0123456789" not in repr(a_job())


@pytest.mark.parametrize("url", ["http://ray-head:8265", "http://10.1.2.3:8265", "https://ray.example.org"])
def test_a_cluster_elsewhere_needs_a_token(url):
    with pytest.raises(ValueError, match="FORECURVE_RAY_TOKEN"):
        RayJobs(url)
    RayJobs(url, "token")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8265", "http://localhost:8265", "http://[::1]:8265"])
def test_a_cluster_on_this_machine_may_do_without(url):
    RayJobs(url)


def test_a_new_job_is_created_and_a_second_submission_adopts_it(executor: RayJobs, ray: FakeRay):
    first, second = executor.submit(a_job()), executor.submit(a_job())
    assert (first.created, second.created) == (True, False)
    assert second.token_id == "tok_1"
    assert ray.submissions == ["run_1-a1"]
    assert ray.jobs["run_1-a1"]["runtime_env"]["env_vars"] == {"FORECURVE_TOKEN": "fc_ingest_0123456789"}


def test_a_lost_answer_is_no_lost_job(executor: RayJobs, ray: FakeRay):
    ray.hang = True
    assert executor.submit(a_job()).created is False


@pytest.mark.parametrize(
    ("answer", "retryable"),
    [
        ((400, "TypeError: entrypoint must be a string"), False),
        ((401, "Unauthorized"), True),
        ((403, "Forbidden"), True),
        ((429, "slow down"), True),
        ((500, "No available agent to submit job, please try again later."), True),
        ((503, ""), True),
    ],
)
def test_a_refused_submission_says_whether_to_try_again(executor: RayJobs, ray: FakeRay, answer, retryable):
    ray.fails_with = answer
    with pytest.raises(SubmitError) as raised:
        executor.submit(a_job())
    assert raised.value.retryable is retryable
    assert ray.url in raised.value.reason


def test_a_refusal_that_repeats_what_was_submitted_keeps_the_token_to_itself(executor: RayJobs, ray: FakeRay):
    ray.fails_with = 400, f"Invalid request: {dict(a_job().environment)}"
    with pytest.raises(SubmitError) as raised:
        executor.submit(a_job())
    assert "'FORECURVE_TOKEN': 'fc_ingest_...'" in raised.value.reason


def test_a_head_that_is_down_may_be_asked_again(executor: RayJobs, ray: FakeRay):
    ray.stop()
    with pytest.raises(SubmitError) as raised:
        executor.submit(a_job())
    assert raised.value.retryable
    assert executor.observe(["run_1-a1"])["run_1-a1"].state is State.UNREACHABLE
    assert executor.stop("run_1-a1") is False
    with pytest.raises(Away):
        executor.log("run_1-a1")


@pytest.mark.parametrize(
    ("status", "fields", "expected"),
    [
        ("PENDING", {}, (State.PENDING, False)),
        ("RUNNING", {}, (State.RUNNING, False)),
        ("SUCCEEDED", {"driver_exit_code": 0}, (State.SUCCEEDED, False)),
        ("STOPPED", {}, (State.STOPPED, False)),
        ("FAILED", {"error_type": "JOB_ENTRYPOINT_COMMAND_ERROR", "driver_exit_code": 1}, (State.FAILED, False)),
        ("FAILED", {"error_type": "JOB_ENTRYPOINT_COMMAND_ERROR", "driver_exit_code": 127}, (State.FAILED, False)),
        ("FAILED", {"error_type": "JOB_ENTRYPOINT_COMMAND_ERROR", "driver_exit_code": 75}, (State.FAILED, True)),
        ("FAILED", {"error_type": "JOB_ENTRYPOINT_COMMAND_ERROR", "driver_exit_code": 137}, (State.FAILED, True)),
        ("FAILED", {"error_type": "JOB_ENTRYPOINT_COMMAND_ERROR", "driver_exit_code": -9}, (State.FAILED, True)),
        ("FAILED", {"error_type": "JOB_ENTRYPOINT_COMMAND_START_ERROR"}, (State.FAILED, False)),
        ("FAILED", {"error_type": "JOB_SUPERVISOR_ACTOR_DIED"}, (State.FAILED, True)),
        ("FAILED", {"error_type": "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"}, (State.FAILED, True)),
        ("FAILED", {"error_type": "RUNTIME_ENV_SETUP_FAILURE"}, (State.FAILED, True)),
        ("FAILED", {"error_type": None}, (State.FAILED, True)),
        ("WHATEVER", {}, (State.UNREACHABLE, False)),
    ],
)
def test_rays_words_are_understood(executor: RayJobs, ray: FakeRay, status, fields, expected):
    executor.submit(a_job())
    ray.set("run_1-a1", status, **fields)
    seen = executor.observe(["run_1-a1"])["run_1-a1"]
    assert (seen.state, seen.retryable) == expected


def test_a_command_that_is_not_there_names_the_setting(executor: RayJobs, ray: FakeRay):
    executor.submit(a_job())
    said = {"message": "Job entrypoint command failed with exit code 127, last available logs: sh: not found"}
    ray.set("run_1-a1", "FAILED", error_type="JOB_ENTRYPOINT_COMMAND_ERROR", driver_exit_code=127, **said)
    reason = executor.observe(["run_1-a1"])["run_1-a1"].reason
    way_out = "no trainer is there, FORECURVE_TRAINER_COMMAND names it"
    assert reason == f"Job entrypoint command failed with exit code 127: {way_out}"


def test_a_look_answers_for_every_job_asked_about(executor: RayJobs):
    executor.submit(a_job("run_1-a1"))
    executor.submit(a_job("run_2-a1"))
    seen = executor.observe(["run_1-a1", "run_9-a1"])
    assert {reference: look.state for reference, look in seen.items()} == {
        "run_1-a1": State.PENDING,
        "run_9-a1": State.GONE,
    }
    assert executor.observe([]) == {}


def test_an_api_in_trouble_is_unreachable_and_nothing_is_gone(executor: RayJobs, ray: FakeRay):
    executor.submit(a_job())
    ray.blind = True
    assert executor.observe(["run_1-a1"])["run_1-a1"].state is State.UNREACHABLE


def test_a_wrong_cluster_token_is_unreachable_and_nothing_is_gone(ray: FakeRay):
    stranger = RayJobs(ray.url, "wrong")
    assert stranger.observe(["run_1-a1"])["run_1-a1"].state is State.UNREACHABLE
    assert stranger.stop("run_1-a1") is False


def test_stopping_an_unknown_job_is_done(executor: RayJobs):
    assert executor.stop("run_9-a1") is True


def test_only_the_end_of_a_long_log_is_kept(executor: RayJobs, ray: FakeRay):
    executor.submit(a_job())
    ray.logs["run_1-a1"] = "x" * 5_000_000 + "\nthe end"
    log = executor.log("run_1-a1")
    assert log is not None
    assert log.lines == (f"{'x' * 4_000} ... (cut here)",)
    assert log.unfinished == "the end"
    assert log.tail() == f"{log.lines[0]}\nthe end"


def test_a_log_that_cannot_be_had_is_no_cluster_that_is_away(executor: RayJobs, ray: FakeRay):
    ray.unreadable.add("run_1-a1")
    assert executor.log("run_1-a1") is None
    ray.blind = True
    assert executor.log("run_2-a1") is None


def test_a_log_that_trickles_is_given_up_in_time(executor: RayJobs, ray: FakeRay):
    ray.logs["run_1-a1"], ray.trickle_s = "step 0\n" * 50, 0.02
    began = time.perf_counter()
    assert executor.log("run_1-a1", within_s=0.2) is None
    assert time.perf_counter() - began < 3  # the whole would take 8 s
    ray.trickle_s = 0.0
    assert executor.log("run_1-a1", within_s=5.0) is not None


@pytest.fixture(scope="module")
def real(ray_head: RayHead) -> RayJobs:
    return RayJobs(ray_head.url, ray_head.token, submit_timeout_s=120)


def wait_until_over(executor: RayJobs, reference: str, limit_s: float = 150) -> Observation:
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        seen = executor.observe([reference])[reference]
        if seen.state in OVER:
            return seen
        time.sleep(0.3)
    raise AssertionError(f"{reference} was not over after {limit_s} s: {seen}")


def is_soon(holds: Callable[[], bool], limit_s: float = 60) -> bool:
    """A busy machine makes a head unreachable for a moment, which the executor says and does not raise."""
    ends = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(0.3)
    return True


@pytest.mark.ray
def test_a_real_cluster_runs_a_job_once_and_tells_how_it_ended(real: RayJobs, record_property):
    began = time.perf_counter()
    created = real.submit(a_job("run_r-a1", 'echo "token is $FORECURVE_TOKEN"; exit 3'))
    record_property("first_submission_s", time.perf_counter() - began)
    began = time.perf_counter()
    again = real.submit(a_job("run_r-a1", "echo another"))
    record_property("second_submission_s", time.perf_counter() - began)
    assert (created.created, again.created, again.token_id) == (True, False, "tok_1")
    seen = wait_until_over(real, "run_r-a1")
    assert (seen.state, seen.exit_code, seen.retryable) == (State.FAILED, 3, False)
    assert seen.reason == "Job entrypoint command failed with exit code 3"
    assert seen.log_tail == "token is fc_ingest_..."
    assert is_soon(lambda: (log := real.log("run_r-a1")) is not None and log.lines == ("token is fc_ingest_...",))


@pytest.mark.ray
def test_a_real_clusters_job_that_was_killed_may_be_tried_again(real: RayJobs):
    real.submit(a_job("run_k-a1", "kill -9 $$"))
    seen = wait_until_over(real, "run_k-a1")
    assert (seen.state, seen.retryable) == (State.FAILED, True)


@pytest.mark.ray
def test_a_real_cluster_stops_a_job_and_knows_no_stranger(real: RayJobs):
    real.submit(a_job("run_s-a1", "sleep 300"))
    assert is_soon(lambda: real.stop("run_s-a1"))
    assert wait_until_over(real, "run_s-a1").state is State.STOPPED
    assert is_soon(lambda: real.stop("run_nobody-a1"))
    assert is_soon(lambda: real.observe(["run_nobody-a1"])["run_nobody-a1"].state is State.GONE)


@pytest.mark.ray
def test_a_real_cluster_refuses_strangers(ray_head: RayHead):
    stranger = RayJobs(ray_head.url, "wrong")
    assert stranger.observe(["run_r-a1"])["run_r-a1"].state is State.UNREACHABLE
    with pytest.raises(SubmitError, match="FORECURVE_RAY_TOKEN"):
        stranger.submit(a_job("run_x-a1"))


@pytest.mark.ray
def test_a_run_goes_through_a_real_cluster_from_admission_to_its_end(real: RayJobs, world: World, tmp_path):
    """The entry point is a line of shell that shows what it was given; it reports nothing, so its exit code counts."""
    context = dataclasses.replace(world.context, executor=real)
    world.settings.trainer_command = f"env > {tmp_path / 'given'}; echo token $FORECURVE_TOKEN; printf 'the end'"
    run = world.add_run()
    (attempt_id,) = world.admit()
    launch(context, attempt_id, world.now)
    wait_until_over(real, f"{run}-a1")
    assert is_soon(lambda: not reconcile(context, world.now) and world.attempt(run).observed == "succeeded")
    assert world.run(run).status == "launching", "the executor's word must stand for a while"
    world.wait(10)
    assert is_soon(lambda: reconcile(context, world.now) == 1)
    assert world.run(run).status == "succeeded"
    given = dict(line.split("=", 1) for line in (tmp_path / "given").read_text().splitlines() if "=" in line)
    assert (given["FORECURVE_RUN"], given["FORECURVE_ATTEMPT"]) == (run, "1")
    with world.sessions() as session:
        assert authenticate(session, given["FORECURVE_TOKEN"], world.now).run_id == run
    assert is_soon(lambda: read_logs(context, world.now) == 1)
    with world.sessions.begin() as session:
        log = read_log(session, run, None, after=None, limit=10, now=world.now)
    assert (log.lines[0], log.lines[-1].startswith("the end"), log.whole) == ("token fc_ingest_...", True, True)
