"""Logging in and out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.access.service import SESSION_LIFETIME, authenticate, create_token, mint, mint_login_code, revoke
from server.dependencies import SESSION_COOKIE
from tests.conftest import Clock
from tests.web.reading import text_of
from web.login import local_path

OURS = {"Origin": "http://testserver"}
"""What a browser sends from our own pages, over plain http too."""


@pytest.fixture
def code(sessions: sessionmaker[Session], clock: Clock) -> str:
    with sessions.begin() as session:
        return mint_login_code(session, clock.now)


@pytest.fixture
def token(sessions: sessionmaker[Session], clock: Clock) -> str:
    with sessions.begin() as session:
        return create_token(session, name="ci", scopes=["read"], lifetime=None, actor="test", now=clock.now)[1]


def test_a_visitor_is_sent_to_the_login_page_which_says_how_to_get_a_link(visitor: TestClient) -> None:
    answer = visitor.get("/runs?state=running")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Fruns%3Fstate%3Drunning"
    page = visitor.get(answer.headers["location"])
    assert page.status_code == 200
    assert "forecurve status" in page.text
    assert 'value="/runs?state=running"' in page.text


def test_a_login_link_gives_a_cookie_that_scripts_cannot_read_and_other_sites_cannot_use(
    visitor: TestClient, code: str
) -> None:
    answer = visitor.get(f"/login?code={code}&next=/sweeps")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sweeps")
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith(f"{SESSION_COOKIE}=fc_session_")
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert visitor.get("/sweeps").status_code == 200


def test_a_login_link_is_good_once(visitor: TestClient, code: str) -> None:
    visitor.get(f"/login?code={code}")
    visitor.cookies.clear()
    again = visitor.get(f"/login?code={code}")
    assert again.status_code == 401
    assert "used already or has expired" in again.text
    assert SESSION_COOKIE not in visitor.cookies


def test_a_used_link_leads_on_whoever_is_logged_in_already(visitor: TestClient, code: str) -> None:
    visitor.get(f"/login?code={code}")
    again = visitor.get(f"/login?code={code}&next=/sweeps")
    assert (again.status_code, again.headers["location"]) == (303, "/sweeps")


def test_a_link_preview_does_not_use_the_link_up(visitor: TestClient, code: str) -> None:
    preview = visitor.get(f"/login?code={code}", headers={"Sec-Purpose": "prefetch;prerender"})
    assert preview.status_code == 204
    assert visitor.get(f"/login?code={code}").status_code == 303


def test_programs_that_look_at_links_do_not_use_the_link_up(visitor: TestClient, code: str) -> None:
    assert visitor.head(f"/login?code={code}").status_code == 204
    assert visitor.head("/login").status_code == 200
    assert visitor.get(f"/login?code={code}").status_code == 303


def test_a_session_ends_after_its_lifetime(visitor: TestClient, code: str, clock: Clock) -> None:
    visitor.get(f"/login?code={code}")
    clock.advance(SESSION_LIFETIME.total_seconds() - 1)
    assert visitor.get("/runs").status_code == 200
    clock.advance(2)
    assert visitor.get("/runs").status_code == 303


def test_a_pasted_token_becomes_a_session_and_is_not_kept_in_the_browser(visitor: TestClient, token: str) -> None:
    answer = visitor.post("/login", data={"token": f" {token}\n", "next": "/alerts"}, headers=OURS)
    assert (answer.status_code, answer.headers["location"]) == (303, "/alerts")
    assert visitor.cookies[SESSION_COOKIE] != token
    assert visitor.get("/v1/me").json()["scopes"] == ["read"]


def test_an_unknown_token_is_refused_in_words(visitor: TestClient) -> None:
    answer = visitor.post("/login", data={"token": "fc_api_nonsense"}, headers=OURS)
    assert answer.status_code == 401
    assert "not known here" in answer.text
    assert SESSION_COOKIE not in visitor.cookies


def test_a_code_that_is_pasted_as_a_token_is_named_and_its_link_stays_good(visitor: TestClient, code: str) -> None:
    page = visitor.post("/login", data={"token": code}, headers=OURS)
    assert "open the link itself" in text_of(page.text)
    assert visitor.get(f"/login?code={code}").status_code == 303


def test_who_logs_in_at_another_port_of_a_host_stays_logged_in_at_the_first(
    visitor: TestClient, code: str, token: str
) -> None:
    one, other = "http://testserver:8000", "http://testserver:8001"
    assert visitor.get(f"{one}/login?code={code}").status_code == 303
    assert visitor.post(f"{other}/login", data={"token": token}, headers={"Origin": other}).status_code == 303
    assert [visitor.get(f"{place}/v1/me").json()["scopes"] for place in (one, other)] == [["admin"], ["read"]]
    assert visitor.post(f"{one}/logout", headers={"Origin": one}).status_code == 303
    assert [visitor.get(f"{place}/v1/me").status_code for place in (one, other)] == [401, 200]


def test_a_session_ends_with_the_token_that_opened_it(
    visitor: TestClient, sessions: sessionmaker[Session], clock: Clock
) -> None:
    with sessions.begin() as session:
        _, secret = create_token(
            session, name="ci", scopes=["read"], lifetime=timedelta(hours=1), actor="test", now=clock.now
        )
    answer = visitor.post("/login", data={"token": secret}, headers=OURS)
    assert "max-age=3600;" in answer.headers["set-cookie"].lower()
    clock.advance(3599)
    assert visitor.get("/runs").status_code == 200
    clock.advance(1)
    assert visitor.get("/runs").status_code == 303


def test_revoking_a_token_ends_the_sessions_that_it_opened(
    visitor: TestClient, token: str, sessions: sessionmaker[Session], clock: Clock
) -> None:
    visitor.post("/login", data={"token": token}, headers=OURS)
    assert visitor.get("/runs").status_code == 200
    with sessions.begin() as session:
        opened_with = authenticate(session, token, clock.now).token_id
        revoke(session, opened_with, actor="test", now=clock.now)
    assert visitor.get("/runs").status_code == 303


def test_a_session_does_not_prolong_itself(visitor: TestClient, code: str) -> None:
    visitor.get(f"/login?code={code}")
    secret = visitor.cookies[SESSION_COOKIE]
    answer = visitor.post("/login", data={"token": secret}, headers=OURS)
    assert answer.status_code == 403
    assert "of kind session" in text_of(answer.text)
    assert "set-cookie" not in answer.headers


def test_a_trainers_token_opens_no_pages(visitor: TestClient, sessions: sessionmaker[Session], clock: Clock) -> None:
    with sessions.begin() as session:
        _, secret = mint(session, kind="ingest", name="run", scopes=["ingest"], now=clock.now)
    answer = visitor.post("/login", data={"token": secret}, headers=OURS)
    assert answer.status_code == 403
    assert SESSION_COOKIE not in visitor.cookies


@pytest.mark.parametrize("foreign", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}, {}])
def test_another_site_cannot_log_a_browser_in_or_out(visitor: TestClient, token: str, foreign: dict[str, str]) -> None:
    assert visitor.post("/login", data={"token": token}, headers=foreign).status_code == 403
    assert SESSION_COOKIE not in visitor.cookies
    visitor.post("/login", data={"token": token}, headers=OURS)
    assert visitor.post("/logout", headers=foreign).status_code == 403
    assert visitor.get("/runs").status_code == 200


def test_logging_out_revokes_the_session_itself(visitor: TestClient, code: str) -> None:
    visitor.get(f"/login?code={code}")
    secret = visitor.cookies[SESSION_COOKIE]
    assert visitor.post("/logout", headers=OURS).headers["location"] == "/login"
    assert SESSION_COOKIE not in visitor.cookies
    visitor.cookies.set(SESSION_COOKIE, secret)
    assert visitor.get("/runs").status_code == 303


def test_somebody_who_is_logged_in_goes_straight_on(site: TestClient) -> None:
    answer = site.get("/login?next=/sweeps")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sweeps")


def test_the_cookie_is_for_https_only_where_the_service_is(app: FastAPI, visitor: TestClient, code: str) -> None:
    app.state.settings.public_url = "https://forecurve.example.com"
    assert "secure" in visitor.get(f"/login?code={code}").headers["set-cookie"].lower()


def test_the_cookie_is_for_https_only_where_the_browser_came_by_it(app: FastAPI, code: str) -> None:
    """A proxy with TLS tells the scheme, also where nobody has set FORECURVE_PUBLIC_URL."""
    with TestClient(app, base_url="https://forecurve.example.com", follow_redirects=False) as browser:
        assert "secure" in browser.get(f"/login?code={code}").headers["set-cookie"].lower()


def test_a_refresh_in_the_background_sends_the_whole_page_to_the_login(visitor: TestClient) -> None:
    answer = visitor.get("/runs", headers={"HX-Request": "true"})
    assert answer.status_code == 401
    assert answer.headers["hx-redirect"] == "/login?next=%2Fruns"


@pytest.mark.parametrize("path", ["/", "/runs/run_1?x=linear", "/a//b"])
def test_after_the_login_one_lands_where_one_was(path: str) -> None:
    assert local_path(path) == path


@pytest.mark.parametrize(
    "path", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:1", "", "/a\nb"]
)
def test_the_login_never_leads_to_another_site(path: str) -> None:
    assert local_path(path) == "/"
