"""Which addresses a delivery may go to. No I/O.

Judged are addresses, never names: a name may mean another address a moment later. Private ones are open unless they are
refused, since the services of a cluster are there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from types import MappingProxyType
from typing import Final

from ostinato.failures import PermanentError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

TARGET_REFUSED: Final = "TARGET_REFUSED"


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


GROUPS: Final[Mapping[str, tuple[Network, ...]]] = MappingProxyType(
    {
        # "No address" is this host too, for who connects to it.
        "loopback": _networks("127.0.0.0/8", "0.0.0.0/8", "::1/128", "::/128"),
        "link-local": _networks("169.254.0.0/16", "fe80::/10"),
        # Where clouds hand out credentials, beside 169.254.169.254.
        "metadata": _networks(
            "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128"
        ),
        "reserved": _networks("224.0.0.0/4", "240.0.0.0/4", "ff00::/8", "::/96", "64:ff9b:1::/48"),
        "private": _networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10"),
    }
)
ALWAYS_REFUSED: Final = ("loopback", "link-local", "metadata", "reserved")
NAT64: Final = IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Gate:
    allowed: tuple[Network, ...]
    refused: tuple[Network, ...]

    @classmethod
    def of(cls, allowed: Iterable[Network], refused: Iterable[Network]) -> "Gate":
        always = (network for group in ALWAYS_REFUSED for network in GROUPS[group])
        return cls(tuple(allowed), (*always, *refused))

    def check(self, host: str, addresses: Iterable[str]) -> None:
        """Raise if one of them is refused. All must be open: who mixes them in one name is up to something."""
        for address in addresses:
            if not self.lets(address):
                raise PermanentError(
                    f"{host} is {address}, where deliveries may not go; "
                    f"an operator can allow that with OSTINATO_HTTP_ALLOW={address}",
                    code=TARGET_REFUSED,
                )

    def lets(self, address: str) -> bool:
        return all(_within(one, self.allowed) or not _within(one, self.refused) for one in meanings(address))


def meanings(text: str) -> tuple[Address, ...]:
    """Where packets to it may end: an IPv6 address can be a way to write an IPv4 address, or a tunnel to one."""
    address = ip_address(text)
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped:
        return (address.ipv4_mapped,)
    if address.sixtofour:
        return (address, address.sixtofour)
    if address.teredo:
        return (address, *address.teredo)
    if address in NAT64:
        return (address, IPv4Address(int(address) & 0xFFFF_FFFF))
    return (address,)


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)
