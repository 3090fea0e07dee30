"""Which addresses a delivery may go to: a webhook URL is chosen by a user, so it must not reach our own network."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address

_GLOBAL6 = ip_network("2000::/3")
"""All of IPv6 that is given out for the public network; `is_global` knows some of what is not, site-local left out."""

_CARRIES_IPV4 = tuple(ip_network(prefix) for prefix in ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96"))
"""NAT64, NAT64 of one's own, IPv4-translated, IPv4-compatible: the last 32 bits are the IPv4 address."""

_METADATA = frozenset(ip_address(text) for text in ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200"))
"""Where clouds answer with a machine's credentials, besides 169.254.169.254, which is link-local."""


def parse_address(text: str) -> Address | None:
    """The address that `text` spells, with or without brackets; None when it is a name."""
    try:
        return ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None


def unwrap(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one (mapped, 6to4, or as in `_CARRIES_IPV4`): that is where the packets end."""
    if isinstance(address, IPv4Address) or address.is_unspecified or address.is_loopback:
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if any(address in network for network in _CARRIES_IPV4):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def refusal(address: Address, *, allow_private: bool) -> str | None:
    """Why nothing is sent to `address`, or None when it is fine.

    Link-local (cloud metadata), multicast and unspecified addresses are refused even where private ones are allowed.
    """
    inner = unwrap(address)
    if inner in _METADATA:
        return f"{address} is where a cloud answers with credentials"
    if inner.is_link_local or inner.is_multicast or inner.is_unspecified:
        return f"{address} is a link-local, multicast or unspecified address"
    if not allow_private and is_private(address):
        return f"{address} is not a public address (FORECURVE_ALLOW_PRIVATE_WEBHOOKS=true allows private ones)"
    return None


def is_private(address: Address) -> bool:
    """Whether it is none of the public network."""
    inner = unwrap(address)
    return not inner.is_global or (isinstance(inner, IPv6Address) and inner not in _GLOBAL6)
