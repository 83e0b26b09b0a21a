"""What the environment may say."""

from datetime import timedelta

import pytest
from pydantic import ValidationError

from ostinato.errors import InvalidArgument
from ostinato.settings import READERS, Settings


def test_an_empty_environment_means_the_defaults() -> None:
    settings = Settings.from_env({"OSTINATO_DSN": "", "OSTINATO_LEASE": " ", "HOME": "/root"})

    assert settings == Settings()
    assert (settings.max_attempts, settings.poison, settings.lease) == (5, 3, timedelta(seconds=15))


def test_each_field_has_its_variable() -> None:
    given = {
        "OSTINATO_DSN": "postgresql:///a",
        "OSTINATO_LISTEN_DSN": "postgresql:///b",
        "OSTINATO_PGBOUNCER": "True",
        "OSTINATO_NAMESPACE": "shop",
        "OSTINATO_POOL": "emails",
        "OSTINATO_POD": "emails-7d9f-x2x",
        "OSTINATO_MAX_ATTEMPTS": "7",
        "OSTINATO_POISON": "2",
        "OSTINATO_LEASE": "20",
        "OSTINATO_NO_HANDLER": "2h",
        "OSTINATO_KEEP_HISTORY": "7d",
        "OSTINATO_KEEP_WORKERS": "1h30m",
    }

    settings = Settings.from_env(given)

    assert settings.model_dump() == {
        "dsn": "postgresql:///a",
        "listen_dsn": "postgresql:///b",
        "pgbouncer": True,
        "namespace": "shop",
        "pool": "emails",
        "pod": "emails-7d9f-x2x",
        "max_attempts": 7,
        "poison": 2,
        "lease": timedelta(seconds=20),
        "no_handler": timedelta(hours=2),
        "keep_history": timedelta(days=7),
        "keep_workers": timedelta(minutes=90),
    }
    assert set(READERS) == set(Settings.model_fields)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OSTINATO_PGBOUNCER", "maybe"),
        ("OSTINATO_NAMESPACE", "Shop"),
        ("OSTINATO_MAX_ATTEMPTS", "0"),
        ("OSTINATO_MAX_ATTEMPTS", "five"),
        ("OSTINATO_POISON", "-1"),
        ("OSTINATO_LEASE", "10ms"),
        ("OSTINATO_KEEP_HISTORY", "a month"),
    ],
)
def test_a_value_that_breaks_a_rule_is_named_with_its_variable(variable: str, value: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Settings.from_env({variable: value})

    assert (caught.value.argument, caught.value.value) == (variable, value)


def test_settings_cannot_be_changed() -> None:
    settings = Settings()

    with pytest.raises(ValidationError, match="frozen"):
        settings.poison = 9  # type: ignore[misc]
