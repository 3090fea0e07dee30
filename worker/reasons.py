"""Why a run is where it is, in a sentence: for its row and its history. Pure."""

from __future__ import annotations

from server.runs.states import Status
from worker.case import Case


def asked(case: Case, when: str = "") -> str:
    """Who wanted it to end counts more than what the trainer saw of it: mostly a signal."""
    ended = "Paused as asked" if case.is_to_pause else "Stopped as asked"
    return _with_why(case, f"{'Cancelled' if case.is_cancelled else ended}{when}")


def asking(case: Case) -> str:
    """The same of a run that is on its way there."""
    going = "Asked to pause" if case.is_to_pause else "Asked to stop"
    return _with_why(case, "Asked to end at once" if case.is_cancelled else going)


def _with_why(case: Case, said: str) -> str:
    why = case.run.desired_reason
    return f"{said}: {why.removesuffix('.')}" if why else said  # advice is a sentence; more may follow


def default_reason(to: Status) -> str | None:
    """For a trainer that said how it ended, and not why."""
    if to is Status.STOPPED:
        return "The trainer stopped."
    return None if to is Status.SUCCEEDED else "The trainer reported a failure without a reason."


def with_last_line(reason: str, log: str | None) -> str:
    """The reason and, where there is a log, its last line: mostly the error itself."""
    last = (log or "").strip().rpartition("\n")[2].strip()[:300]
    return f"{sentence(reason)} Last words: {last}" if last else reason


def sentence(text: str) -> str:
    """With a full stop, so that more may follow."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
