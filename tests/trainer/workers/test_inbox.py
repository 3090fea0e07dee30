"""What a generator takes: what was broadcast, what it pulls from the store, and the newest of both."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from trainer.errors import WorkerLost
from trainer.workers.inbox import Inbox


def nothing_is_pulled(reference):
    raise AssertionError(f"pulled {reference}")


def pulled(reference):
    return {"pulled": reference}


def test_what_has_arrived_is_taken_without_a_look_into_the_store():
    inbox = Inbox(nothing_is_pulled)
    inbox.offer(3, "three", epoch=1)
    assert inbox.newest(2, at_least=2) is None  # on its way, and what is held will do
    inbox.arrive(3, {"w": 3})
    inbox.wait_for(3)
    assert inbox.newest(2, at_least=3) == (3, {"w": 3})
    assert inbox.newest(3, at_least=3) is None


def test_a_broadcast_that_comes_before_its_offer_waits_for_it():
    inbox = Inbox(nothing_is_pulled)
    inbox.offer(0, "zero")
    inbox.arrive(1, {"w": 1})
    assert inbox.newest(0) is None
    inbox.offer(1, "one", epoch=1)
    assert inbox.newest(0) == (1, {"w": 1})


def test_a_version_of_a_failed_broadcast_is_pulled_and_so_is_one_without():
    inbox = Inbox(pulled)
    inbox.offer(3, "three", epoch=1)
    inbox.fail(1)
    inbox.wait_for(3)
    assert inbox.newest(2, at_least=3) == (3, {"pulled": "three"})
    inbox.offer(4, "four")
    assert inbox.newest(3) == (4, {"pulled": "four"})
    inbox.offer(5, "five", epoch=2)
    assert inbox.newest(4, at_least=4) is None


def test_an_arrived_version_older_than_an_offer_by_store_is_passed_over():
    inbox = Inbox(pulled)
    inbox.offer(3, "three", epoch=1)
    inbox.arrive(3, {"w": 3})
    inbox.offer(4, "four")
    assert inbox.newest(2, at_least=3) == (4, {"pulled": "four"})


def test_an_arrived_version_serves_while_the_next_is_on_its_way():
    inbox = Inbox(nothing_is_pulled)
    inbox.offer(3, "three", epoch=1)
    inbox.arrive(3, {"w": 3})
    inbox.offer(4, "four", epoch=1)
    assert inbox.newest(2, at_least=3) == (3, {"w": 3})


def test_weights_that_were_taken_are_pulled_when_an_evaluation_has_put_older_ones_in():
    inbox = Inbox(pulled)
    inbox.offer(3, "three", epoch=1)
    inbox.arrive(3, {"w": 3})
    assert inbox.newest(2) == (3, {"w": 3})
    inbox.offer(4, "four", epoch=1)
    assert inbox.newest(3) is None  # held now: our copy is let go
    inbox.fail(1)
    assert inbox.newest(1) == (4, {"pulled": "four"})


def test_a_broadcast_that_never_ends_is_given_up_and_the_version_pulled():
    inbox = Inbox(pulled, timeout_s=0.05)
    inbox.offer(3, "three", epoch=1)
    inbox.wait_for(3)
    assert inbox.newest(2, at_least=3) == (3, {"pulled": "three"})


class Later:
    """Another thread, whose work is done when the test says so."""

    def __init__(self):
        self.work = []

    def __call__(self, work):
        self.work.append(work)

    def run(self):
        self.work.pop(0)()


def test_an_offer_is_pulled_ahead_and_generation_goes_on_meanwhile():
    later, pulls = Later(), []
    inbox = Inbox(lambda reference: pulls.append(reference) or {"pulled": reference}, ahead=later)
    inbox.offer(3, "three")
    assert (inbox.newest(2, at_least=2), pulls) == (None, [])
    later.run()
    assert inbox.newest(2) == (3, {"pulled": "three"})
    assert pulls == ["three"]
    assert inbox.newest(3) is None


def test_of_several_offers_the_newest_is_pulled_ahead_and_once():
    later, pulls = Later(), []
    inbox = Inbox(lambda reference: pulls.append(reference) or {"pulled": reference}, ahead=later)
    inbox.offer(3, "three")
    inbox.offer(4, "four")
    later.run()
    assert inbox.newest(2) == (4, {"pulled": "four"})
    later.run()
    assert pulls == ["four"]


def test_weights_that_must_be_there_are_waited_for():
    release = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        inbox = Inbox(lambda reference: release.wait(20) and {"pulled": reference}, ahead=pool.submit)
        inbox.offer(3, "three")
        threading.Timer(0.05, release.set).start()
        assert inbox.newest(2, at_least=3) == (3, {"pulled": "three"})


def test_what_cannot_be_pulled_ahead_fails_where_it_is_needed():
    def lost(reference):
        raise OSError("the object is gone")

    later = Later()
    inbox = Inbox(lost, ahead=later)
    inbox.offer(3, "three")
    later.run()
    with pytest.raises(OSError, match="the object is gone"):
        inbox.newest(2)


def test_weights_that_do_not_come_ahead_in_time_are_pulled_by_whom_they_are_needed():
    inbox = Inbox(pulled, timeout_s=0.05, ahead=Later())
    inbox.offer(3, "three")
    assert inbox.newest(2, at_least=3) == (3, {"pulled": "three"})


def test_what_comes_by_broadcast_is_not_pulled_ahead():
    later = Later()
    inbox = Inbox(pulled, ahead=later)
    inbox.offer(3, "three")
    inbox.offer(4, "four", epoch=1)  # comes by itself
    later.run()
    assert inbox.newest(2, at_least=2) is None
    inbox.arrive(4, {"w": 4})
    assert inbox.newest(2) == (4, {"w": 4})


def test_weights_that_nobody_offers_are_a_lost_worker():
    with pytest.raises(WorkerLost, match="no weights of version 1"):
        Inbox(pulled, timeout_s=0.05).wait_for(1)
