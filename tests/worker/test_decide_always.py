"""What the reconciler's policy promises in every situation, also in those that should never come about."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from server.runs.states import HOLDS_PLACE, TRANSITIONS, DesiredState, Status
from tests.worker.situations import NOW, SETTINGS, a_run, ago, an_attempt, outcome_of
from worker.decide import REJECTED
from worker.executors.base import Observation, State

moments = st.none() | st.floats(-60, 20_000).map(ago)
runs = st.builds(
    a_run,
    status=st.sampled_from([str(status) for status in Status]),
    desired=st.sampled_from([str(desired) for desired in DesiredState]),
    executor=st.sampled_from(["ray", "external"]),
    attempt=st.integers(1, 6),
    excused_attempts=st.integers(0, 2),
    reason=st.none() | st.just("so"),
)
attempts = st.none() | st.builds(
    an_attempt,
    beat=st.none() | st.floats(0, 20_000),
    external_ref=st.none() | st.just("run_1-a1"),
    outcome=st.sampled_from([None, None, None, "succeeded", "stopped", "failed", "lost"]),
    observed=st.sampled_from([None, "pending", "running", "gone", REJECTED]),
    log_tail=st.none() | st.just("oh no"),
    lease=st.none() | st.just("x"),
    lease_expires_at=moments,
    stop_requested_at=moments,
    stop_forced_at=moments,
    unreachable_since=moments,
    submitted_at=moments,
    started_at=moments,
    ended_at=moments,
)
looks = st.none() | st.builds(Observation, state=st.sampled_from(State), retryable=st.booleans())
well = st.floats(0, 20_000).map(ago)


@given(runs, attempts, looks, well)
def test_every_decision_is_a_way_that_the_states_allow(run, attempt, look, well_since):
    decision = outcome_of(run, attempt, look, well_since)
    status = Status(run.status)
    for following in decision.path:
        assert following in TRANSITIONS[status]
        status = following
    assert (decision.retry_in_s is not None) == (decision.to is Status.QUEUED)


@given(runs, attempts, looks, well)
def test_no_run_has_more_attempts_than_it_may(run, attempt, look, well_since):
    decision = outcome_of(run, attempt, look, well_since)
    if run.attempt - run.excused_attempts >= SETTINGS.max_attempts and not decision.excused:
        assert decision.to is not Status.QUEUED


@given(runs, attempts, looks, well)
def test_a_run_whose_trainer_is_heard_and_has_not_ended_is_never_given_up(run, attempt, look, well_since):
    heard = attempt is not None and attempt.outcome is None and attempt.stop_forced_at is None
    if heard and run.desired_state == "run" and run.status in ("running", "suspect"):
        attempt.last_heartbeat_at = ago(1)
        decision = outcome_of(run, attempt, look, well_since)
        assert decision.to in (None, Status.RUNNING)
        assert not decision.force_stop


@given(runs, attempts, looks)
def test_right_after_our_own_outage_nobody_is_judged_by_silence(run, attempt, look):
    quiet = attempt is not None and attempt.outcome is None and attempt.observed != REJECTED
    unforced = quiet and attempt.stop_forced_at is None
    if unforced and run.desired_state == "run" and Status(run.status) in HOLDS_PLACE:
        assert outcome_of(run, attempt, look, well_since=NOW).to in (None, Status.RUNNING)


@given(runs, attempts, looks, well)
def test_nothing_is_forced_on_a_run_that_is_only_tracked(run, attempt, look, well_since):
    run.executor = "external"
    decision = outcome_of(run, attempt, None, well_since)
    assert not decision.force_stop
    assert decision.to is not Status.QUEUED


@given(runs, attempts, looks, well)
def test_what_is_wanted_to_end_is_never_started_again(run, attempt, look, well_since):
    if run.desired_state in ("stop", "cancel"):
        assert outcome_of(run, attempt, look, well_since).to not in (Status.QUEUED, Status.LAUNCHING)


@given(runs, attempts, looks, well)
def test_what_is_to_pause_is_neither_started_again_nor_stopped(run, attempt, look, well_since):
    if run.desired_state == "pause" and run.executor == "ray":
        rejected = attempt is not None and attempt.observed == REJECTED
        said = attempt.outcome if attempt is not None else None
        to = outcome_of(run, attempt, look, well_since).to
        assert (
            to in (None, Status.RUNNING, Status.PAUSING, Status.PAUSED) or said in ("succeeded", "failed") or rejected
        )
        assert to not in (Status.QUEUED, Status.STOPPED)
