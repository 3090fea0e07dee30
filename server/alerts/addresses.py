"""Which addresses a delivery may go to: a webhook URL is chosen by a user, so it must not reach our own network."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address

_NAT64 = ip_network("64:ff9b::/96")


def parse_address(text: str) -> Address | None:
    """The address that `text` spells, with or without brackets; None when it is a name."""
    try:
        return ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None


def unwrap(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one (mapped, 6to4, NAT64): that is where the packets end."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def refusal(address: Address, *, allow_private: bool) -> str | None:
    """Why nothing is sent to `address`, or None when it is fine.

    Link-local (cloud metadata), multicast and unspecified addresses are refused even where private ones are allowed.
    """
    inner = unwrap(address)
    if inner.is_link_local or inner.is_multicast or inner.is_unspecified:
        return f"{address} is a link-local, multicast or unspecified address"
    if not allow_private and not inner.is_global:
        return f"{address} is not a public address (FORECURVE_ALLOW_PRIVATE_WEBHOOKS=true allows private ones)"
    return None


def is_private(address: Address) -> bool:
    return not unwrap(address).is_global
