"""Static files: names that change with their content, the vendored ones as they were published."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from web.assets import STATIC, load_assets


def test_a_file_may_be_kept_for_ever_because_its_name_changes_with_its_content(
    visitor: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, before = load_assets().url("js/main.js"), load_assets().url("vendor/htmx.min.js")
    answer = visitor.get(name)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"].startswith("text/javascript")
    for path in STATIC.rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(STATIC)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    (tmp_path / "js" / "times.js").write_text("changed")
    monkeypatch.setattr("web.assets.STATIC", tmp_path)
    assert load_assets().url("js/main.js") != name  # a module that it imports changed
    assert load_assets().url("vendor/htmx.min.js") == before  # what did not change keeps its name


def test_a_page_from_before_an_upgrade_gets_todays_file_but_does_not_keep_it(visitor: TestClient) -> None:
    answer = visitor.get("/static/0123456789abcdef/js/main.js")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-cache"


def test_plotly_is_sent_compressed_and_whole(visitor: TestClient) -> None:
    url = load_assets().url("vendor/plotly-basic.min.js")
    plain = visitor.get(url, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert b"plotly.js" in plain.content[:200]
    with visitor.stream("GET", url, headers={"Accept-Encoding": "gzip"}) as answer:
        packed = b"".join(answer.iter_raw())
        assert answer.headers["content-encoding"] == "gzip"
    assert len(packed) < len(plain.content) / 3
    assert gzip.decompress(packed) == plain.content


@pytest.mark.parametrize("library", ["htmx", "plotly"])
def test_what_is_vendored_is_what_was_published(library: str) -> None:
    folder = STATIC / "vendor" / library
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 2
    for line in lines:
        digest, name = line.split()
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name


@pytest.mark.parametrize("name", ["js/none.js", "..%2fapp.py", "%2e%2e%2f%2e%2e%2fapp.py", "vendor/htmx/README.md", ""])
def test_nothing_but_the_pages_files_is_served(visitor: TestClient, name: str) -> None:
    assert visitor.get(f"/static/0123456789abcdef/{name}").status_code == 404


def test_every_module_imports_files_that_are_there() -> None:
    imports = re.compile(r"""(?:from|import\()\s*["'](\.[^"']+)["']""")
    found = [(path, target) for path in (STATIC / "js").rglob("*.js") for target in imports.findall(path.read_text())]
    assert len(found) > 20
    assert [f"{path.name}: {target}" for path, target in found if not (path.parent / target).is_file()] == []


def test_what_a_module_exports_is_imported_by_name_somewhere() -> None:
    texts = {path: path.read_text() for path in (STATIC / "js").rglob("*.js")}
    imported = set()
    for path, text in texts.items():
        taken = re.findall(r"""import\s*\{([^}]*)\}\s*from\s*["'](\.[^"']+)["']""", text)
        late = re.findall(r"""import\(["'](\.[^"']+)["']\)\.then\(\(\{([^}]*)\}""", text)
        for names, target in taken + [(names, target) for target, names in late]:
            imported |= {((path.parent / target).resolve(), name) for name in re.findall(r"[$\w]+", names)}
    exported = {
        (path.resolve(), name)
        for path, text in texts.items()
        for name in re.findall(r"^export (?:async )?(?:function\*?|const|let|class) ([$\w]+)", text, re.MULTILINE)
    }
    assert len(exported) > 60
    assert [f"{path.name}: {name}" for path, name in sorted(exported - imported)] == []
