"""`forecurve token` against the real API."""

from __future__ import annotations

import pytest

from .conftest import Forecurve


def test_a_tokens_secret_is_all_that_stdout_gets(
    forecurve: Forecurve, admin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = forecurve("token", "create", "ci", "--scope", "read", "--scope", "operate", "--expires", "30d")

    assert made.code == 0
    assert made.out.startswith("fc_api_")
    assert len(made.out.split()) == 1
    assert "operate, read; expires in 30 d. The secret is not shown again." in made.err
    monkeypatch.setenv("FORECURVE_TOKEN", made.out.strip())
    assert forecurve("run", "list").code == 0


def test_a_quiet_token_has_no_word_beside_it(forecurve: Forecurve, admin: str) -> None:
    made = forecurve("token", "create", "ci", "--scope", "operate", "--quiet")
    assert (len(made.out.split()), made.err) == (1, "")
    assert forecurve("token", "create", "ci", "--scope", "read", "--json").json["secret"].startswith("fc_api_")


def test_tokens_are_listed_without_their_secrets_and_revoked(forecurve: Forecurve, admin: str) -> None:
    made = forecurve("token", "create", "ci", "--scope", "operate", "--json").json

    listed = forecurve("token", "list")
    assert made["id"] in listed.out
    assert "does not expire" in listed.out
    assert made["secret"] not in listed.out
    assert forecurve("token", "revoke", made["id"]).out.strip() == f"{made['id']}  ci is revoked"
    newest = forecurve("token", "list", "--limit", "1", "--json").json
    assert (newest["items"][0]["id"], newest["more"]) == (made["id"], True)
    assert newest["items"][0]["revoked_at"]
    assert "revoked" in forecurve("token", "list").out


def test_tokens_of_runs_are_listed_only_when_asked_for(forecurve: Forecurve, admin: str) -> None:
    import os

    from forecurve.client import Api

    with Api(admin, os.environ["FORECURVE_TOKEN"]) as api:
        api.create_run({"preset": "scalerl", "executor": "external"})
    kinds = {token["kind"] for token in forecurve("token", "list", "--json").json["items"]}
    assert kinds == {"api"}
    kinds = {token["kind"] for token in forecurve("token", "list", "--all", "--json").json["items"]}
    assert kinds == {"api", "ingest"}


@pytest.mark.parametrize("expires", ["soon", "0d", "30 parsecs", "-1d", "1.5h"])
def test_a_time_that_is_none_is_bad_input(forecurve: Forecurve, expires: str) -> None:
    made = forecurve("token", "create", "ci", "--scope", "read", "--expires", expires)
    assert made.code == 2
    assert made.err.startswith("forecurve: --expires:")
    assert "such as 30d" in made.err
    assert made.out == ""


def test_what_the_service_refuses_is_bad_input(forecurve: Forecurve, admin: str) -> None:
    assert forecurve("token", "create", "ci", "--scope", "read", "--expires", "9999w").code == 2
    assert forecurve("token", "create", "ci", "--scope", "all").code == 2
    assert "--scope" in forecurve("token", "create", "ci").err
    unknown = forecurve("token", "revoke", "tok_nope")
    assert unknown.code == 2
    assert "`forecurve token list --all` lists them" in unknown.err


def test_without_an_admins_token_it_is_a_failure(forecurve: Forecurve, service: str) -> None:
    assert forecurve("token", "create", "ci", "--scope", "read").code == 1
