"""The built-in handler `http`: delivers a webhook, and returns a receipt."""

import asyncio
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import h11

from ostinato import Context, PermanentError, TransientError, __version__, error_for_status, job
from ostinato.durations import format_duration
from ostinato.failures import Code
from ostinato.handler import Handler
from ostinato_worker.builtin.delivery import VALUE, Delivery
from ostinato_worker.builtin.exchange import Answer, Request, exchange, tls_context
from ostinato_worker.builtin.gate import Gate
from ostinato_worker.builtin.secret import Secrets, SecretUnusable, redact
from ostinato_worker.builtin.settings import BuiltinSettings
from ostinato_worker.builtin.signature import read_keys, sign
from ostinato_worker.builtin.url import Url

MOST_REDIRECTS: Final = 3
REDIRECTS: Final = (301, 302, 303, 307, 308)
REDIRECT_REFUSED: Final = "REDIRECT_REFUSED"
SHOWN: Final = 2_000  # characters of the answer in a receipt
SHOWN_IN_ERRORS: Final = 200
SHORTEST_SECRET: Final = 8  # a shorter word of a secret is no secret, such as "Bearer"
DEFAULTS: Final = {"user-agent": f"ostinato/{__version__}", "accept": "*/*", "accept-encoding": "identity"}


def http_handler(settings: BuiltinSettings) -> Handler:
    gate = Gate.of(settings.http_allow, settings.http_refuse)
    tls = tls_context(settings.http_ca_file)
    secrets = Secrets(settings.secrets_dir)

    @job("http")
    async def http(payload: Delivery, ctx: Context) -> dict[str, Any]:
        letter = write_letter(payload, ctx.job_id, secrets)
        return await Courier(gate, tls).deliver(letter, payload)

    return http


@dataclass(frozen=True, slots=True)
class Letter:
    """A delivery with its secrets, which live as long as the attempt."""

    message_id: str
    headers: dict[str, str] = field(repr=False)
    keys: tuple[bytes, ...] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)

    def request(self, method: str, url: Url, body: bytes) -> Request:
        """Each request is signed anew, for it says when."""
        now = int(time.time())
        signed = {"webhook-id": self.message_id, "webhook-timestamp": str(now)}
        if self.keys:
            signed["webhook-signature"] = sign(self.keys, self.message_id, now, body)
        return Request(method, url, tuple((self.headers | signed).items()), body)


def write_letter(delivery: Delivery, job_id: UUID, secrets: Secrets) -> Letter:
    """The id of the message is the job's, the same for every attempt: by it a receiver knows a repetition."""
    signing = secrets.read(delivery.secret) if delivery.secret else ""
    hidden = {name: _header_value(secret, secrets.read(secret)) for name, secret in delivery.secret_headers.items()}
    open_headers = {name.lower(): value for name, value in delivery.headers.items()}
    return Letter(
        message_id=str(job_id),
        headers=DEFAULTS
        | ({"content-type": delivery.content_type} if delivery.content else {})
        | open_headers
        | hidden,
        keys=_keys(delivery.secret or "", signing),
        secrets=frozenset(words(signing, *hidden.values())),
    )


def words(*texts: str) -> Iterator[str]:
    """What must not be shown: "Bearer abc…" as a whole, and "abc…" where it stands alone."""
    for text in filter(None, texts):
        yield text
        yield from (word for word in text.split() if len(word) >= SHORTEST_SECRET)


def _keys(name: str, text: str) -> tuple[bytes, ...]:
    try:
        return read_keys(text)
    except ValueError as error:
        raise SecretUnusable(name, str(error)) from None


def _header_value(name: str, text: str) -> str:
    if not VALUE.fullmatch(text):
        raise SecretUnusable(name, "a header must be printable ASCII on one line")
    return text


@dataclass(frozen=True, slots=True)
class Courier:
    gate: Gate
    tls: ssl.SSLContext

    async def deliver(self, letter: Letter, delivery: Delivery) -> dict[str, Any]:
        started = time.monotonic()
        url, answer = await self._in_time(letter, delivery)
        body = redact(answer.body.decode(errors="replace").replace("\0", "\ufffd"), letter.secrets)
        if not 200 <= answer.status < 300 and answer.status not in delivery.accept:
            raise error_for_status(
                answer.status,
                f"{url.shown}: HTTP {answer.status} {body[:SHOWN_IN_ERRORS]}".strip(),
                retry_after=answer.headers.get("retry-after"),
            )
        taken = round((time.monotonic() - started) * 1000)
        return {"status": answer.status, "duration_ms": taken, "body": body[:SHOWN], "url": url.shown}

    async def _in_time(self, letter: Letter, delivery: Delivery) -> tuple[Url, Answer]:
        url = Url.parse(delivery.url)
        try:
            async with asyncio.timeout(delivery.timeout.total_seconds()):
                return await self._follow(letter, delivery, url)
        except TimeoutError:
            raise _too_slow(url, delivery.timeout) from None
        except OSError as error:
            raise TransientError(f"{url.shown}: {_reason(error)}", code=Code.NETWORK_ERROR) from None
        except h11.RemoteProtocolError as error:
            message = f"{url.shown}: the answer is not HTTP: {error}"
            raise TransientError(redact(message, letter.secrets), code=Code.NETWORK_ERROR) from None

    async def _follow(self, letter: Letter, delivery: Delivery, url: Url) -> tuple[Url, Answer]:
        method, body = delivery.method, delivery.content
        for _ in range(MOST_REDIRECTS + 1):
            answer = await exchange(letter.request(method, url, body), self.gate, self.tls)
            location = answer.headers.get("location")
            if answer.status not in REDIRECTS or answer.status in delivery.accept or location is None:
                return url, answer
            url = _redirected(url, location)
            if answer.status == 303:  # it arrived, and what came of it is to be seen there
                method, body = "GET", b""
        raise PermanentError(f"{url.shown}: more than {MOST_REDIRECTS} redirects", code=REDIRECT_REFUSED)


def _redirected(url: Url, location: str) -> Url:
    """What a receiver says must not send the message, and its signature, to somebody else."""
    try:
        other = url.joined(location)
    except ValueError as error:
        raise PermanentError(f"{url.shown}: cannot be redirected: {error}", code=REDIRECT_REFUSED) from None
    if not url.may_redirect_to(other):
        raise PermanentError(
            f"{url.shown}: it redirects to {other.origin}, and redirects are followed only to the same host; "
            "if that is right, make it the job's url",
            code=REDIRECT_REFUSED,
        )
    return other


def _too_slow(url: Url, timeout: timedelta) -> TransientError:
    return TransientError(f"{url.shown}: no answer within {format_duration(timeout)}", code=Code.TIMEOUT)


def _reason(error: OSError) -> str:
    return getattr(error, "verify_message", "") or error.strerror or str(error) or type(error).__name__
