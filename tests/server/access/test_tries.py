"""Wrong tokens are limited by the address that they come from, and nobody who is at work is shut out by them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.orm import Session, sessionmaker

from server.access.service import authenticate, mint, mint_login_code, open_session, redeem_login_code
from server.access.tries import TooManyTries, Tries, Unknown, come_from
from server.dependencies import SESSION_COOKIE
from tests.conftest import Clock
from tests.server.reporting import Headers, bearer, external_run

MOST = 3
START = datetime.fromisoformat("2026-01-05T12:00:00+00:00")


@pytest.fixture(autouse=True)
def few_tries(application: FastAPI) -> Iterator[None]:
    usual, application.state.tries = application.state.tries, Tries(MOST)
    yield
    application.state.tries = usual


def statuses(api: TestClient, *secrets: str) -> list[int]:
    return [api.get("/v1/me", headers=bearer(secret)).status_code for secret in secrets]


def guess(api: TestClient) -> None:
    """Use all tries up."""
    assert statuses(api, *(f"guess {number}" for number in range(MOST))) == [401] * MOST


def test_after_some_wrong_tokens_no_other_is_tried(api: TestClient, clock: Clock) -> None:
    guess(api)
    clock.advance(20)
    refused = api.get("/v1/runs", headers=bearer("one more"))
    assert (refused.status_code, refused.json()["code"]) == (429, "too-many-tries")
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["retry-after"] == "40"
    assert "in 40 s" in refused.json()["detail"]
    clock.advance(40)
    assert statuses(api, "one more") == [401]


def test_who_was_let_in_goes_on_and_who_is_new_waits(api: TestClient, headers: Headers, clock: Clock) -> None:
    assert api.get("/v1/me", headers=headers["read"]).status_code == 200
    guess(api)
    assert api.get("/v1/me", headers=headers["read"]).status_code == 200
    assert api.get("/v1/me", headers=headers["operate"]).status_code == 429
    clock.advance(60)
    assert api.get("/v1/me", headers=headers["operate"]).status_code == 200


def test_a_token_that_was_made_here_goes_on(api: TestClient, headers: Headers) -> None:
    """A run that begins reports at once, whatever else its machine sends."""
    assert api.get("/v1/me", headers=headers["operate"]).status_code == 200
    guess(api)
    assert external_run(api, headers).beat().status_code == 200


def test_a_browser_session_is_a_secret_too(api: TestClient) -> None:
    guess(api)
    api.cookies.set(SESSION_COOKIE, "forged")
    assert api.get("/v1/runs").status_code == 429
    api.cookies.clear()
    assert api.get("/v1/runs").status_code == 401, "without any secret nothing is tried"
    assert api.get("/healthz").status_code == 200


def test_the_same_wrong_token_again_is_no_guess(api: TestClient, headers: Headers) -> None:
    """A trainer that was forgotten with its token shuts nobody out."""
    assert statuses(api, *["forgotten"] * 3 * MOST) == [401] * 3 * MOST
    assert api.get("/v1/me", headers=headers["read"]).status_code == 200


def test_a_token_that_was_one_is_no_guess(api: TestClient, sessions: sessionmaker[Session], clock: Clock) -> None:
    with sessions.begin() as session:
        made = [mint(session, kind="api", name="old", scopes=["read"], now=clock.now) for _ in range(2 * MOST)]
        for token, _ in made:
            token.revoked_at = clock.now
    assert statuses(api, *(secret for _, secret in made)) == [401] * 2 * MOST


def test_every_address_has_its_own_tries(application: FastAPI, api: TestClient) -> None:
    def at(host: str) -> TestClient:
        return TestClient(application, client=(host, 50_000))

    guess(at("192.0.2.7"))
    assert statuses(at("192.0.2.7"), "x") == statuses(at("::ffff:192.0.2.7"), "x") == [429]
    assert statuses(at("192.0.2.8"), "x") == [401]
    guess(at("2001:db8:1:2::3"))
    assert statuses(at("2001:db8:1:2:ffff::4"), "x") == [429], "one machine has all addresses of such a network"
    assert statuses(at("2001:db8:1:3::3"), "x") == [401]


def test_login_links_and_pasted_tokens_are_tries(sessions: sessionmaker[Session], clock: Clock) -> None:
    tries = Tries(MOST)
    with sessions.begin() as session:
        code = mint_login_code(session, clock.now)
        _, pasted = mint(session, kind="api", name="x", scopes=["read"], now=clock.now)
    with sessions.begin() as session:
        come_from(session, tries, "192.0.2.7")
        for wrong in range(MOST - 1):
            with pytest.raises(Unknown, match="used already"):
                redeem_login_code(session, f"wrong {wrong}", clock.now)
        opened = redeem_login_code(session, code, clock.now)
        assert authenticate(session, opened, clock.now).kind == "session"
        with pytest.raises(Unknown, match="used already"):
            redeem_login_code(session, code, clock.now)
        with pytest.raises(TooManyTries):
            redeem_login_code(session, "another", clock.now)
        with pytest.raises(TooManyTries):
            open_session(session, pasted, clock.now)
        assert authenticate(session, opened, clock.now).kind == "session"


def test_a_clock_that_is_set_back_begins_anew() -> None:
    tries = Tries(1)
    tries.check("a", "x", START)
    tries.refuse("a", "x", "no")
    with pytest.raises(TooManyTries):
        tries.check("a", "y", START)
    tries.check("a", "y", START.replace(hour=9))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.booleans()), max_size=60))
def test_only_new_secrets_of_an_address_without_tries_are_refused(asked: list[tuple[str, int, bool]]) -> None:
    """Whatever comes in a minute, by address, secret and whether that one is right."""
    tries, known = Tries(MOST), set()
    wrong: dict[str, set[str]] = {"a": set(), "b": set()}
    for address, number, right in asked:
        secret = f"{number} {right}"
        try:
            tries.check(address, secret, START)
        except Unknown:
            assert secret in wrong[address]
        except TooManyTries:
            assert len(wrong[address]) == MOST
            assert secret not in known | wrong[address]
        else:
            assert secret in known or len(wrong[address]) < MOST
            if right:
                tries.let_in(secret)
                known.add(secret)
            else:
                tries.refuse(address, secret, "no")
                wrong[address].add(secret)
