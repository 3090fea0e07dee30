"""What `forecurve up` says of what keeps it from starting."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from forecurve.cli.supervisor import services
from forecurve.cli.supervisor.layout import Layout
from forecurve.cli.supervisor.options import CannotStart, UpOptions, check


def _why(folder: Path) -> str:
    with pytest.raises(CannotStart) as failed:
        services.run_once("step", dict(os.environ), folder, folder / "step.log", lambda _: None)
    return str(failed.value)


def test_what_an_earlier_start_said_is_not_said_again(tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text("raise SystemExit('said at the first start')")
    assert "failed: said at the first start;" in _why(tmp_path)
    (tmp_path / "step.py").write_text("raise SystemExit(3)")
    assert "failed: exit code 3;" in _why(tmp_path)


def test_where_nothing_could_be_said_the_full_disk_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "step.py").write_text("raise SystemExit(1)")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=16_384))
    assert "failed: the disk of its log has no room left;" in _why(tmp_path)


@pytest.mark.parametrize(
    ("found", "why"),
    [('{"admin_token": "fc_api_x",', "is no JSON"), ("", "is no JSON"), ('["fc_api_x"]', "holds no JSON object")],
)
def test_secrets_that_cannot_be_read_are_not_written_anew(found: str, why: str, tmp_path: Path) -> None:
    layout = Layout.of(tmp_path)
    layout.secrets.write_text(found)
    with pytest.raises(
        CannotStart, match=rf"secrets\.json {why}.*; put it back from a backup, or remove it"
    ) as refused:
        check(UpOptions(data_dir=tmp_path), layout)
    assert refused.value.exit_code == 2
    assert "fc_api_x" not in str(refused.value)
    assert layout.secrets.read_text() == found

    layout.secrets.write_text("{}")
    check(UpOptions(data_dir=tmp_path), layout)
    layout.secrets.unlink()
    check(UpOptions(data_dir=tmp_path), layout)
