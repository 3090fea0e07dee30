"""The page of the settings is that of the code."""

from __future__ import annotations

from pathlib import Path

from server.settings import Settings
from server.settings_reference import page, variable

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
