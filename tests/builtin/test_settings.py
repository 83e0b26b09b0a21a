"""What an operator may say about the built-in handlers."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from ostinato.errors import InvalidArgument
from ostinato_worker.builtin import BuiltinSettings
from ostinato_worker.builtin.gate import GROUPS
from ostinato_worker.builtin.settings import READERS


def test_an_empty_environment_opens_nothing() -> None:
    assert BuiltinSettings.from_env({"OSTINATO_SECRETS_DIR": " "}) == BuiltinSettings()


def test_each_field_has_its_variable(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.touch()

    settings = BuiltinSettings.from_env(
        {
            "OSTINATO_SECRETS_DIR": str(tmp_path),
            "OSTINATO_SQL_FILE": str(file),
            "OSTINATO_HTTP_ALLOW": "loopback, 10.0.0.0/8",
            "OSTINATO_HTTP_REFUSE": "private",
            "OSTINATO_HTTP_CA_FILE": str(file),
        }
    )

    assert settings.model_dump() == {
        "secrets_dir": tmp_path,
        "sql_file": file,
        "http_allow": (*GROUPS["loopback"], ip_network("10.0.0.0/8")),
        "http_refuse": GROUPS["private"],
        "http_ca_file": file,
    }
    assert set(READERS) == set(BuiltinSettings.model_fields)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OSTINATO_SECRETS_DIR", "/nowhere"),
        ("OSTINATO_SQL_FILE", "/"),
        ("OSTINATO_HTTP_ALLOW", "localhost"),
        ("OSTINATO_HTTP_REFUSE", "10.0.0.1/8"),
        ("OSTINATO_HTTP_CA_FILE", "/nowhere"),
    ],
)
def test_a_value_that_breaks_a_rule_is_named_with_its_variable(variable: str, value: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        BuiltinSettings.from_env({variable: value})

    assert (caught.value.argument, caught.value.value) == (variable, value)
