"""URLs: where they lead, and how they are shown."""

import pytest

from ostinato_worker.builtin.url import Url


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://Example.COM", "https://example.com/"),
        ("https://example.com.:443/a", "https://example.com/a"),
        ("http://example.com:8080/a?token=abc&flag&x=", "http://example.com:8080/a?token=***&***&x=***"),
        ("http://[2001:DB8::1]:80/#secret", "http://[2001:db8::1]/"),
    ],
)
def test_a_url_is_shown_without_what_its_query_says(text: str, shown: str) -> None:
    assert Url.parse(text).shown == shown


@pytest.mark.parametrize(
    ("location", "allowed"),
    [
        ("/elsewhere", True),
        ("elsewhere?x=1", True),
        ("http://example.com/", True),
        ("https://EXAMPLE.com/", True),
        ("//example.com/", True),
        ("http://example.com:8080/", False),
        ("http://www.example.com/", False),
        ("//evil.example/", False),
    ],
)
def test_a_redirect_stays_with_its_server_or_goes_to_its_better_side(location: str, allowed: bool) -> None:
    url = Url.parse("http://example.com/hook?a=1")

    assert url.may_redirect_to(url.joined(location)) is allowed


def test_a_redirect_never_takes_encryption_away() -> None:
    url = Url.parse("https://example.com/hook")

    assert not url.may_redirect_to(url.joined("http://example.com/hook"))
    assert not url.may_redirect_to(url.joined("https://example.com:8443/hook"))
