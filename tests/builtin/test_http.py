"""What `http` sends, and what it makes of the answer."""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import socket
import ssl
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ostinato import PermanentError, TransientError
from ostinato.failures import JobError
from ostinato.handler import Handler
from ostinato_worker.builtin import BuiltinSettings
from ostinato_worker.builtin.http import http_handler
from tests.builtin.attempt import JOB_ID, attempt
from tests.builtin.receiver import Receiver, answer, receiver

OLD, NEW = b"o" * 24, b"n" * 32
BOTH = " ".join("whsec_" + base64.b64encode(key).decode() for key in (NEW, OLD))
HUGE = 16 * 2**20
TOKEN = "s3cr3t-t0ken-of-ours"


def expected(key: bytes, timestamp: str, body: bytes) -> str:
    """As a receiver computes it who knows only the convention."""
    mac = hmac.new(key, digestmod=hashlib.sha256)
    mac.update(str(JOB_ID).encode() + b"." + timestamp.encode() + b"." + body)
    return "v1," + base64.b64encode(mac.digest()).decode()


async def test_a_delivery_is_signed_with_every_key_of_its_secret(http: Handler, here: Receiver, secrets: Path) -> None:
    (secrets / "shop").write_text(BOTH + "\n")
    before = int(time.time())

    receipt = await attempt(http, {"url": here.url(), "body": {"paid": True, "sum": 1.5}, "secret": "shop"})

    [request] = here.received
    timestamp = request.headers["webhook-timestamp"]
    assert (request.method, request.target) == ("POST", "/hook")
    assert json.loads(request.body) == {"paid": True, "sum": 1.5}
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-id"] == str(JOB_ID)
    assert before <= int(timestamp) <= time.time()
    assert request.headers["webhook-signature"].split(" ") == [
        expected(NEW, timestamp, request.body),
        expected(OLD, timestamp, request.body),
    ]
    assert receipt == {"status": 200, "duration_ms": receipt["duration_ms"], "body": "", "url": here.url()}


async def test_a_rotated_secret_holds_from_the_next_attempt_on(http: Handler, here: Receiver, secrets: Path) -> None:
    for text, key in ((BOTH.split()[1], OLD), (BOTH.split()[0], NEW)):
        (secrets / "shop").write_text(text)

        await attempt(http, {"url": here.url(), "body": "hello", "secret": "shop"})

        last = here.received[-1]
        assert last.headers["webhook-signature"] == expected(key, last.headers["webhook-timestamp"], b"hello")


async def test_without_a_secret_a_delivery_has_an_id_but_no_signature(http: Handler, here: Receiver) -> None:
    await attempt(http, {"url": here.url()})

    [request] = here.received
    assert request.headers["webhook-id"] == str(JOB_ID)
    assert "webhook-signature" not in request.headers
    assert request.headers["content-length"] == "0"


async def test_the_request_is_what_the_payload_says(http: Handler, here: Receiver, secrets: Path) -> None:
    (secrets / "api-token").write_text(f"Bearer {TOKEN}\n")
    payload = {
        "url": here.url("/a%20b?c=1#not-sent"),
        "method": "PUT",
        "headers": {"X-Shop": "7", "Content-Type": "text/csv"},
        "secret_headers": {"Authorization": "api-token"},
        "body": "a;b\r\n",
    }

    await attempt(http, payload)

    [request] = here.received
    assert (request.method, request.target, request.body) == ("PUT", "/a%20b?c=1", b"a;b\r\n")
    assert request.headers["host"] == f"127.0.0.1:{here.port}"
    assert (request.headers["x-shop"], request.headers["content-type"]) == ("7", "text/csv")
    assert request.headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, PermanentError, "REQUEST_REFUSED"),
        (401, PermanentError, "AUTHENTICATION_FAILED"),
        (403, PermanentError, "AUTHENTICATION_FAILED"),
        (404, PermanentError, "NOT_FOUND"),
        (304, PermanentError, "REQUEST_REFUSED"),
        (429, TransientError, "RATE_LIMITED"),
        (500, TransientError, "UPSTREAM_5XX"),
        (503, TransientError, "UPSTREAM_5XX"),
    ],
)
async def test_the_status_says_whether_to_try_again(
    http: Handler, here: Receiver, status: int, kind: type, code: str
) -> None:
    here.answers = [answer(status, b"" if status == 304 else b"because", Retry_After="7")]

    with pytest.raises(JobError) as caught:
        await attempt(http, {"url": here.url()})

    assert type(caught.value) is kind
    assert caught.value.code == code
    assert str(status) in str(caught.value)
    assert getattr(caught.value, "retry_after", None) == (timedelta(seconds=7) if kind is TransientError else None)


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_2xx_is_a_success_and_so_is_what_the_payload_accepts(http: Handler, here: Receiver, status: int) -> None:
    here.answers = [answer(status), answer(409)]

    first = await attempt(http, {"url": here.url()})
    second = await attempt(http, {"url": here.url(), "accept": [409]})

    assert (first["status"], second["status"]) == (status, 409)


async def test_a_receiver_that_says_nothing_is_a_timeout_and_is_left(http: Handler, here: Receiver) -> None:
    here.silent = True

    with pytest.raises(TransientError, match="no answer within 50ms") as caught:
        await attempt(http, {"url": here.url(), "timeout": "50ms"})

    assert caught.value.code == "TIMEOUT"
    await asyncio.wait_for(here.left.wait(), 5)


@pytest.mark.parametrize(
    "said",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"HTTP/1.1 200 OK\r\n"],
)
async def test_an_answer_that_breaks_off_or_is_not_http_is_a_network_error(
    http: Handler, here: Receiver, said: bytes
) -> None:
    here.answers = [said]

    with pytest.raises(TransientError) as caught:
        await attempt(http, {"url": here.url()})

    assert caught.value.code == "NETWORK_ERROR"


async def test_a_delivery_that_is_stopped_half_sent_is_closed_at_once(http: Handler) -> None:
    """Its task is cancelled, as a worker does with an attempt that was called off."""
    begun, stopped, seen = asyncio.Event(), asyncio.Event(), asyncio.Queue[int]()

    async def read_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        begun.set()
        await stopped.wait()
        size = 0
        with suppress(ConnectionError):
            while part := await reader.read(65_536):
                size += len(part)
        seen.put_nowait(size)
        writer.close()

    # A narrow way: most of the message is still with the sender when it is stopped.
    narrow = socket.create_server(("127.0.0.1", 0))
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    async with await asyncio.start_server(read_late, sock=narrow, limit=1024) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        sending = asyncio.create_task(attempt(http, {"url": url, "body": "x" * HUGE}))
        await begun.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        stopped.set()
        received = await asyncio.wait_for(seen.get(), 10)

    assert 0 < received < HUGE


@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
async def test_a_server_that_cannot_be_reached_is_a_network_error(
    http: Handler, unused_tcp_port: int, host: str
) -> None:
    with pytest.raises(TransientError) as caught:
        await attempt(http, {"url": f"http://{host}:{unused_tcp_port}/"})

    assert caught.value.code == "NETWORK_ERROR"


async def test_a_huge_answer_is_neither_read_to_its_end_nor_kept(http: Handler, here: Receiver) -> None:
    endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"x" * 4096 + b"\r\n"
    here.answers = [endless + (b"1000\r\n" + b"x" * 4096 + b"\r\n") * 2000]

    receipt = await attempt(http, {"url": here.url()})

    assert receipt["body"] == "x" * 2000


async def test_an_answer_that_no_text_can_hold_still_makes_a_receipt(http: Handler, here: Receiver) -> None:
    here.answers = [answer(200, b"a\0b\xff")]

    receipt = await attempt(http, {"url": here.url()})

    assert receipt["body"] == "a\ufffdb\ufffd"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_to_the_same_host_is_followed_with_the_same_message(
    http: Handler, here: Receiver, secrets: Path, status: int
) -> None:
    (secrets / "shop").write_text(BOTH)
    here.answers = [answer(status, Location="/moved?token=1"), answer(200, b"there")]

    receipt = await attempt(http, {"url": here.url(), "body": "hello", "secret": "shop"})

    first, second = here.received
    assert (second.method, second.target, second.body) == ("POST", "/moved?token=1", b"hello")
    assert second.headers["webhook-id"] == first.headers["webhook-id"]
    assert (receipt["body"], receipt["url"]) == ("there", here.url("/moved?token=***"))


async def test_see_other_is_looked_at_and_not_sent_to_again(http: Handler, here: Receiver) -> None:
    here.answers = [answer(303, Location="/result"), answer(200, b"done")]

    receipt = await attempt(http, {"url": here.url(), "body": "hello"})

    assert [(each.method, each.body) for each in here.received] == [("POST", b"hello"), ("GET", b"")]
    assert receipt["body"] == "done"


async def test_a_redirect_to_somebody_else_is_refused_and_nothing_is_sent_there(
    http: Handler, here: Receiver, there: Receiver
) -> None:
    for other in (there.url("/steal"), there.url("/steal", host="localhost"), f"//127.0.0.1:{there.port}/", "ftp://a/"):
        here.answers = [answer(307, Location=other)]

        with pytest.raises(PermanentError, match="redirect") as caught:
            await attempt(http, {"url": here.url(), "body": "hello"})

        assert caught.value.code == "REDIRECT_REFUSED"
    assert there.received == []


async def test_redirects_come_to_an_end(http: Handler, here: Receiver) -> None:
    here.answers = [answer(307, Location="/again")] * 9

    with pytest.raises(PermanentError, match="more than 3 redirects"):
        await attempt(http, {"url": here.url()})

    assert len(here.received) == 4


async def test_no_secret_is_in_a_receipt_an_error_or_a_log(
    http: Handler, here: Receiver, secrets: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    (secrets / "shop").write_text(BOTH)
    (secrets / "api-token").write_text(f"Bearer {TOKEN}")
    echo = f"you are {TOKEN}, by {BOTH}".encode()
    payload: dict[str, Any] = {"secret": "shop", "secret_headers": {"Authorization": "api-token"}}
    here.answers = [answer(200, echo), answer(403, echo), b"HTTP/1.1 " + TOKEN.encode() + b"\r\n\r\n"]

    receipt = await attempt(http, payload | {"url": here.url("/?key=hidden")})
    with pytest.raises(PermanentError) as refused:
        await attempt(http, payload | {"url": here.url("/?key=hidden")})
    with pytest.raises(TransientError) as broken:
        await attempt(http, payload | {"url": here.url("/?key=hidden")})

    assert receipt["body"] == "you are ***, by ***"
    seen = f"{receipt} {refused.value} {broken.value} {caplog.text}"
    assert not [secret for secret in (TOKEN, *BOTH.split(), "hidden") if secret in seen]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (None, "must hold a file of that name"),
        ("", "the file is empty"),
        ("hunter2", "it must be one or more keys"),
        ("whsec_!hunter2!", "it must be one or more keys"),
        ("whsec_aHVudGVyMg==", "24 to 64 bytes"),
    ],
)
async def test_a_secret_that_cannot_be_used_is_named_but_not_shown(
    http: Handler, here: Receiver, secrets: Path, text: str | None, rule: str
) -> None:
    if text is not None:
        (secrets / "shop").write_text(text)

    with pytest.raises(TransientError, match=rule) as caught:
        await attempt(http, {"url": here.url(), "secret": "shop"})

    assert caught.value.code == "SECRET_UNUSABLE"
    assert "'shop'" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "aHVudGVyMg" not in str(caught.value)
    assert here.received == []


async def test_a_secret_of_two_lines_cannot_add_a_header(http: Handler, here: Receiver, secrets: Path) -> None:
    (secrets / "api-token").write_text("a\r\nX-Admin: 1")

    with pytest.raises(TransientError, match="on one line"):
        await attempt(http, {"url": here.url(), "secret_headers": {"Authorization": "api-token"}})

    assert here.received == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f.1", "127.1"]
)
async def test_this_host_is_refused_in_every_spelling_unless_it_is_allowed(here: Receiver, host: str) -> None:
    closed = http_handler(BuiltinSettings())

    with pytest.raises(PermanentError, match="where deliveries may not go") as caught:
        await attempt(closed, {"url": here.url(host=host)})

    assert caught.value.code == "TARGET_REFUSED"
    assert here.received == []


async def test_a_redirect_is_judged_by_its_address_too(
    http: Handler, here: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name meant an open address first, and the metadata service when it was asked again."""
    answered = names_mean(monkeypatch, ["127.0.0.1", "169.254.169.254"])
    here.answers = [answer(307, Location="/latest/meta-data")]

    with pytest.raises(PermanentError, match=r"rebind.test is 169\.254\.169\.254"):
        await attempt(http, {"url": here.url(host="rebind.test")})

    assert (len(here.received), answered) == (1, [])


async def test_the_address_that_was_judged_is_the_one_that_is_connected_to(
    http: Handler, here: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is asked once: what it would mean afterwards does not matter."""
    left = names_mean(monkeypatch, ["127.0.0.1", "169.254.169.254"])

    receipt = await attempt(http, {"url": here.url(host="rebind.test")})

    assert receipt["status"] == 200
    assert here.received[0].headers["host"] == f"rebind.test:{here.port}"
    assert left == ["169.254.169.254"]


def names_mean(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> list[str]:
    """A name server that says something else each time.

    The one part that is not real: the system's resolver asks whom /etc/resolv.conf names, at port 53, and glibc lets no
    process name another server for itself. What is asked for numbers, the judgement and the connection are real.
    """
    loop = asyncio.get_running_loop()
    ask = loop.getaddrinfo
    left = list(addresses)

    async def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        return await ask(left.pop(0) if host == "rebind.test" else host, *args, **options)

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    return left


async def test_https_asks_for_the_name_and_trusts_the_authorities_of_the_setting(
    certificate: Path, server_tls: ssl.SSLContext
) -> None:
    asked: list[str | None] = []
    server_tls.sni_callback = lambda _, name, __: asked.append(name)
    settings = BuiltinSettings(http_allow=("127.0.0.0/8", "::1"), http_ca_file=certificate)

    async with receiver(server_tls) as secure:
        receipt = await attempt(http_handler(settings), {"url": secure.url(host="localhost", scheme="https")})

    assert (receipt["status"], asked) == (200, ["localhost"])
    assert secure.received[0].headers["host"] == f"localhost:{secure.port}"


@pytest.mark.parametrize(("trusted", "host"), [(False, "localhost"), (True, "127.0.0.1")])
async def test_https_to_a_server_that_cannot_prove_its_name_fails(
    certificate: Path, server_tls: ssl.SSLContext, trusted: bool, host: str
) -> None:
    settings = BuiltinSettings(http_allow=("127.0.0.0/8", "::1"), http_ca_file=certificate if trusted else None)

    async with receiver(server_tls) as secure:
        with pytest.raises(TransientError, match=r"certificate|mismatch") as caught:
            await attempt(http_handler(settings), {"url": secure.url(host=host, scheme="https")})

    assert caught.value.code == "NETWORK_ERROR"
    assert secure.received == []
