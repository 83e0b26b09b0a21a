"""Receivers, secrets, and the handler that may deliver to this host."""

import ssl
import subprocess
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from ostinato.handler import Handler
from ostinato_worker.builtin import BuiltinSettings
from ostinato_worker.builtin.http import http_handler
from tests.builtin.receiver import Receiver, receiver

LOOPBACK = ip_network("127.0.0.0/8")


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    return folder


@pytest.fixture
def http(secrets: Path) -> Handler:
    return http_handler(BuiltinSettings(secrets_dir=secrets, http_allow=(LOOPBACK,)))


@pytest.fixture
async def here() -> AsyncIterator[Receiver]:
    async with receiver() as one:
        yield one


@pytest.fixture
async def there() -> AsyncIterator[Receiver]:
    """Somebody else's."""
    async with receiver() as one:
        yield one


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For localhost, signed by itself; the key is in the same file."""
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = subprocess.run([*command, "-keyout", "-", "-out", "-"], check=True, capture_output=True)
    path.write_bytes(made.stdout)
    return path


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
