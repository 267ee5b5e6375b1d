"""Where a server may push. Workers' addresses come from whoever may register one, and an address may be that of
something inside that trusts the server's host; so each connection is looked at when it is made, behind the name
service, which may say something else each time."""

from __future__ import annotations

import ipaddress

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that this is; None for all else, such as a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


NEAR = "127.0.0.0/8,::1/128,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7"
ANY = _networks("0.0.0.0/0", "::/0")
# Link-local, where clouds tell machines their credentials, and the other addresses where they do; what is no host.
NEVER = _networks(
    "169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128", "100.100.100.200/32", "168.63.129.16/32",
    "0.0.0.0/8", "::/128", "224.0.0.0/4", "ff00::/8", "255.255.255.255/32",
)  # fmt: skip
_TRANSLATED = _networks("64:ff9b::/96", "64:ff9b:1::/48")  # NAT64: well known, and local


class Egress:
    """Where connections may be made, but for `NEVER`: networks and addresses with commas between; `*` for any. Raises
    ValueError."""

    def __init__(self, networks: str = NEAR) -> None:
        parts = (part.strip().strip("[]") for part in networks.split(",") if part.strip())
        self._networks = [network for part in parts for network in (ANY if part == "*" else _networks(part))]

    def may(self, address: str) -> bool:
        """Whether to connect there."""
        ip = address_of(address.partition("%")[0])
        if ip is None:
            return False
        if isinstance(ip, ipaddress.IPv6Address):  # that leads to an IPv4 one
            is_translated = any(ip in network for network in _TRANSLATED)
            ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if is_translated else ip.ipv4_mapped or ip.sixtofour or ip
        return any(ip in network for network in self._networks) and not any(ip in network for network in NEVER)
