"""The Python client: `init`, `log`, `finish` for your own loop, `attach` for a launched one, `connect` for scripts."""

from .api import Api
from .connecting import connect
from .errors import ApiError, ClientError
from .run import Run
from .sync import Synced, sync
from .tracking import attach, current, finish, init, log

__all__ = [
    "Api",
    "ApiError",
    "ClientError",
    "Run",
    "Synced",
    "attach",
    "connect",
    "current",
    "finish",
    "init",
    "log",
    "sync",
]
