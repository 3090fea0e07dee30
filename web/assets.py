"""Static files under names that change with their content, so that browsers may keep them for ever.

Our own scripts import one another by relative path, so all of `web/static` shares one digest in the folder name
(`/static/<digest>/js/main.js`). The large vendored files have a digest each and survive our own changes.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request, Response

from server.errors import NotFound

STATIC = Path(__file__).parent / "static"
FOREVER = "public, max-age=31536000, immutable"
_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
_DIGITS = 16


@dataclass(frozen=True)
class Asset:
    """One file: where it lies and the digest that stands in its URL."""

    path: Path
    digest: str


@dataclass
class Assets:
    """Every static file of the pages by its plain name (`js/main.js`, `vendor/htmx.min.js`)."""

    by_name: dict[str, Asset]
    _bodies: dict[tuple[str, bool], bytes] = field(default_factory=dict)

    def url(self, name: str) -> str:
        """The URL of a file; KeyError for a name that does not exist, so that a template cannot misspell one."""
        return f"/static/{self.by_name[name].digest}/{name}"

    def urls(self, folder: str) -> list[str]:
        """The URLs of all files in a folder, to be fetched before they are asked for."""
        return [self.url(name) for name in self.by_name if name.startswith(folder)]

    def body(self, name: str, zipped: bool) -> bytes:
        """The file's bytes, gzipped once and kept."""
        key = (name, zipped)
        if key not in self._bodies:
            raw = self.by_name[name].path.read_bytes()
            self._bodies[key] = gzip.compress(raw, 6, mtime=0) if zipped else raw
        return self._bodies[key]

    def respond(self, request: Request, digest: str, name: str) -> Response:
        """The answer to GET /static/{digest}/{name}. An old page's digest gets the present file, uncached."""
        asset = self.by_name.get(name)
        if asset is None:
            raise NotFound(f"There is no file `{name}` here.")
        zipped = "gzip" in request.headers.get("accept-encoding", "")
        headers = {"Cache-Control": FOREVER if digest == asset.digest else "no-cache", "Vary": "Accept-Encoding"}
        if zipped:
            headers["Content-Encoding"] = "gzip"
        return Response(self.body(name, zipped), media_type=_media_type(asset.path), headers=headers)


def load_assets() -> Assets:
    """All of web/static."""
    own = sorted(
        path for path in STATIC.rglob("*") if path.is_file() and "vendor" not in path.relative_to(STATIC).parts
    )
    shared = _digest(own)
    by_name = {path.relative_to(STATIC).as_posix(): Asset(path, shared) for path in own}
    for name in ("htmx/htmx.min.js", "plotly/plotly-basic.min.js"):
        path = STATIC / "vendor" / name
        by_name[f"vendor/{path.name}"] = Asset(path, _digest([path]))
    return Assets(by_name)


def _digest(paths: list[Path]) -> str:
    total = hashlib.sha256()
    for path in paths:
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:_DIGITS]


def _media_type(path: Path) -> str:
    return _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
