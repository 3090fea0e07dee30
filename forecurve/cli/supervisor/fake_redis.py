"""A broker in pure Python, for machines without a redis-server.

Run as `python -m forecurve.cli.supervisor.fake_redis PORT`.
"""

from __future__ import annotations

import sys


def main(port: int) -> None:
    from fakeredis import TcpFakeServer

    TcpFakeServer.allow_reuse_address = True
    server = TcpFakeServer(("127.0.0.1", port), server_type="redis")
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
