"""Tokens: minted, listed without their secrets, revoked; the first start; login links."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session, sessionmaker

from server.access.bootstrap import bootstrap
from server.access.models import Token
from server.access.service import digest, ensure_admin, mint, redeem_login_code
from server.dependencies import SESSION_COOKIE
from server.errors import Unauthenticated
from server.events.models import Event
from tests.conftest import Clock
from tests.server.reporting import Headers, bearer, external_run, faults

Sessions = sessionmaker[Session]


def test_a_token_works_until_it_is_revoked(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    body = {"name": "laptop", "scopes": ["operate"]}
    created = api.post("/v1/tokens", json=body, headers=headers["admin"])
    assert created.status_code == 201, created.text
    token = created.json()
    me = api.get("/v1/me", headers=bearer(token["secret"])).json()
    assert (me["id"], me["name"], me["scopes"], me["allowed"]) == (
        token["id"],
        "laptop",
        ["operate"],
        ["operate", "read"],
    )
    assert token["secret"].startswith(token["prefix"])
    listed = api.get("/v1/tokens", headers=headers["admin"])
    assert token["secret"] not in listed.text
    with sessions() as session:
        assert session.get_one(Token, token["id"]).hash == digest(token["secret"])
    revoked = api.delete(f"/v1/tokens/{token['id']}", headers=headers["admin"])
    assert revoked.json()["revoked_at"]
    assert api.delete(f"/v1/tokens/{token['id']}", headers=headers["admin"]).json() == revoked.json()
    refused = api.get("/v1/me", headers=bearer(token["secret"]))
    assert refused.status_code == 401
    assert "revoked" in refused.json()["detail"]
    assert refused.headers["www-authenticate"] == "Bearer"
    with sessions() as session:
        kinds = session.scalars(select(Event.kind).order_by(Event.id)).all()
        assert kinds == ["token.created", "token.revoked"]


def test_a_token_expires(api: TestClient, headers: Headers, clock: Clock) -> None:
    body = {"name": "short", "scopes": ["read"], "expires_in_s": 60}
    secret = api.post("/v1/tokens", json=body, headers=headers["admin"]).json()["secret"]
    clock.advance(59)
    assert api.get("/v1/me", headers=bearer(secret)).status_code == 200
    clock.advance(1)
    assert api.get("/v1/me", headers=bearer(secret)).status_code == 401


def test_last_use_is_kept_to_the_minute(api: TestClient, headers: Headers, sessions: Sessions, clock: Clock) -> None:
    def last_used() -> object:
        with sessions() as session:
            return session.scalars(select(Token.last_used_at).where(Token.name == "test read")).one()

    api.get("/v1/me", headers=headers["read"])
    first = last_used()
    assert first == clock.now
    clock.advance(30)
    api.get("/v1/me", headers=headers["read"])
    assert last_used() == first
    clock.advance(31)
    api.get("/v1/me", headers=headers["read"])
    assert last_used() == clock.now


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x", "scopes": ["root"]}, "scopes.0"),
        ({"name": "x", "scopes": ["ingest"]}, "scopes.0"),
        ({"name": "x", "scopes": []}, "scopes"),
        ({"name": "", "scopes": ["read"]}, "name"),
        ({"name": "x", "scopes": ["read"], "expires_in_s": 0}, "expires_in_s"),
    ],
)
def test_a_bad_token_is_named(body: dict[str, object], field: str, api: TestClient, headers: Headers) -> None:
    answer = api.post("/v1/tokens", json=body, headers=headers["admin"])
    assert answer.status_code == 422
    assert field in faults(answer)


def test_a_token_without_scopes_is_refused_in_plain_words(api: TestClient, headers: Headers) -> None:
    answer = api.post("/v1/tokens", json={"name": "x", "scopes": []}, headers=headers["admin"])
    assert answer.json()["detail"] == (
        "scopes: choose at least one of read, operate and admin; without any the token opens nothing"
    )


def test_a_name_that_is_too_long_is_counted_in_characters(api: TestClient, headers: Headers) -> None:
    answer = api.post("/v1/tokens", json={"name": "n" * 101, "scopes": ["read"]}, headers=headers["admin"])
    assert faults(answer) == {"name": "must have at most 100 characters, has 101"}


def test_tokens_are_listed_by_kind(api: TestClient, headers: Headers, sessions: Sessions, clock: Clock) -> None:
    external_run(api, headers)
    with sessions.begin() as session:
        mint(session, kind="session", name="a person", scopes=["read"], now=clock.now)

    def kinds(query: str) -> list[str]:
        items = api.get(f"/v1/tokens{query}", headers=headers["admin"]).json()["items"]
        return [item["kind"] for item in items]

    assert sorted(kinds("")) == ["api", "api", "api", "ingest", "session"]
    assert kinds("?kind=api&limit=2") == ["api", "api"]
    assert kinds("?kind=ingest") == ["ingest"]
    assert kinds("?kind=login") == []
    refused = api.get("/v1/tokens?kind=robot", headers=headers["admin"])
    assert refused.status_code == 422
    assert "one of api, session" in faults(refused)["kind"]


def test_an_unknown_token_cannot_be_revoked(api: TestClient, headers: Headers) -> None:
    assert api.delete("/v1/tokens/tok_nowhere", headers=headers["admin"]).status_code == 404


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic abc"}])
def test_without_a_token_the_way_out_is_named(header: dict[str, str], api: TestClient) -> None:
    answer = api.get("/v1/runs", headers=header)
    assert answer.status_code == 401
    assert "forecurve status" in answer.json()["detail"]
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_ingest_token_knows_its_run(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers)
    me = api.get("/v1/me", headers=bearer(run.token)).json()
    assert (me["kind"], me["run_id"], me["attempt"], me["allowed"]) == ("ingest", run.run_id, 1, ["ingest"])


def test_the_first_administrator_is_made_once(session: Session, clock: Clock) -> None:
    secret = ensure_admin(session, clock.now)
    assert secret is not None
    assert ensure_admin(session, clock.now) is None
    session.scalars(select(Token).where(Token.kind == "api")).one().revoked_at = clock.now
    again = ensure_admin(session, clock.now)
    assert again not in (None, secret), "who revoked the last administrator gets a new one at the next start"


def test_a_login_code_opens_one_session(api: TestClient, sessions: Sessions, clock: Clock) -> None:
    printed = bootstrap(sessions, api.app.state.settings, clock.now)  # type: ignore[attr-defined]
    assert printed["admin_token"]
    assert bootstrap(sessions, api.app.state.settings, clock.now)["admin_token"] is None  # type: ignore[attr-defined]
    url = urlsplit(printed["login_url"] or "")
    assert (url.scheme, url.netloc, url.path) == ("http", "127.0.0.1:8400", "/login")
    (code,) = parse_qs(url.query)["code"]
    pasted = api.get("/v1/me", headers=bearer(code))
    assert (pasted.status_code, "open the link itself" in pasted.json()["detail"]) == (401, True), "a code is no token"
    with sessions.begin() as session:
        secret = redeem_login_code(session, code, clock.now)
    with sessions.begin() as session, pytest.raises(Unauthenticated, match="used already"):
        redeem_login_code(session, code, clock.now)
    me = api.get("/v1/me", cookies={SESSION_COOKIE: secret}).json()
    assert (me["kind"], me["scopes"]) == ("session", ["admin"])


def test_a_login_code_expires(session: Session, clock: Clock) -> None:
    _, code = mint(session, kind="login", name="x", scopes=["read"], now=clock.now, lifetime=timedelta(minutes=15))
    with pytest.raises(Unauthenticated):
        redeem_login_code(session, code, clock.now + timedelta(minutes=15))


def test_a_browser_session_changes_things_only_from_our_own_pages(
    api: TestClient, sessions: Sessions, clock: Clock
) -> None:
    with sessions.begin() as session:
        _, secret = mint(session, kind="session", name="x", scopes=["operate"], now=clock.now)
    api.cookies.set(SESSION_COOKIE, secret)

    def post(**headers: str) -> int:
        return api.post("/v1/recipes", json={"preset": "scalerl"}, headers=headers).status_code

    assert post() == 403
    assert post(**{"Sec-Fetch-Site": "cross-site"}) == 403
    assert post(Origin="https://evil.example") == 403
    assert post(**{"Sec-Fetch-Site": "same-origin"}) == 201
    assert post(Origin="http://testserver") == 200
    assert api.get("/v1/recipes").status_code == 200


def test_bootstrap_prints_json(engine: Engine, sessions: Sessions) -> None:
    url = engine.url.render_as_string(hide_password=False)
    environment = os.environ | {"DATABASE_URL": url, "FORECURVE_PUBLIC_URL": "http://localhost:9/"}
    done = subprocess.run(
        [sys.executable, "-m", "server.access.bootstrap"], env=environment, capture_output=True, text=True, check=True
    )
    printed = json.loads(done.stdout)
    assert printed["admin_token"].startswith("fc_api_")
    assert printed["login_url"].startswith("http://localhost:9/login?code=fc_login_")


def test_bootstrap_on_a_database_that_was_never_migrated_says_so_in_one_line(postgres_url: str) -> None:
    environment = os.environ | {"DATABASE_URL": postgres_url}
    command = [sys.executable, "-m", "server.access.bootstrap"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (said,) = done.stderr.splitlines()
    assert said == 'the database refused: relation "tokens" does not exist; run `python -m server.migrate` first'
