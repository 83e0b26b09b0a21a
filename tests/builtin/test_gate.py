"""Which addresses are open."""

from ipaddress import ip_network

import pytest

from ostinato import PermanentError
from ostinato_worker.builtin.gate import GROUPS, Gate

CLOSED = Gate.of((), ())


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "::1",
        "::",
        "169.254.169.254",
        "fe80::1",
        "fe80::1%1",
        "::ffff:127.0.0.1",
        "::ffff:a9fe:a9fe",
        "::127.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "2001:0:4136:e378:8000:63bf:807f:fffe",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "224.0.0.1",
        "255.255.255.255",
        "ff02::1",
    ],
)
def test_what_is_not_out_there_is_refused(address: str) -> None:
    assert not CLOSED.lets(address)


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:2800:21f::1", "10.1.2.3", "fd12::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]
)
def test_everything_else_is_open(address: str) -> None:
    assert CLOSED.lets(address)


def test_what_is_allowed_is_open_whatever_refuses_it() -> None:
    gate = Gate.of([ip_network("127.0.0.1"), ip_network("::1"), ip_network("10.1.0.0/16")], GROUPS["private"])

    seen = {
        text: gate.lets(text) for text in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "10.1.0.9", "10.2.0.9", "127.0.0.2")
    }

    assert seen == {
        "127.0.0.1": True,
        "::1": True,
        "::ffff:127.0.0.1": True,
        "10.1.0.9": True,
        "10.2.0.9": False,
        "127.0.0.2": False,
    }


def test_a_name_with_one_closed_address_among_open_ones_is_closed() -> None:
    with pytest.raises(PermanentError, match=r"example.com is 169\.254\.169\.254"):
        CLOSED.check("example.com", ["93.184.215.14", "169.254.169.254"])
