"""Launching: one submission whatever happens, and only the token that the job holds stays good."""

from __future__ import annotations

import shlex
from datetime import timedelta

import pytest
from sqlalchemy import select

from server.access.models import Token
from server.access.service import authenticate
from server.checkpoints.models import Checkpoint
from server.errors import Unauthenticated
from server.events.models import OutboxMessage
from tests.at_once import at_once
from tests.worker.harness import World
from worker.executors.base import JobSpec, Submitted


def admitted(world: World) -> tuple[str, str]:
    run = world.add_run()
    (attempt_id,) = world.admit()
    return run, attempt_id


def secret_of(world: World, reference: str) -> str:
    return world.ray.jobs[reference]["runtime_env"]["env_vars"]["FORECURVE_TOKEN"]


def test_a_job_gets_what_the_trainer_needs(world: World):
    run, attempt_id = admitted(world)
    world.launch(attempt_id)
    job = world.ray.jobs[f"{run}-a1"]
    environment = dict(job["runtime_env"]["env_vars"])
    secret = environment.pop("FORECURVE_TOKEN")
    assert environment == {
        "FORECURVE_URL": "http://127.0.0.1:8400",
        "FORECURVE_RUN": run,
        "FORECURVE_ATTEMPT": "1",
        "FORECURVE_OUT": str(world.settings.data_dir / "runs" / run),
    }
    assert job["entrypoint"] == "python -m trainer --run"
    assert job["metadata"]["run"] == run
    with world.sessions() as session:
        identity = authenticate(session, secret, world.now)
    assert (identity.run_id, identity.attempt, identity.scopes) == (run, 1, frozenset({"ingest"}))


def test_the_job_of_a_fork_begins_at_its_parents_checkpoint_in_every_attempt(world: World):
    parent = world.running()
    world.report(parent, "succeeded")
    world.reconcile()
    path = "/runs/it's $HOME/checkpoints/step_000050"
    with world.sessions.begin() as session:
        begin = Checkpoint(run_id=parent, attempt=1, step=50, path=path, digest="a" * 64, size_bytes=1)
        session.add(begin)
        session.flush()
        begins = {"parent_run_id": parent, "parent_checkpoint_id": begin.id, "parent_step": begin.step}
    run = world.running(**begins)
    world.ray.set(f"{run}-a1", "FAILED", error_type="JOB_SUPERVISOR_ACTOR_DIED")
    world.reconcile_for(120)
    (attempt_id,) = world.admit()
    world.launch(attempt_id)
    lines = [world.ray.jobs[f"{run}-a{attempt}"]["entrypoint"] for attempt in (1, 2)]
    assert [shlex.split(line) for line in lines] == [
        ["python", "-m", "trainer", "--run", f"--fork={path}", f"--digest={'a' * 64}"]
    ] * 2


def test_the_trainers_own_address_and_path_are_passed_when_set(world: World):
    world.settings.trainer_url, world.settings.trainer_path = "http://api:8400", "/opt/forecurve"
    world.settings.trainer_dir = "/scratch/runs"
    run, attempt_id = admitted(world)
    world.launch(attempt_id)
    environment = world.ray.jobs[f"{run}-a1"]["runtime_env"]["env_vars"]
    assert (environment["FORECURVE_URL"], environment["PYTHONPATH"]) == ("http://api:8400", "/opt/forecurve")
    assert environment["FORECURVE_OUT"] == f"/scratch/runs/{run}"


def test_a_submission_is_recorded(world: World):
    run, attempt_id = admitted(world)
    world.launch(attempt_id)
    attempt = world.attempt(run)
    assert (attempt.external_ref, attempt.submitted_at, attempt.lease) == (f"{run}-a1", world.now, None)


def test_a_second_delivery_does_nothing(world: World):
    run, attempt_id = admitted(world)
    for _ in range(3):
        world.launch(attempt_id)
    assert world.ray.submissions == [f"{run}-a1"]


def test_many_deliveries_at_once_submit_once(world: World):
    run, attempt_id = admitted(world)
    at_once(6, lambda: world.launch(attempt_id))
    assert world.ray.submissions == [f"{run}-a1"]
    with world.sessions() as session:
        assert len(session.scalars(select(Token).where(Token.run_id == run)).all()) == 1


def test_a_job_whose_answer_never_came_is_adopted(world: World):
    world.ray.hang = True
    run, attempt_id = admitted(world)
    world.launch(attempt_id)
    assert world.ray.submissions == [f"{run}-a1"]
    assert world.attempt(run).external_ref == f"{run}-a1"


def test_the_token_that_an_adopted_job_holds_stays_good_and_the_others_are_revoked(world: World):
    """The first try gets through, but neither its answer nor the look after it reaches us; a second try follows."""
    run, attempt_id = admitted(world)
    world.ray.hang = world.ray.blind = True
    world.launch(attempt_id)
    assert world.attempt(run).external_ref is None
    world.ray.hang = world.ray.blind = False
    world.wait(2)
    world.launch(attempt_id)
    assert world.attempt(run).external_ref == f"{run}-a1"
    assert world.ray.submissions == [f"{run}-a1"]
    held = secret_of(world, f"{run}-a1")
    with world.sessions() as session:
        assert authenticate(session, held, world.now).run_id == run
        tokens = session.scalars(select(Token).where(Token.run_id == run)).all()
        assert sorted(token.revoked_at is None for token in tokens) == [False, True]


def test_when_it_is_not_known_which_token_an_adopted_job_holds_all_stay_good(world: World):
    run, attempt_id = admitted(world)
    world.ray.hang = world.ray.blind = True
    world.launch(attempt_id)
    world.ray.hang = world.ray.blind = False
    world.ray.jobs[f"{run}-a1"]["metadata"] = None
    world.wait(2)
    world.launch(attempt_id)
    assert world.attempt(run).external_ref == f"{run}-a1"
    with world.sessions() as session:
        tokens = session.scalars(select(Token).where(Token.run_id == run)).all()
        assert [token.revoked_at for token in tokens] == [None, None]


def test_an_executor_that_is_down_is_asked_again_after_a_while(world: World):
    world.ray.stop()
    run, attempt_id = admitted(world)
    world.launch(attempt_id)
    assert world.run(run).status == "launching"
    assert "Not submitted yet" in (world.run(run).reason or "")
    with world.sessions() as session:
        rung = session.scalars(select(OutboxMessage).order_by(OutboxMessage.id.desc())).first()
    assert rung is not None
    assert (rung.args, rung.not_before) == ([attempt_id], world.now + timedelta(seconds=1))
    world.ray.start()
    world.launch(attempt_id)
    assert world.ray.submissions == [], "before its time"
    world.wait(1)
    world.launch(attempt_id)
    assert world.ray.submissions == [f"{run}-a1"]


def test_a_refused_cluster_token_is_said_and_tried_again(world: World):
    world.ray.fails_with = (403, "Forbidden: Invalid authentication token")
    run, attempt_id = admitted(world)
    world.launch(attempt_id)
    assert "FORECURVE_RAY_TOKEN" in (world.run(run).reason or "")
    assert world.run(run).status == "launching"


def test_a_job_that_the_executor_refuses_fails_its_run_at_once(world: World):
    world.ray.fails_with = (400, "Traceback\nTypeError: entrypoint must be a string")
    run, attempt_id = admitted(world)
    world.launch(attempt_id)
    world.reconcile()
    assert world.run(run).status == "failed"
    assert "entrypoint must be a string" in (world.run(run).reason or "")


def test_a_run_that_was_told_to_stop_is_not_submitted(world: World):
    run, attempt_id = admitted(world)
    world.ask(run, "stop")
    world.launch(attempt_id)
    world.reconcile()
    assert world.ray.submissions == []
    assert world.run(run).status == "stopped"


def test_a_stop_during_the_submission_ends_the_job_afterwards(world: World):
    run, attempt_id = admitted(world)
    world.ray.before_answer = lambda _: world.ask(run, "stop")
    world.launch(attempt_id)
    assert ("worker.tasks.reconcile_run", [run]) in world.outbox()
    world.reconcile()
    world.reconcile()
    assert world.ray.stops == [f"{run}-a1"]
    assert world.run(run).status == "stopped"


def test_a_lease_that_was_taken_over_meanwhile_is_respected(world: World):
    """A worker stands still during its submission; another takes its lease. The first changes nothing."""
    run, attempt_id = admitted(world)

    def another_worker(_: str) -> None:
        world.ray.before_answer = None
        world.wait(61)
        world.launch(attempt_id)

    world.ray.before_answer = another_worker
    world.launch(attempt_id)
    assert world.ray.submissions == [f"{run}-a1"]
    attempt = world.attempt(run)
    assert (attempt.external_ref, attempt.submitted_at) == (f"{run}-a1", world.now)
    with world.sessions() as session:
        assert authenticate(session, secret_of(world, f"{run}-a1"), world.now).run_id == run


@pytest.mark.parametrize("minutes", [2, 20])
def test_a_submission_of_a_worker_that_stood_still_until_its_run_was_over_is_ended(world: World, minutes: int):
    run, attempt_id = admitted(world)
    submit = world.context.executor.submit

    def submit_late(job: JobSpec) -> Submitted:
        world.ask(run, "cancel")
        world.reconcile_for(60 * minutes, every_s=10)
        assert world.run(run).status == "stopped"
        return submit(job)

    world.context.executor.submit = submit_late  # type: ignore[method-assign]
    world.launch(attempt_id)
    world.reconcile(after_s=2)
    assert world.ray.stops == [f"{run}-a1"]
    assert world.statuses(run) == ["launching", "stopped"]


def test_why_a_run_was_not_submitted_is_no_longer_said_once_it_is(world: World):
    world.ray.stop()
    run, attempt_id = admitted(world)
    world.launch(attempt_id)
    world.ray.start()
    world.wait(1)
    world.launch(attempt_id)
    assert (world.run(run).status, world.run(run).reason) == ("launching", None)


def test_an_attempt_that_was_superseded_is_not_submitted(world: World):
    run, attempt_id = admitted(world)
    with world.sessions.begin() as session:
        from server.runs.models import Run

        session.get_one(Run, run).attempt = 2
    world.launch(attempt_id)
    assert world.ray.submissions == []


def test_tokens_are_kept_only_as_hashes(world: World):
    run, attempt_id = admitted(world)
    world.launch(attempt_id)
    with world.sessions() as session:
        with pytest.raises(Unauthenticated):
            authenticate(session, "fc_ingest_guess", world.now)
        token = session.scalars(select(Token).where(Token.run_id == run)).one()
    assert secret_of(world, f"{run}-a1") not in (token.hash, token.prefix, token.name)
