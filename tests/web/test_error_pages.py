"""Errors on pages: what happened, to which thing, and the way out; the API keeps its own form."""

from __future__ import annotations

import re
from html import unescape

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from server.problems import TookTooLong
from tests.web.conftest import Seeded
from tests.web.reading import assert_clean


@pytest.mark.parametrize("path", ["/runs/run_none", "/sweeps/swp_none", "/nothing", "/static/x/none.js"])
def test_what_is_not_there_gives_a_page_that_leads_on(site: TestClient, path: str) -> None:
    answer = site.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    for path_on in ("/", "/runs", "/sweeps", "/alerts", "/track-record", "/settings", "/docs"):
        assert f'href="{path_on}"' in answer.text
    assert answer.headers["x-request-id"] in answer.text
    assert "/v1" not in answer.text
    assert "openapi" not in answer.text
    assert_clean(answer.text)


@pytest.mark.parametrize("path", ["/v1/runs/run_none", "/v1/nothing", "/v1"])
def test_the_api_keeps_its_own_form_of_errors(site: TestClient, path: str) -> None:
    answer = site.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 404


def test_an_address_with_a_slash_too_many_leads_to_the_page(site: TestClient) -> None:
    for path in ("/runs/?status=running", "/settings/"):
        answer = site.get(path)
        assert (answer.status_code, answer.headers["location"]) == (307, path.replace("/?", "?").removesuffix("/"))
    assert site.get("/v1/runs/").status_code == 404


def test_a_form_that_is_too_large_is_refused_on_a_page(visitor: TestClient) -> None:
    answer = visitor.post("/login", data={"token": "x" * 2_000_000}, headers={"sec-fetch-site": "same-origin"})
    assert answer.status_code == 413
    assert answer.headers["content-type"].startswith("text/html")
    assert "The body has more than 1 MB" in answer.text


def test_the_api_asks_for_a_token_where_a_page_leads_to_the_login(visitor: TestClient) -> None:
    assert visitor.get("/v1/runs").status_code == 401
    assert visitor.get("/runs").status_code == 303


def test_a_failure_of_ours_gives_a_page_without_the_secrets_of_the_trace(
    app: FastAPI, site: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr("web.reads.unseen_alerts", fail)
    answer = site.get("/runs")
    assert answer.status_code == 500
    assert "the log has the request id" in answer.text
    assert "hunter2" not in answer.text
    assert answer.headers["x-request-id"] in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(("path", "methods"), [("/runs", "GET"), ("/login", "GET, POST"), ("/logout", "POST")])
def test_a_page_says_which_methods_it_takes_as_the_api_does(site: TestClient, path: str, methods: str) -> None:
    answer = site.put(path)
    assert (answer.status_code, answer.headers["allow"]) == (405, methods)
    assert answer.headers["content-type"].startswith("text/html")


def test_a_page_says_after_how_many_seconds_to_ask_again(site: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: object) -> None:
        raise TookTooLong("The database took too long.")

    monkeypatch.setattr("web.reads.unseen_alerts", give_up)
    answer = site.get("/runs")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, str(TookTooLong.retry_after_s))
    assert answer.headers["x-request-id"] in answer.text
    assert_clean(answer.text)


@pytest.mark.parametrize(
    ("asked", "status", "kept"),
    [
        ("/runs?state=garbage&text=a", 422, "/runs?text=a"),
        ("/runs?cursor=run_x&sort=", 422, "/runs?sort="),
        ("/runs?text=a%00", 422, "/runs"),
        ("/runs?sweep=swp_no", 404, "/runs"),
        ("/runs?text=run_x&cursor=run_x", 422, "/runs?text=run_x"),
        ("/alerts?show=all&cursor=x", 422, "/alerts?show=all"),
        ("/sweeps?cursor=x", 422, "/sweeps"),
        ("/track-record?sweep=swp_no", 404, "/track-record"),
        ("/compare?run={control}&run=run_none&run={arm}", 404, "/compare?run={control}&run={arm}"),
        ("/compare?run={arm}&run=a%00", 422, "/compare?run={arm}"),
        ("/compare?run={control}&run={arm}&control=run_none", 422, "/compare?run={control}&run={arm}"),
    ],
)
def test_an_address_that_does_not_hold_leads_to_itself_without_what_is_wrong(
    site: TestClient, seeded: Seeded, asked: str, status: int, kept: str
) -> None:
    answer = site.get(asked.format(**vars(seeded)))
    assert answer.status_code == status
    assert "Unprocessable" not in answer.text
    way_out = re.search(r'<a class="button" href="([^"]+)">Open it without that', answer.text)
    assert way_out
    assert unescape(way_out[1]) == kept.format(**vars(seeded))
    assert site.get(unescape(way_out[1])).status_code == 200


def test_a_cursor_that_no_list_is_long_enough_for_gives_the_first_page(site: TestClient, seeded: Seeded) -> None:
    assert seeded.control in site.get(f"/runs?sort=name&cursor={'9' * 30}").text
