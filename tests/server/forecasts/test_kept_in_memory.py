"""What is kept in memory of past runs: read once, never stale, and no more of it than was allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session, sessionmaker

from forecurve.science import Past
from server.forecasts import past_runs as runs_kept
from server.forecasts import past_said, track_record
from server.forecasts.models import Forecast
from server.forecasts.past_runs import PastRun, past_runs
from server.forecasts.remembered import Remembered
from server.runs.models import Run
from tests.server.forecasts.seeds import START, add_evaluations, learned, make_forecast, make_run, make_sweep, sigmoid

Sessions = sessionmaker[Session]

COMPUTE = np.linspace(0.0, 100.0, 21)


@dataclass(frozen=True)
class Store:
    """A live run and the three that are over, each with a forecast at 40 % of its budget."""

    sessions: Sessions
    live: str
    over: list[str]

    def looked(self) -> tuple[list[PastRun], list[tuple[Any, ...]]]:
        """What a refit of the live run would read of them."""
        with self.sessions() as session:
            live = session.get_one(Run, self.live)
            return past_runs(session, live), [_values(one) for one in learned(session, live)]

    def looked_anew(self) -> tuple[list[PastRun], list[tuple[Any, ...]]]:
        """The same by a process that remembers nothing."""
        forget()
        return self.looked()


def _values(one: Past) -> tuple[Any, ...]:
    assert one.course is not None
    return one.run, one.fraction, one.estimate, one.actual, one.course.reward.tolist()


def forget() -> None:
    runs_kept.KEPT.clear()
    past_said.KEPT.clear()
    track_record.ESTIMATES.clear()
    track_record._ended.cache_clear()


@pytest.fixture
def store(sessions: Sessions) -> Iterator[Store]:
    forget()
    with sessions.begin() as session:
        sweep_id = make_sweep(session).id
        over = []
        for ceiling in (0.74, 0.77, 0.80):
            run = make_run(session, sweep_id=sweep_id, status="succeeded")
            add_evaluations(session, run, COMPUTE, sigmoid(COMPUTE, A=ceiling))
            make_forecast(session, run)
            over.append(run.id)
        live = make_run(session, sweep_id=sweep_id)
        add_evaluations(session, live, COMPUTE[:9], sigmoid(COMPUTE[:9]) + 0.01)
    yield Store(sessions, live.id, over)
    forget()


def late_evaluation(session: Session, run: Run) -> None:
    add_evaluations(session, run, [101.0], [0.9], first_step=1000)


def resumed_attempt(session: Session, run: Run) -> None:
    run.attempt = 2
    add_evaluations(session, run, COMPUTE[18:], sigmoid(COMPUTE[18:]) - 0.05, attempt=2, first_step=180)


def archived(_: Session, run: Run) -> None:
    run.archived_at = START


def failed_after_all(_: Session, run: Run) -> None:
    run.status = "failed"


def larger_budget(_: Session, run: Run) -> None:
    run.budget_compute = 108.0


def another_seed(_: Session, run: Run) -> None:
    run.seed = 7


def one_more_forecast(session: Session, run: Run) -> None:
    said = session.get_one(Forecast, run.forecast_id).band
    make_forecast(session, run, band=said | {"median": [value + 0.01 for value in said["median"]]})


Change = Callable[[Session, Run], None]
CHANGES: Sequence[Change] = (
    late_evaluation,
    resumed_attempt,
    archived,
    failed_after_all,
    larger_budget,
    another_seed,
    one_more_forecast,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_changes_a_past_run_is_seen_at_once(store: Store, change: Change) -> None:
    before = store.looked()
    assert len(before[0]) == len(before[1]) == 3
    with store.sessions.begin() as session:
        change(session, session.get_one(Run, store.over[1]))
    after = store.looked()
    assert after != before
    assert after == store.looked_anew()


def test_what_changes_twice_in_one_transaction_is_seen_twice(store: Store) -> None:
    with store.sessions.begin() as session:
        run, live = session.get_one(Run, store.over[1]), session.get_one(Run, store.live)
        rewards = []
        for step in (1000, 1010):
            add_evaluations(session, run, [100.0 + step / 1000], [0.9], first_step=step)
            rewards.append([one.points[-1].compute for one in past_runs(session, live) if one.id == run.id])
    assert rewards == [[101.0], [101.01]]


def test_what_was_rolled_back_is_not_kept(store: Store) -> None:
    before = store.looked()
    with store.sessions() as session:
        late_evaluation(session, session.get_one(Run, store.over[1]))
        assert past_runs(session, session.get_one(Run, store.live)) != before[0]
        session.rollback()
    assert store.looked() == before


def test_restored_unchanged_it_is_the_same_past_run(store: Store) -> None:
    """So that its fit is not made anew."""
    before = store.looked()
    for moment in (START, None):
        with store.sessions.begin() as session:
            session.get_one(Run, store.over[1]).archived_at = moment
        store.looked()
    assert store.looked() == before
    assert len({*before[0], *store.looked()[0]}) == 3


def test_a_second_look_reads_neither_curves_nor_forecasts_of_past_runs(store: Store) -> None:
    with reads(store.sessions) as first:
        store.looked()
    with reads(store.sessions) as second:
        store.looked()
    assert sum("forecasts" in statement for statement in first) == 2  # which there are, and what the nearest said
    assert not any("forecasts" in statement for statement in second)
    with store.sessions() as session, reads(store.sessions) as with_ours:
        live = session.get_one(Run, store.live)
        past_runs(session, live, past_runs(session, live)[0].points)
    assert sum("evaluations" in statement for statement in with_ours) == 1  # the live run's, where nobody read it


def test_a_new_past_run_is_read_by_itself(store: Store) -> None:
    store.looked()
    with store.sessions.begin() as session:
        session.get_one(Run, store.live).status = "succeeded"
        add_evaluations(session, session.get_one(Run, store.live), COMPUTE[9:], sigmoid(COMPUTE[9:]), first_step=90)
        other = make_run(session, sweep_id=session.get_one(Run, store.live).sweep_id, last_compute=40.0)
    asked: list[Sequence[Any]] = []
    real = runs_kept._read
    with pytest.MonkeyPatch.context() as patch, store.sessions() as session:
        patch.setattr(runs_kept, "_read", lambda made, missing: asked.append(missing) or real(made, missing))
        assert len(past_runs(session, session.get_one(Run, other.id))) == 4
    assert [[version.run_id for version in missing] for missing in asked] == [[store.live]]


def test_forecasts_are_asked_by_what_was_their_prior(store: Store) -> None:
    with store.sessions.begin() as session:
        run = session.get_one(Run, store.over[0])
        told = {"name": "2 siblings", "seeds": 1}
        forecast = make_forecast(session, run, at_compute=35.0)
        forecast.summary = forecast.summary | {"prior": told, "at_budget": None}
    with store.sessions() as session:
        live = session.get_one(Run, store.live)
        asked = [
            [one.fraction for one in learned(session, live, informed=informed, known=known)]
            for informed, known in ((True, True), (True, False), (False, False))
        ]
    assert asked == [[0.35], [], [0.4, 0.4, 0.4]]


def test_of_two_forecasts_as_near_the_newer_is_asked(store: Store) -> None:
    with store.sessions.begin() as session:
        run = session.get_one(Run, store.over[0])
        newer = make_forecast(session, run, sentence="newer")
        made = past_said.forecasts_made(session, past_runs(session, session.get_one(Run, store.live)))
        one = next(each for each in past_runs(session, session.get_one(Run, store.live)) if each.id == run.id)
        assert past_said.nearest(made[run.id], one, 0.5, informed=False, with_seeds=False) == past_said.Made(
            newer.id, newer.at_compute, last=None, informed=False, seeds=0
        )
        assert len(made[run.id]) == 2


def test_no_more_is_kept_than_was_allowed_and_what_was_asked_last_stays() -> None:
    kept: Remembered[int, str] = Remembered(3)
    read: list[Sequence[int]] = []

    def fetch(missing: Sequence[int]) -> dict[int, str]:
        read.append(missing)
        return {key: str(key) for key in missing if key >= 0}

    assert kept.of([1, 2, 3], fetch) == {1: "1", 2: "2", 3: "3"}
    assert list(kept.of([3, 1, 1], fetch)) == [3, 1]
    assert kept.of([4], fetch) == {4: "4"}
    assert len(kept) == 3
    assert kept.of([1, 2, 3, 4, 5], fetch) == {key: str(key) for key in range(1, 6)}  # more than it may keep
    assert len(kept) == 3
    assert kept.of([-1], fetch) == {}
    kept.of([-1], fetch)
    assert read == [[1, 2, 3], [4], [2, 5], [-1], [-1]]


@contextmanager
def reads(sessions: Sessions) -> Iterator[list[str]]:
    """The statements sent meanwhile."""
    sent: list[str] = []

    def keep(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        sent.append(statement)

    engine = sessions.kw["bind"]
    event.listen(engine, "before_cursor_execute", keep)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", keep)
