"""The page of the settings is that of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.database import make_engine
from server.settings import Settings, get_settings, variable
from server.settings_reference import page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `make settings-reference`"


def test_every_setting_says_what_it_means() -> None:
    assert [name for name, info in Settings.model_fields.items() if not info.description] == []


def test_the_variables_are_those_that_are_read(monkeypatch) -> None:
    info = Settings.model_fields
    for name, value in (("database_url", "postgresql://here"), ("trainer_dir", "/scratch"), ("max_attempts", "7")):
        monkeypatch.setenv(variable(name, info[name]), value)
    read = Settings()  # type: ignore[call-arg]  # from the environment
    assert (read.database_url, read.trainer_dir, read.max_attempts) == ("postgresql://here", "/scratch", 7)


def test_what_cannot_be_meant_is_said_by_variable_value_and_bound(monkeypatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    for name, value in (("FORECURVE_MAX_ATTEMPTS", "0"), ("FORECURVE_TICK_S", "soon")):
        monkeypatch.setenv(name, value)
    get_settings.cache_clear()
    with pytest.raises(SystemExit) as ended:
        get_settings()
    assert set(str(ended.value).split("; ")) == {
        "DATABASE_URL is required",
        "FORECURVE_MAX_ATTEMPTS is '0': must be at least 1",
        "FORECURVE_TICK_S is 'soon': must be a number",
    }


SECRET = "hunter2"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("DATABASE_URL", f"mysql://me:{SECRET}@here/x", "DATABASE_URL begins with mysql:; it must be postgresql://"),
        ("DATABASE_URL", f"postgresql://me:{SECRET}@here:port/x", "DATABASE_URL cannot be read; it must be postgres"),
        ("DATABASE_URL", f"postgresql://me:a@{SECRET}@here/x", "DATABASE_URL cannot be read; it must be postgresql://"),
        ("DATABASE_URL", SECRET, "DATABASE_URL is no URL; it must be postgresql://"),
        ("REDIS_URL", f"redis://:{SECRET}@here:port/0", "REDIS_URL cannot be read; it must be redis://"),
        ("REDIS_URL", "localhost:6379", "REDIS_URL is no address of a Redis; it must be redis://"),
        ("REDIS_URL", "", "REDIS_URL is no address of a Redis; it must be redis://"),
        ("FORECURVE_PUBLIC_URL", "fc.example.org", "FORECURVE_PUBLIC_URL is 'fc.example.org': it does not begin with"),
        ("FORECURVE_TRAINER_URL", "api:8400", "FORECURVE_TRAINER_URL is 'api:8400': it does not begin with http://"),
        ("FORECURVE_RAY_URL", "ray://head:10001", "FORECURVE_RAY_URL is 'ray://head:10001': it does not begin with"),
        (
            "FORECURVE_RAY_URL",
            f"http://me:{SECRET}@ray:8265",
            "FORECURVE_RAY_URL has a user or a password in it: it is",
        ),
        (
            "FORECURVE_PUBLIC_URL",
            f"ftp://me:{SECRET}@fc",
            "FORECURVE_PUBLIC_URL has a user or a password in it: it does",
        ),
        ("FORECURVE_TRAINER_DIR", "scratch", "FORECURVE_TRAINER_DIR is 'scratch': must be a path that begins with /"),
        ("FORECURVE_SIGNS_DIR", " ", "FORECURVE_SIGNS_DIR is ' ': must be a path that begins with /, or empty"),
        ("FORECURVE_TRAINER_COMMAND", " ", "FORECURVE_TRAINER_COMMAND is ' ': must be a command, such as `python -m"),
        (
            "FORECURVE_SMTP_URL",
            f"smtp://me:{SECRET}@here:port",
            "FORECURVE_SMTP_URL cannot be read; it must be smtp://",
        ),
        ("FORECURVE_SMTP_URL", SECRET, "FORECURVE_SMTP_URL is no address of a mail server; it must be smtp://"),
        ("FORECURVE_RAY_TOKEN", f"{SECRET} a", "FORECURVE_RAY_TOKEN must be printable ASCII without spaces; copy it"),
        ("FORECURVE_RAY_TOKEN", f"{SECRET}é", "FORECURVE_RAY_TOKEN must be printable ASCII without spaces; copy it"),
        ("FORECURVE_SMTP_FROM", "a b@c", "FORECURVE_SMTP_FROM is 'a b@c': must be one address, such as forecurve@"),
        ("FORECURVE_LEASE_S", "inf", "FORECURVE_LEASE_S is 'inf': must be at most 86400"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused_at_the_start_and_no_password_is_shown(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://here")
    monkeypatch.setenv(name, value)
    get_settings.cache_clear()
    with pytest.raises(SystemExit) as ended:
        get_settings()
    assert said in str(ended.value)
    assert SECRET not in str(ended.value)


@pytest.mark.parametrize(
    ("database", "broker"),
    [
        ("postgresql://postgres:@/postgres?host=/tmp/data/postgres", "redis+socket:///tmp/redis.sock"),
        ("postgres://me:p%40ss@[::1]:5432/x?sslmode=require", "rediss://:p%2Fss@here:6380/1"),
    ],
)
def test_addresses_that_can_be_meant_are_kept_as_they_are(database: str, broker: str) -> None:
    found = Settings(DATABASE_URL=database, REDIS_URL=broker, public_url="HTTPS://fc.example.org/", trainer_url="")
    assert (found.database_url, found.redis_url, found.trainer_url) == (database, broker, "")
    assert found.public_url == "https://fc.example.org"  # by which cookies are for https only


@pytest.mark.parametrize(("given", "kept"), [("a-token\n", "a-token"), (" a-token\r\n", "a-token"), ("\n", None)])
def test_what_a_file_leaves_around_the_clusters_token_is_no_part_of_it(
    given: str, kept: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORECURVE_RAY_TOKEN", given)
    found = Settings(DATABASE_URL="postgresql://here").ray_token
    assert (found and found.get_secret_value()) == kept


def test_another_database_is_refused_by_the_variable_without_its_password() -> None:
    with pytest.raises(ValueError, match="DATABASE_URL begins with mysql:; it must be postgresql://") as refused:
        make_engine("mysql://me:secret@here/there")
    assert "secret" not in str(refused.value)
