"""The application on a socket that another process holds: `python -m web.serve DESCRIPTOR`.

Who holds the socket keeps its port while this process is started again: nobody else can take it, and who connects
meanwhile is answered a moment later in place of being refused.
"""

from __future__ import annotations

import socket
import sys

import uvicorn

STARTUP_FAILED = 3
"""The exit code with which uvicorn's own command line ends when an application does not start."""


def main(descriptor: int) -> int:
    """Serve until SIGTERM or SIGINT; the exit code.

    Args:
        descriptor: of an inherited socket that listens.
    """
    config = uvicorn.Config("web.app:create_app", factory=True, access_log=False, timeout_graceful_shutdown=3)
    server = uvicorn.Server(config)
    with socket.socket(fileno=descriptor) as listener:
        server.run(sockets=[listener])
    return 0 if server.started else STARTUP_FAILED


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
