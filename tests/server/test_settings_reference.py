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


def test_another_database_is_refused_by_the_variable_without_its_password() -> None:
    with pytest.raises(ValueError, match="DATABASE_URL begins with mysql:; it must be postgresql://") as refused:
        make_engine("mysql://me:secret@here/there")
    assert "secret" not in str(refused.value)
