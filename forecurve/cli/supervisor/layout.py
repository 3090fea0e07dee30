"""Where things lie: the data directory, a short path for sockets, and the applications."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

TAG = "FORECURVE_UP"
"""Environment variable that marks every process of one data directory, so that leftovers can be found."""


@dataclass(frozen=True)
class Layout:
    """The files of one data directory."""

    data_dir: Path

    @classmethod
    def of(cls, data_dir: Path | str) -> Layout:
        return cls(Path(data_dir).expanduser().resolve())

    def make(self) -> None:
        """Create the folders; logs and the broker's are for their owner only, also where they were there before. The
        directory must be enterable by the database's own user when we are root."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.runs.mkdir(exist_ok=True)
        for folder in (self.logs, self.redis):
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o700)
        self.short.mkdir(mode=0o700, exist_ok=True)
        if self.short.is_symlink() or self.short.stat().st_uid != os.getuid():
            raise PermissionError(
                f"{self.short} belongs to someone else; remove it, or set TMPDIR to a folder of your own"
            )

    @property
    def key(self) -> str:
        """Ten hex digits that stand for this data directory."""
        return hashlib.sha256(str(self.data_dir).encode()).hexdigest()[:10]

    @property
    def short(self) -> Path:
        """A folder with a short path: a Unix socket's address has room for about 100 characters."""
        return Path(tempfile.gettempdir()) / f"fc-{os.getuid()}-{self.key}"

    @property
    def lock(self) -> Path:
        return self.data_dir / "up.lock"

    @property
    def state(self) -> Path:
        return self.data_dir / "state.json"

    @property
    def secrets(self) -> Path:
        return self.data_dir / "secrets.json"

    @property
    def ports(self) -> Path:
        return self.data_dir / "ports.json"

    @property
    def logs(self) -> Path:
        return self.data_dir / "logs"

    @property
    def postgres(self) -> Path:
        return self.data_dir / "postgres"

    @property
    def redis(self) -> Path:
        return self.data_dir / "redis"

    @property
    def runs(self) -> Path:
        return self.data_dir / "runs"

    @property
    def ray(self) -> Path:
        return self.short / "ray"


def apps_dir() -> Path:
    """The folder that has `server/`, `worker/`, `trainer/`, `web/`: a checkout's root, else inside the wheel."""
    import forecurve

    package = Path(forecurve.__file__).resolve().parent
    for folder in (package.parent, package / "_apps"):
        if (folder / "server" / "app.py").is_file():
            return folder
    raise FileNotFoundError(
        f"the service's applications are neither beside nor inside {package}; install forecurve anew"
    )
