"""What is to become of a run, given what is wanted, what the trainer said and what the executor shows. Pure.

Each rule looks at one situation and answers with a Decision, or None when the situation is another; the first answer
holds, so the order of `RULES` is the policy:

    is it over? ─ is it waiting? ─ what did the trainer say? ─ is there a job that nobody recorded?
                ─ did its cluster end? ─ is the job over? ─ was it submitted at all? ─ is it to stop?
                ─ is it to pause? ─ is it on its way there? ─ is it late to start? ─ is it silent?

Three principles run through them. The trainer's own word counts more than the executor's. Silence counts only while
we could have heard (`healthy_since`), so that our outage never ends a healthy run; nor is an attempt held against its
run that ended with us, from which somebody took the machine, or for which no cluster answered. A heartbeat that came
after the executor called the job over is doubt enough to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from server.clocks import was_set_back
from server.runs.fencing import WAITING
from server.runs.models import Attempt, Run
from server.runs.states import HOLDS_PLACE, TERMINAL, TRANSITIONS, Status
from server.settings import Settings
from worker.case import WAIT, Case, Decision
from worker.clocks import lease_of
from worker.executors.base import ALIVE, OVER, Observation, State
from worker.reasons import asked, asking, default_reason, sentence, with_last_line

STOP_AGAIN_S = 15.0
"""A job that outlives the executor's stop by this much is told again."""

FIRST_RETRY_S, LONGEST_RETRY_S = 5.0, 300.0

REJECTED = "rejected"
"""`attempts.observed` of an attempt whose job the executor refused for good."""

_OUTCOMES = {
    "succeeded": Status.SUCCEEDED,
    "stopped": Status.STOPPED,
    "failed": Status.FAILED,
}
_BEGUN = frozenset({Status.LAUNCHING, Status.RUNNING, Status.SUSPECT, Status.PAUSING})


def decide(
    run: Run,
    attempt: Attempt | None,
    seen: Observation | None,
    now: datetime,
    settings: Settings,
    healthy_since: datetime,
) -> Decision:
    """The first rule's answer; WAIT when none has one. `attempt` is the run's current one."""
    case = Case(run, attempt, seen, now, settings, healthy_since)
    for rule in RULES:
        decision = rule(case)
        if decision is not None:
            return decision
    return WAIT


def settle_s(settings: Settings) -> float:
    """How long the executor's word that a job is over must stand without a heartbeat against it."""
    return 1.5 * settings.heartbeat_interval_s


def retry_delay_s(attempt: int) -> float:
    """Seconds from the end of attempt `attempt` to the next: 5, 10, 20, ... at most 300."""
    return float(min(FIRST_RETRY_S * 2.0 ** min(attempt - 1, 16), LONGEST_RETRY_S))


def lease_is_live(attempt: Attempt, now: datetime, settings: Settings) -> bool:
    """Whether a worker is submitting the attempt just now."""
    if attempt.lease is None or attempt.lease_expires_at is None:
        return False
    ends = attempt.lease_expires_at
    return now < ends and not was_set_back(ends - lease_of(settings), now)


def _over(case: Case) -> Decision | None:
    return WAIT if case.status in TERMINAL else None


def _waiting(case: Case) -> Decision | None:
    """Nothing runs for it: it can end at once, or is to be queued again."""
    if case.status not in WAITING or (case.is_external and not case.is_to_end):
        return None
    if case.is_to_end:
        return Decision((Status.STOPPED,), asked(case, f" while it was {case.status}"))
    if case.is_to_pause and case.status is not Status.PAUSED:
        return Decision((Status.PAUSED,), sentence(asked(case, f" while it was {case.status}")))
    if case.status in (Status.LOST, Status.PREEMPTED):
        return _again_or_give_up(case, case.run.reason or f"The run was {case.status}.")
    return WAIT


def _without_attempt(case: Case) -> Decision | None:
    return WAIT if case.attempt is None else None


def _rejected(case: Case) -> Decision | None:
    """The executor refused the job itself; asking again gets the same answer."""
    if case.current.observed != REJECTED or case.status is not Status.LAUNCHING:
        return None
    return Decision((Status.STOPPED if case.is_to_end else Status.FAILED,), case.current.log_tail)


def _trainer_said(case: Case) -> Decision | None:
    """The trainer reported how it ended. It gets a grace to exit, so that its place is free when the run is over."""
    attempt = case.current
    if attempt.outcome is None:
        return None
    still_there = case.state in ALIVE
    if still_there and case.elapsed(attempt.ended_at) < case.settings.stop_grace_s:
        return WAIT
    if attempt.outcome == "lost":
        why = attempt.outcome_reason or "A worker was lost."
        return _external_waits(case, why) if case.is_external else _again_or_give_up(case, why, force_stop=still_there)
    to = _OUTCOMES[attempt.outcome]
    if to is Status.STOPPED and case.is_to_pause:
        return _paused(case, force_stop=still_there)
    if to is Status.STOPPED and not case.is_to_end and not case.is_external and case.state is not State.STOPPED:
        # Nobody asked: the node was taken away and the trainer saved itself. On the executor's own stop somebody asked.
        came = Status.LOST if case.status in (Status.LAUNCHING, Status.STOPPING, Status.PAUSING) else Status.PREEMPTED
        why = attempt.outcome_reason or "The trainer was made to stop, by none of us."
        with_us = attempt.ended_at is not None and case.is_of_before(attempt.ended_at)
        return _again_or_give_up(case, why, by=came, force_stop=still_there, excused=True, at_once=with_us)
    ours = asked(case) if to is Status.STOPPED and case.is_to_end else None
    reason = ours or attempt.outcome_reason or default_reason(to)
    return Decision(_way(case.status, to), reason, force_stop=still_there)


def _external_waits(case: Case, why: str) -> Decision:
    """Its user is to begin the next attempt, and has as long for it as a run may be silent."""
    if case.is_to_end:
        return Decision(_way(case.status, Status.STOPPED), f"{sentence(asked(case))} {sentence(why)}")
    if case.status is Status.LOST:
        return _external_is_lost(case) or WAIT
    return Decision(_way(case.status, Status.LOST), why)


def _way(status: Status, to: Status) -> tuple[Status, ...]:
    """The statuses up to `to`: a run of a client's own may end where it was thought to wait."""
    if to in TRANSITIONS[status]:
        return (to,)
    if status is Status.QUEUED:
        return (Status.RUNNING, to)
    return (Status.QUEUED, *_way(Status.QUEUED, to))


def _unrecorded(case: Case) -> Decision | None:
    """The job is there, or its trainer was heard, and whoever submitted it never came to write that down."""
    attempt = case.current
    if attempt.external_ref is not None or case.status not in HOLDS_PLACE or case.is_external:
        return None
    is_there = case.state is not None and case.state not in (State.GONE, State.UNREACHABLE)
    return Decision(adopt=True) if is_there or attempt.last_heartbeat_at is not None else None


def _ended_with_its_cluster(case: Case) -> Decision | None:
    """The Ray head was started after the job was submitted: it is gone, and nobody need wait for the head to say so."""
    attempt, since = case.current, case.settings.ray_since
    if since is None or attempt.submitted_at is None or case.state in ALIVE or case.is_external:
        return None
    if max(attempt.submitted_at, attempt.last_heartbeat_at or attempt.submitted_at) >= since:
        return None
    return _again_or_give_up(case, "Its job ended when the service was stopped.", excused=True, at_once=True)


def _job_is_over(case: Case) -> Decision | None:
    """The executor says that the job is over, and the trainer has not said how."""
    attempt, seen = case.current, case.seen
    if seen is None or seen.state not in OVER or attempt.external_ref is None:
        return None
    if attempt.stop_forced_at is None and not _is_believed(case, seen.state):
        return WAIT
    reason = with_last_line(seen.reason or f"The job is {seen.state}.", attempt.log_tail)
    if case.is_to_end:
        return Decision((Status.STOPPED,), f"{asked(case)}; the executor ended the job")
    if case.is_to_pause:  # it goes on from its newest checkpoint, however the job ended
        return _paused(case, reason)
    if seen.state is State.SUCCEEDED:
        return Decision((Status.SUCCEEDED,), "The job exited with 0; the trainer's own report did not arrive.")
    if seen.state is State.STOPPED:
        return Decision((Status.STOPPED,), "The job was stopped at the executor, not from here.")
    if seen.state is State.FAILED and not seen.retryable:
        return Decision((Status.FAILED,), reason)
    with_us = _ended_with_us(case)
    return _again_or_give_up(case, reason, excused=with_us, at_once=with_us)


def _unsubmitted(case: Case) -> Decision | None:
    """Launching, and no submission recorded: it may be under way, lost with its worker, or refused so far."""
    attempt = case.current
    if case.status is not Status.LAUNCHING or attempt.external_ref is not None or case.is_external:
        return None
    if lease_is_live(attempt, case.now, case.settings):
        return WAIT
    if case.is_to_end:
        return Decision((Status.STOPPED,), asked(case, " before it was submitted"))
    if case.is_to_pause:
        return _paused(case, "It was not submitted yet.")
    if case.elapsed(attempt.created_at) > case.settings.launch_deadline_s:
        why = f" {case.run.reason}" if case.run.reason else ""
        reason = f"It could not be submitted for {case.settings.launch_deadline_s:g} s.{why}"
        return _again_or_give_up(case, reason, excused=case.state is State.UNREACHABLE)
    return WAIT


def _to_end(case: Case) -> Decision | None:
    """It was just told to stop. What never reported cannot be reached by the heartbeat's answer."""
    if not case.is_to_end or case.status not in _BEGUN:
        return None
    if case.is_external and case.is_cancelled:
        return Decision((Status.STOPPED,), asked(case), ask_stop=True)
    at_once = case.is_cancelled or case.current.last_heartbeat_at is None
    return Decision((Status.STOPPING,), asking(case), ask_stop=True, force_stop=at_once and not case.is_external)


def _to_pause(case: Case) -> Decision | None:
    """It was just told to pause, which is a stop of the job but not of the run."""
    if not case.is_to_pause or case.status not in _BEGUN - {Status.PAUSING}:
        return None
    at_once = case.current.last_heartbeat_at is None
    return Decision((Status.PAUSING,), asking(case), ask_stop=True, force_stop=at_once)


def _ending(case: Case) -> Decision | None:
    """Stopping or pausing. Cooperation first, then the executor's stop, then patience."""
    if case.status not in (Status.STOPPING, Status.PAUSING):
        return None
    attempt, settings = case.current, case.settings
    if attempt.stop_requested_at is None:
        return Decision(ask_stop=True)
    if case.is_external:
        patience_s = max(settings.stop_grace_s, case.patience_s)
        silent = case.elapsed(attempt.stop_requested_at, attempt.last_heartbeat_at) > patience_s
        gone = case.is_cancelled or silent
        return Decision((Status.STOPPED,), f"{asked(case)}; it has not reported since") if gone else WAIT
    if attempt.stop_forced_at is None:
        due = case.is_cancelled or case.elapsed(attempt.stop_requested_at) > settings.stop_grace_s
        return Decision(force_stop=True) if due else WAIT
    if case.state in ALIVE:
        return _outlives_its_stop(case)
    unheard = case.elapsed(attempt.stop_forced_at, attempt.last_heartbeat_at) > settings.lost_after_s
    return _let_go(case, "has not answered since") if case.state is State.UNREACHABLE and unheard else WAIT


def _outlives_its_stop(case: Case) -> Decision:
    """Told again and again; but an executor may call a job pending or running for ever that nobody else hears of."""
    attempt, settings = case.current, case.settings
    unheard_s = case.elapsed(attempt.stop_requested_at, attempt.last_heartbeat_at)
    if unheard_s > settings.stop_grace_s + settings.lost_after_s:
        return _let_go(case, f"still calls the job {case.state}, and nothing was heard of it since")
    return Decision(force_stop=True) if case.elapsed(attempt.stop_forced_at) > STOP_AGAIN_S else WAIT


def _let_go(case: Case, how: str) -> Decision:
    """Its place is given away without the executor's word that the job is over."""
    if case.is_to_pause:
        return _paused(case, f"The executor {how}.")
    return Decision((Status.STOPPED,), f"{asked(case)}; the executor {how}")


def _launching(case: Case) -> Decision | None:
    """Submitted, and waiting for the first heartbeat."""
    if case.status is not Status.LAUNCHING:
        return None
    attempt = case.current
    if attempt.last_heartbeat_at is not None:
        return Decision((Status.RUNNING,))
    deadline = case.settings.launch_deadline_s
    if case.elapsed(attempt.submitted_at, attempt.created_at) <= deadline:
        return WAIT
    reason = f"No heartbeat within {deadline:g} s of its submission; the executor says {case.state or 'nothing'}."
    return _again_or_give_up(case, with_last_line(reason, attempt.log_tail), force_stop=True)


def _silent(case: Case) -> Decision | None:
    """Silence makes a run suspect. It is lost only when the executor, too, has said nothing for long."""
    attempt, settings = case.current, case.settings
    if case.is_external and case.status is Status.QUEUED:
        return _external_is_lost(case)  # created, or resumed, and never begun
    if case.status is Status.RUNNING and case.silence_s > case.patience_s:
        return Decision((Status.SUSPECT,), f"No heartbeat for {case.silence_s:.0f} s.")
    if case.status is not Status.SUSPECT:
        return None
    heard = attempt.last_heartbeat_at
    if heard is not None and (case.now - case.dated(heard)).total_seconds() <= case.patience_s:
        return Decision((Status.RUNNING,), "It reports again.")
    if case.is_external:
        return _external_is_lost(case)
    if case.state is not State.UNREACHABLE or attempt.unreachable_since is None:
        return None
    if min(case.silence_s, case.elapsed(attempt.unreachable_since)) <= settings.lost_after_s:
        return None
    reason = f"No heartbeat for {case.silence_s:.0f} s, and the executor does not answer."
    return _again_or_give_up(case, reason, force_stop=True)


def _external_is_lost(case: Case) -> Decision | None:
    """Nobody can be asked after a run that its user launched: only long silence tells, by the calendar.

    The service must have been well for a while as well, so that a trainer which waited for it is heard first.
    """
    attempt, settings = case.current, case.settings
    signs = (attempt.last_heartbeat_at, attempt.created_at)
    heard = max(case.dated(moment) for moment in signs if moment is not None)
    silent_s = (case.now - heard).total_seconds()
    if silent_s <= settings.external_lost_after_s or case.silence_s <= settings.lost_after_s:
        return None
    reason = (
        f"Nothing was heard of it for {silent_s / 86_400:.1f} days, and the service did not launch it: taken for dead."
    )
    return Decision((Status.FAILED,), reason)


RULES: tuple[Callable[[Case], Decision | None], ...] = (
    _over,
    _waiting,
    _without_attempt,
    _rejected,
    _trainer_said,
    _unrecorded,
    _ended_with_its_cluster,
    _job_is_over,
    _unsubmitted,
    _to_end,
    _to_pause,
    _ending,
    _launching,
    _silent,
)
"""In the order in which they are asked."""


def _again_or_give_up(
    case: Case,
    reason: str,
    *,
    by: Status = Status.LOST,
    force_stop: bool = False,
    excused: bool = False,
    at_once: bool = False,
) -> Decision:
    """Queue the next attempt, or fail the run when it has had all its attempts; an excused one is not its last. What
    ended with the service waits for nothing to get better: a pause would only give its place to a run behind it."""
    number, reason = case.run.attempt - case.run.excused_attempts, sentence(reason)
    if case.is_to_end:
        return Decision((Status.STOPPED,), f"{sentence(asked(case))} {reason}", force_stop=force_stop)
    if case.is_to_pause:
        return _paused(case, reason, force_stop=force_stop)
    if number >= case.settings.max_attempts and not excused:
        times = "its only attempt" if number == 1 else f"{number} attempts"
        return Decision((Status.FAILED,), f"{reason} Given up after {times}.", force_stop=force_stop)
    through = () if case.status in (Status.LOST, Status.PREEMPTED) else (by,)
    path, pause_s = (*through, Status.QUEUED), 0.0 if at_once else retry_delay_s(number)
    return Decision(path, reason, force_stop=force_stop, retry_in_s=pause_s, excused=excused)


def _ended_with_us(case: Case) -> bool:
    """Whether the executor forgot the job, and the job was last heard of before the service itself was away."""
    attempt = case.current
    signs = (attempt.last_heartbeat_at, attempt.started_at, attempt.submitted_at, attempt.created_at)
    heard = max((moment for moment in signs if moment is not None), default=case.healthy_since)
    return case.state is State.GONE and case.is_of_before(heard)


def _paused(case: Case, how: str = "", *, force_stop: bool = False) -> Decision:
    """Off the cluster until it is resumed. Nobody holds the attempt that ended so against the run."""
    reason = " ".join(sentence(part) for part in (asked(case), how) if part)
    path = (Status.PAUSED,) if Status.PAUSED in TRANSITIONS[case.status] else (Status.LOST, Status.PAUSED)
    return Decision(path, reason, force_stop=force_stop, excused=True)


def _is_believed(case: Case, state: State) -> bool:
    """Whether nothing has been heard of the job for long enough since the executor called it over.

    "No such job" needs longer: an executor that was restarted or mistaken for another knows nobody.
    """
    attempt = case.current
    if attempt.ended_at is None:
        return False
    needed = case.settings.suspect_after_s if state is State.GONE else settle_s(case.settings)
    return case.elapsed(attempt.ended_at, attempt.last_heartbeat_at) >= needed
