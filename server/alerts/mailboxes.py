"""Addresses of e-mail that a channel may have."""

from __future__ import annotations

from email.errors import HeaderParseError
from email.headerregistry import Address

from server.errors import Invalid

SCHEME = "mailto:"
_MOST = 254  # RFC 5321


def mailbox(url: str) -> str:
    """`ops@lab.org`, of that or of `mailto:ops@lab.org`.

    Raises:
        Invalid: it is no address of one mailbox.
    """
    address = url.strip()
    address = address[len(SCHEME) :] if address.lower().startswith(SCHEME) else address
    try:
        found = Address(addr_spec=address)
    except (HeaderParseError, ValueError, IndexError):
        found = None
    if found is None or not found.username or "." not in found.domain.strip(".") or len(address) > _MOST:
        raise Invalid.field("url", url, "this is no e-mail address; give one like ops@example.com")
    return found.addr_spec
