"""The reconciler's policy, situation by situation."""

from __future__ import annotations

import pytest

from server.runs.states import TERMINAL, Status
from tests.worker.situations import SETTINGS, a_run, ago, an_attempt, outcome_of, seen
from worker.case import WAIT
from worker.decide import REJECTED, retry_delay_s


def test_a_healthy_run_is_left_alone():
    assert outcome_of(a_run(), an_attempt(), seen("running")) == WAIT


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_what_is_over_stays_over(status):
    late = an_attempt(outcome="succeeded", ended_at=ago(1))
    assert outcome_of(a_run(status), late, seen("running")) == WAIT


@pytest.mark.parametrize(("desired", "said"), [("stop", "Stopped as asked"), ("cancel", "Cancelled")])
def test_a_queued_run_that_is_to_end_ends_at_once(desired, said):
    decision = outcome_of(a_run("queued", desired, attempt=0), None, None)
    assert decision.path == (Status.STOPPED,)
    assert decision.reason == f"{said} while it was queued"


def test_why_a_person_wanted_the_end_stands_wherever_a_run_ends():
    why = {"desired_reason": "now"}
    saved = an_attempt(outcome="stopped", outcome_reason="SIGTERM received", ended_at=ago(1))
    gone = an_attempt(40, ended_at=ago(40))
    unsubmitted = an_attempt(None, external_ref=None, submitted_at=None, lease_expires_at=ago(1))
    assert outcome_of(a_run("stopping", "cancel", **why), saved, seen("stopped")).reason == "Cancelled: now"
    assert outcome_of(a_run("stopping", "cancel"), saved, seen("stopped")).reason == "Cancelled"
    for desired, asked in (("stop", "Asked to stop: now"), ("cancel", "Asked to end at once: now")):  # not there yet
        assert outcome_of(a_run("running", desired, **why), an_attempt(), seen("running")).reason == asked
    ended = outcome_of(a_run("stopping", "cancel", **why), gone, seen("gone"))
    assert ended.reason == "Cancelled: now; the executor ended the job"
    advised = outcome_of(a_run("stopping", "cancel", desired_reason="Only +0.01 is left."), gone, seen("gone"))
    assert advised.reason == "Cancelled: Only +0.01 is left; the executor ended the job"
    queued = outcome_of(a_run("queued", "cancel", attempt=0, **why), None, None)
    assert queued.reason == "Cancelled while it was queued: now"
    early = outcome_of(a_run("launching", "stop", **why), unsubmitted, seen("gone"))
    assert early.reason == "Stopped as asked before it was submitted: now"


def test_a_queued_run_waits_for_admission():
    assert outcome_of(a_run("queued"), an_attempt(None), None) == WAIT


@pytest.mark.parametrize(("outcome", "status"), [("succeeded", Status.SUCCEEDED), ("failed", Status.FAILED)])
@pytest.mark.parametrize("look", ["failed", "succeeded", "stopped", "gone", "unreachable"])
def test_the_trainers_word_counts_more_than_the_executors(outcome, status, look):
    attempt = an_attempt(outcome=outcome, outcome_reason="as planned", ended_at=ago(1))
    decision = outcome_of(a_run(), attempt, seen(look, retryable=True))
    assert (decision.path, decision.reason) == ((status,), "as planned")


def test_a_trainer_that_has_reported_gets_a_grace_to_exit():
    assert outcome_of(a_run(), an_attempt(outcome="succeeded", ended_at=ago(29)), seen("running")) == WAIT


def test_a_job_that_outlives_its_outcome_is_ended_by_the_executor():
    decision = outcome_of(a_run(), an_attempt(outcome="succeeded", ended_at=ago(31)), seen("running"))
    assert decision.path == (Status.SUCCEEDED,)
    assert decision.force_stop


def test_a_trainer_that_lost_a_worker_gets_another_attempt_up_to_the_last():
    attempt = an_attempt(outcome="lost", outcome_reason="the learner died. Lost after step 7", ended_at=ago(1))
    decision = outcome_of(a_run(), attempt, seen("failed"))
    assert (decision.path, decision.excused) == ((Status.LOST, Status.QUEUED), False)
    assert decision.retry_in_s == retry_delay_s(1)
    last = outcome_of(a_run(attempt=3), attempt, seen("failed"))
    assert last.path == (Status.FAILED,)
    assert last.reason == "the learner died. Lost after step 7. Given up after 3 attempts."
    assert outcome_of(a_run("stopping", "stop"), attempt, seen("failed")).to is Status.STOPPED


def test_a_run_of_a_users_own_that_lost_a_worker_waits_for_its_next_attempt_as_long_as_it_may_be_silent():
    attempt = an_attempt(outcome="lost", outcome_reason="SIGTERM", ended_at=ago(1), external_ref=None)
    own = {"executor": "external"}
    assert outcome_of(a_run(**own), attempt, None).path == (Status.LOST,)
    assert outcome_of(a_run("queued", **own), attempt, None).path == (Status.RUNNING, Status.LOST)
    assert outcome_of(a_run("lost", **own), attempt, None) == WAIT
    assert outcome_of(a_run("lost", "stop", **own), attempt, None).to is Status.STOPPED
    assert outcome_of(a_run("running", "stop", **own), attempt, None).to is Status.STOPPED
    silent = an_attempt(15_001, outcome="lost", external_ref=None, submitted_at=None, created_at=ago(20_000))
    assert outcome_of(a_run("lost", **own), silent, None).to is Status.FAILED


def test_a_trainer_that_stopped_as_asked_is_stopped():
    attempt = an_attempt(outcome="stopped", ended_at=ago(1))
    decision = outcome_of(a_run("stopping", "stop"), attempt, seen("succeeded"))
    assert decision.path == (Status.STOPPED,)


def test_a_trainer_that_stopped_unasked_was_preempted_and_is_queued_again():
    attempt = an_attempt(outcome="stopped", outcome_reason="SIGTERM", ended_at=ago(1))
    decision = outcome_of(a_run(), attempt, seen("failed"))
    assert decision.path == (Status.PREEMPTED, Status.QUEUED)
    assert decision.retry_in_s == retry_delay_s(1)
    last = outcome_of(a_run(attempt=3), attempt, seen("failed"))
    assert (last.to, last.excused) == (Status.QUEUED, True), "it is no fault of the run's"
    at_our_end = outcome_of(
        a_run(), an_attempt(60, outcome="stopped", ended_at=ago(60)), seen("gone"), well_since=ago(20)
    )
    assert (at_our_end.path, at_our_end.retry_in_s) == (decision.path, 0), "a pause would give its place away"


def test_a_job_stopped_at_the_executor_by_somebody_is_not_started_again():
    attempt = an_attempt(outcome="stopped", ended_at=ago(1))
    assert outcome_of(a_run(), attempt, seen("stopped")).path == (Status.STOPPED,)
    assert outcome_of(a_run(), an_attempt(60, ended_at=ago(60)), seen("stopped")).path == (Status.STOPPED,)


def test_the_executors_word_must_stand_for_a_while():
    just_seen = an_attempt(30, ended_at=ago(2))
    assert outcome_of(a_run(), just_seen, seen("failed")) == WAIT
    first_sight = an_attempt(30, ended_at=None)
    assert outcome_of(a_run(), first_sight, seen("failed")) == WAIT


def test_a_heartbeat_after_the_executor_called_the_job_over_is_doubt_enough_to_wait():
    assert outcome_of(a_run(), an_attempt(1, ended_at=ago(120)), seen("gone")) == WAIT
    assert outcome_of(a_run(), an_attempt(1, ended_at=ago(120)), seen("failed", retryable=True)) == WAIT


def test_a_job_that_failed_by_itself_fails_the_run_with_its_last_words():
    attempt = an_attempt(10, ended_at=ago(10), log_tail="Traceback\nValueError: no such task")
    decision = outcome_of(a_run(), attempt, seen("failed", reason="exit code 1"))
    assert decision.path == (Status.FAILED,)
    assert decision.reason == "exit code 1. Last words: ValueError: no such task"


@pytest.mark.parametrize("look", [seen("gone"), seen("failed", retryable=True)])
def test_a_job_lost_by_the_cluster_is_queued_again(look):
    decision = outcome_of(a_run(), an_attempt(40, ended_at=ago(40)), look)
    assert decision.path == (Status.LOST, Status.QUEUED)


def test_the_last_attempt_fails_the_run():
    run, attempt = a_run(attempt=3), an_attempt(40, number=3, ended_at=ago(40))
    decision = outcome_of(run, attempt, seen("failed", retryable=True, reason="node died."))
    assert decision.path == (Status.FAILED,)
    assert decision.reason == "node died. Given up after 3 attempts."


def test_a_job_that_its_cluster_forgot_while_we_were_away_is_not_held_against_the_run():
    run, attempt = a_run(attempt=3), an_attempt(400, number=3, submitted_at=ago(500), ended_at=ago(40))
    decision = outcome_of(run, attempt, seen("gone"), well_since=ago(60))
    assert (decision.path, decision.excused, decision.retry_in_s) == ((Status.LOST, Status.QUEUED), True, 0)
    assert outcome_of(run, attempt, seen("gone"), well_since=ago(450)).to is Status.FAILED, "we were there"
    assert outcome_of(run, attempt, seen("failed", retryable=True), well_since=ago(60)).to is Status.FAILED


def test_excused_attempts_are_none_of_those_that_a_run_may_have():
    attempt = an_attempt(40, number=5, ended_at=ago(40))
    died = seen("failed", retryable=True, reason="node died")
    decision = outcome_of(a_run(attempt=5, excused_attempts=3), attempt, died)
    assert (decision.to, decision.excused, decision.retry_in_s) == (Status.QUEUED, False, retry_delay_s(2))
    given_up = outcome_of(a_run(attempt=5, excused_attempts=2), attempt, died)
    assert given_up.reason == "node died. Given up after 3 attempts."


@pytest.mark.parametrize("look", ["gone", "unreachable"])
def test_a_job_older_than_its_cluster_is_gone_without_further_ado(look):
    settings = SETTINGS.model_copy(update={"ray_since": ago(50)})
    before = an_attempt(60, number=3)
    decision = outcome_of(a_run(attempt=3), before, seen(look), settings=settings)
    assert (decision.path, decision.excused) == ((Status.LOST, Status.QUEUED), True)
    assert decision.reason == "Its job ended when the service was stopped."
    assert decision.retry_in_s == 0, "a pause would give its place to a run behind it"
    assert outcome_of(a_run("stopping", "stop"), before, seen(look), settings=settings).to is Status.STOPPED
    heard_since = an_attempt(10, ended_at=None)
    assert outcome_of(a_run(), heard_since, seen(look), settings=settings) == WAIT


def test_a_job_that_vanished_while_it_was_to_stop_is_stopped_and_not_queued_again():
    run = a_run("stopping", "stop")
    assert outcome_of(run, an_attempt(40, ended_at=ago(40)), seen("gone")).path == (Status.STOPPED,)


def test_success_without_the_trainers_report_is_success():
    assert outcome_of(a_run(), an_attempt(10, ended_at=ago(10)), seen("succeeded")).path == (Status.SUCCEEDED,)


def test_an_unsubmitted_attempt_whose_job_is_there_is_adopted():
    attempt = an_attempt(None, external_ref=None, submitted_at=None)
    assert outcome_of(a_run("launching"), attempt, seen("running")).adopt


def test_an_attempt_in_a_workers_hands_is_left_to_it():
    attempt = an_attempt(None, external_ref=None, submitted_at=None, lease="x", lease_expires_at=ago(-10))
    assert outcome_of(a_run("launching", "stop"), attempt, seen("gone")) == WAIT


def test_an_unsubmitted_attempt_that_is_to_end_is_stopped():
    attempt = an_attempt(None, external_ref=None, submitted_at=None, lease="x", lease_expires_at=ago(1))
    assert outcome_of(a_run("launching", "stop"), attempt, seen("gone")).path == (Status.STOPPED,)


@pytest.mark.parametrize(("age", "path"), [(299, ()), (301, (Status.LOST, Status.QUEUED))])
def test_submission_is_given_up_after_the_deadline(age, path):
    attempt = an_attempt(None, external_ref=None, submitted_at=None, created_at=ago(age))
    for state, excused in (("unreachable", True), ("gone", False)):
        decision = outcome_of(a_run("launching"), attempt, seen(state))
        assert (decision.path, decision.excused) == (path, excused and bool(path))


def test_a_job_that_the_executor_refused_fails_the_run():
    attempt = an_attempt(
        None, external_ref=None, submitted_at=None, observed=REJECTED, log_tail="entrypoint is missing"
    )
    decision = outcome_of(a_run("launching"), attempt, seen("gone"))
    assert (decision.path, decision.reason) == ((Status.FAILED,), "entrypoint is missing")


@pytest.mark.parametrize(("state", "age"), [("pending", 301), ("running", 301)])
def test_a_job_that_never_reports_is_ended_and_tried_again(state, age):
    attempt = an_attempt(None, submitted_at=ago(age), created_at=ago(age))
    decision = outcome_of(a_run("launching"), attempt, seen(state))
    assert decision.path == (Status.LOST, Status.QUEUED)
    assert decision.force_stop


def test_the_first_heartbeat_makes_it_run():
    assert outcome_of(a_run("launching"), an_attempt(1), seen("running")).path == (Status.RUNNING,)


def test_a_stop_is_cooperative_first():
    decision = outcome_of(a_run("running", "stop"), an_attempt(), seen("running"))
    assert (decision.path, decision.ask_stop, decision.force_stop) == ((Status.STOPPING,), True, False)


def test_a_cancel_does_not_wait():
    decision = outcome_of(a_run("running", "cancel"), an_attempt(), seen("running"))
    assert (decision.path, decision.force_stop) == ((Status.STOPPING,), True)


def test_what_never_reported_cannot_cooperate():
    decision = outcome_of(a_run("launching", "stop"), an_attempt(None), seen("pending"))
    assert (decision.path, decision.force_stop) == ((Status.STOPPING,), True)


@pytest.mark.parametrize(("asked", "forced"), [(29, False), (31, True)])
def test_the_executor_stops_what_does_not_cooperate_within_the_grace(asked, forced):
    attempt = an_attempt(stop_requested_at=ago(asked))
    assert outcome_of(a_run("stopping", "stop"), attempt, seen("running")).force_stop is forced


def test_a_cancel_cuts_a_stops_grace_short():
    attempt = an_attempt(stop_requested_at=ago(1))
    assert outcome_of(a_run("stopping", "cancel"), attempt, seen("running")).force_stop


@pytest.mark.parametrize(("forced", "again"), [(10, False), (16, True)])
def test_a_job_that_outlives_the_executors_stop_is_told_again(forced, again):
    attempt = an_attempt(stop_requested_at=ago(60), stop_forced_at=ago(forced))
    assert outcome_of(a_run("stopping", "stop"), attempt, seen("running")).force_stop is again


@pytest.mark.parametrize(
    ("status", "desired", "to"), [("stopping", "cancel", Status.STOPPED), ("pausing", "pause", Status.PAUSED)]
)
@pytest.mark.parametrize("look", ["pending", "running"])
def test_a_job_that_the_executor_calls_alive_for_ever_and_nobody_hears_of_is_let_go(status, desired, to, look):
    told = {"stop_requested_at": ago(640), "stop_forced_at": ago(10)}
    run = a_run(status, desired)
    assert outcome_of(run, an_attempt(620, **told), seen(look)) == WAIT
    decision = outcome_of(run, an_attempt(631, **told), seen(look))
    assert decision.path == (to,)
    assert f"still calls the job {look}" in (decision.reason or "")


def test_a_forced_stop_is_believed_at_once():
    attempt = an_attempt(1, stop_requested_at=ago(60), stop_forced_at=ago(2), ended_at=ago(0))
    assert outcome_of(a_run("stopping", "stop"), attempt, seen("stopped")).path == (Status.STOPPED,)


@pytest.mark.parametrize("status", ["running", "suspect"])
def test_a_pause_is_cooperative_first(status):
    decision = outcome_of(a_run(status, "pause"), an_attempt(), seen("running"))
    assert (decision.path, decision.ask_stop, decision.force_stop) == ((Status.PAUSING,), True, False)
    assert decision.reason == "Asked to pause"


@pytest.mark.parametrize(("asked", "forced"), [(29, False), (31, True)])
def test_the_executor_stops_what_does_not_pause_within_the_grace(asked, forced):
    attempt = an_attempt(stop_requested_at=ago(asked))
    decision = outcome_of(a_run("pausing", "pause"), attempt, seen("running"))
    assert (decision.path, decision.force_stop) == ((), forced)


@pytest.mark.parametrize("status", ["launching", "running", "suspect", "pausing"])
@pytest.mark.parametrize("look", ["succeeded", "stopped", "failed", "gone"])
def test_a_trainer_that_stopped_to_pause_is_paused_and_the_attempt_is_excused(status, look):
    attempt = an_attempt(outcome="stopped", outcome_reason="The run is to pause.", ended_at=ago(1))
    decision = outcome_of(a_run(status, "pause", attempt=3, desired_reason="lunch"), attempt, seen(look))
    assert (decision.path, decision.reason, decision.excused) == ((Status.PAUSED,), "Paused as asked: lunch.", True)


@pytest.mark.parametrize(("outcome", "status"), [("succeeded", Status.SUCCEEDED), ("failed", Status.FAILED)])
def test_a_trainer_that_ended_otherwise_while_it_was_to_pause_is_taken_at_its_word(outcome, status):
    attempt = an_attempt(outcome=outcome, ended_at=ago(1))
    assert outcome_of(a_run("pausing", "pause"), attempt, seen("succeeded")).path == (status,)


@pytest.mark.parametrize(
    "look",
    [seen("gone"), seen("failed"), seen("failed", retryable=True), seen("stopped"), seen("succeeded")],
)
def test_a_job_that_dies_while_it_pauses_ends_paused(look):
    decision = outcome_of(a_run("pausing", "pause", attempt=3), an_attempt(40, ended_at=ago(40)), look)
    assert (decision.path, decision.excused) == ((Status.PAUSED,), True)
    assert decision.reason == f"Paused as asked. The job is {look.state}."


def test_what_never_reported_is_paused_without_waiting_for_it():
    pending = outcome_of(a_run("launching", "pause"), an_attempt(None), seen("pending"))
    assert (pending.path, pending.force_stop) == ((Status.PAUSING,), True)
    unsubmitted = an_attempt(None, external_ref=None, submitted_at=None, lease="x", lease_expires_at=ago(1))
    assert outcome_of(a_run("launching", "pause"), unsubmitted, seen("gone")).path == (Status.PAUSED,)
    in_hands = an_attempt(None, external_ref=None, submitted_at=None, lease="x", lease_expires_at=ago(-10))
    assert outcome_of(a_run("launching", "pause"), in_hands, seen("gone")) == WAIT


def test_a_pause_that_nobody_answers_is_believed_after_long():
    values = {"stop_requested_at": ago(700), "stop_forced_at": ago(650), "unreachable_since": ago(700)}
    assert outcome_of(a_run("pausing", "pause"), an_attempt(590, **values), seen("unreachable")) == WAIT
    silent = an_attempt(610, **values)
    assert outcome_of(a_run("pausing", "pause"), silent, seen("unreachable")).path == (Status.PAUSED,)


@pytest.mark.parametrize("wanted", ["stop", "cancel"])
def test_a_stop_overtakes_a_pause(wanted):
    pausing = outcome_of(a_run("pausing", wanted), an_attempt(stop_requested_at=ago(5)), seen("running"))
    assert (pausing.path, pausing.force_stop) == ((Status.STOPPING,), wanted == "cancel")
    assert outcome_of(a_run("paused", wanted), an_attempt(5000), None).path == (Status.STOPPED,)


def test_who_reports_without_heartbeats_may_be_silent_for_longer():
    own = {"executor": "external"}
    told = {"external_ref": None, "submitted_at": None, "created_at": ago(2000), "patience_s": 600.0}
    quiet, silent = an_attempt(590, **told), an_attempt(610, **told)
    assert outcome_of(a_run(**own), quiet, None) == WAIT
    assert outcome_of(a_run("suspect", **own), quiet, None).path == (Status.RUNNING,)
    assert outcome_of(a_run(**own), silent, None).path == (Status.SUSPECT,)
    asked = an_attempt(590, stop_requested_at=ago(595), **told)
    assert outcome_of(a_run("stopping", "stop", **own), asked, None) == WAIT


def test_a_paused_run_is_left_alone_however_long_it_is_silent():
    assert outcome_of(a_run("paused", "pause"), an_attempt(1e6, ended_at=ago(1e6)), None) == WAIT


def test_silence_makes_a_run_suspect_and_a_heartbeat_clears_it():
    assert outcome_of(a_run(), an_attempt(21), seen("running")).path == (Status.SUSPECT,)
    assert outcome_of(a_run("suspect"), an_attempt(1), seen("running")).path == (Status.RUNNING,)


def test_a_heartbeat_that_never_came_counts_from_the_submission():
    run = a_run(started_at=ago(100))
    assert outcome_of(run, an_attempt(None, started_at=ago(30)), seen("running")).path == (Status.SUSPECT,)


def test_a_suspect_that_the_executor_shows_running_is_never_lost():
    attempt = an_attempt(10_000, submitted_at=ago(20_000), created_at=ago(20_000))
    assert outcome_of(a_run("suspect"), attempt, seen("running")) == WAIT


@pytest.mark.parametrize(("beat", "unreachable", "lost"), [(601, 601, True), (601, 599, False), (599, 601, False)])
def test_lost_needs_silence_and_an_unreachable_executor_for_long(beat, unreachable, lost):
    attempt = an_attempt(beat, unreachable_since=ago(unreachable), submitted_at=ago(5000), created_at=ago(5000))
    decision = outcome_of(a_run("suspect"), attempt, seen("unreachable"))
    assert (decision.to is Status.QUEUED) is lost


def test_our_own_downtime_counts_for_nobodys_silence():
    attempt = an_attempt(5000, unreachable_since=ago(5000), submitted_at=ago(9000), created_at=ago(9000))
    assert outcome_of(a_run("suspect"), attempt, seen("unreachable"), well_since=ago(30)) == WAIT
    assert outcome_of(a_run(), an_attempt(5000, submitted_at=ago(9000)), seen("running"), well_since=ago(10)) == WAIT
    late = an_attempt(None, submitted_at=ago(5000), created_at=ago(5000))
    assert outcome_of(a_run("launching"), late, seen("pending"), well_since=ago(10)) == WAIT
    asked = an_attempt(stop_requested_at=ago(5000))
    assert outcome_of(a_run("stopping", "stop"), asked, seen("running"), well_since=ago(10)) == WAIT


def test_an_external_run_ends_by_its_own_word_and_is_only_ever_suspect_otherwise():
    external = {"executor": "external"}
    done = an_attempt(1, outcome="succeeded", ended_at=ago(1), external_ref=None)
    assert outcome_of(a_run(**external), done, None).path == (Status.SUCCEEDED,)
    assert outcome_of(a_run("queued", **external), done, None).path == (Status.RUNNING, Status.SUCCEEDED)
    silent = an_attempt(10_000, external_ref=None, submitted_at=None, created_at=ago(20_000))
    assert outcome_of(a_run(**external), silent, None).path == (Status.SUSPECT,)
    assert outcome_of(a_run("suspect", **external), silent, None) == WAIT


def test_an_external_run_that_is_silent_for_very_long_is_failed_once_we_could_have_heard_it():
    run = a_run("suspect", executor="external")
    silent = an_attempt(15_001, external_ref=None, submitted_at=None, created_at=ago(20_000))
    decision = outcome_of(run, silent, None)
    assert decision.path == (Status.FAILED,)
    assert decision.reason is not None
    assert "0.2 days" in decision.reason
    assert outcome_of(run, silent, None, well_since=ago(601)).to is Status.FAILED
    assert outcome_of(run, silent, None, well_since=ago(599)) == WAIT


def test_an_external_run_that_never_began_to_report_does_not_wait_for_ever():
    queued, never = a_run("queued", executor="external"), an_attempt(None, external_ref=None, submitted_at=None)
    assert outcome_of(queued, never, None) == WAIT
    never.created_at = ago(15_001)
    assert outcome_of(queued, never, None).path == (Status.FAILED,)
    assert outcome_of(queued, never, None, well_since=ago(599)) == WAIT  # its report may have waited for us
    assert outcome_of(a_run("queued", "stop", executor="external"), never, None).path == (Status.STOPPED,)


def test_an_external_run_that_was_last_heard_of_before_a_clock_was_set_back_is_silent_since_then():
    run, silent = a_run("suspect", executor="external"), an_attempt(-90_000, submitted_at=None, created_at=ago(-90_100))
    assert outcome_of(run, silent, None, well_since=ago(15_001)).path == (Status.FAILED,)
    assert outcome_of(run, silent, None, well_since=ago(14_999)) == WAIT


def test_an_external_run_that_was_told_to_stop_and_fell_silent_is_stopped():
    run = a_run("stopping", "stop", executor="external")
    assert outcome_of(run, an_attempt(40, external_ref=None, stop_requested_at=ago(50)), None).to is Status.STOPPED
    assert outcome_of(run, an_attempt(4, external_ref=None, stop_requested_at=ago(50)), None) == WAIT


def test_retries_back_off():
    assert [retry_delay_s(number) for number in (1, 2, 3, 4, 20)] == [5, 10, 20, 40, 300]
