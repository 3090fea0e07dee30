"""The socket at which the API answers: the supervisor's own from its start to its end.

A port that is only found free is anybody's until the API listens there seconds later, and again while the API is
started anew: its callers would reach whoever took it.
"""

from __future__ import annotations

import errno
import socket

from .options import CannotStart, UpOptions, not_allowed

BACKLOG = 2048
"""Connections that may wait while the API starts; uvicorn's own number."""


def listen(options: UpOptions) -> socket.socket:
    """A socket that listens at the host and port asked for, port 0 being any that is free.

    Raises:
        CannotStart: the host is none of this machine, or the port is another's.
    """
    host = "127.0.0.1" if options.host == "localhost" else options.host  # where `local_url` says that it is
    try:
        family, *_, address = socket.getaddrinfo(host, options.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        raise _refused(options, error) from None


def _refused(options: UpOptions, error: OSError | UnicodeError) -> CannotStart:
    if isinstance(error, UnicodeError | socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        way_out = "127.0.0.1 is for this machine alone, 0.0.0.0 for all its addresses"
        return not_allowed(f"--host {options.host} is no address of this machine; {way_out}")
    if error.errno == errno.EADDRINUSE:
        way_out = "choose another with --port, or --port 0 for any"
        return not_allowed(f"port {options.port} on {options.host} is in use; {way_out}")
    if error.errno == errno.EACCES:
        return not_allowed(f"port {options.port} is for root only; choose one from 1024 on with --port")
    return not_allowed(f"cannot listen on {options.host}, port {options.port}: {error.strerror}")
