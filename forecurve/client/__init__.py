"""The Python client: `init`, `log`, `finish` for your own loop, `attach` for a launched one, `Api` for scripts."""

from .api import Api
from .errors import ApiError, ClientError
from .run import Run
from .sync import Synced, sync
from .tracking import attach, current, finish, init, log

__all__ = ["Api", "ApiError", "ClientError", "Run", "Synced", "attach", "current", "finish", "init", "log", "sync"]
