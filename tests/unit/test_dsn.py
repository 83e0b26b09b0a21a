"""DSNs: our own option, and passwords that nobody may see."""

import pytest

from ostinato.dsn import Dsn
from ostinato.errors import InvalidArgument


def test_our_own_option_does_not_reach_the_driver() -> None:
    dsn = Dsn.parse("postgresql://me@h/db?sslmode=require&pgbouncer=true&host=/a/b")

    assert dsn.text == "postgresql://me@h/db?sslmode=require&host=/a/b"
    assert dsn.pgbouncer


def test_the_dsn_has_the_last_word_about_pgbouncer() -> None:
    assert Dsn.parse("postgresql:///db", pgbouncer=True).pgbouncer
    assert not Dsn.parse("postgresql:///db?pgbouncer=false", pgbouncer=True).pgbouncer


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:secret@h/db",
        "postgres://me:s@secret@h:5432/db",
        "postgresql://h/db?user=me&password=secret",
        "postgresql://h/db?sslpassword=secret",
    ],
)
def test_a_dsn_is_shown_without_its_password(text: str) -> None:
    dsn = Dsn.parse(text)

    assert "secret" not in str(dsn)
    assert "h" in str(dsn)
    assert "secret" in dsn.text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "me:secret@h/db",
        "mysql://me:secret@h/db",
        "host=h password=secret",
        "postgresql://me:se/secret@h/db",
        "postgresql://me:se#secret@h/db",
        "postgresql://me:se?secret@h/db",
        "postgresql://[secret@h/db",
    ],
)
def test_what_is_no_dsn_is_refused_without_showing_a_password(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Dsn.parse(text)

    assert "secret" not in str(caught.value)
