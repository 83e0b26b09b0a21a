"""The payload of `http`: what to send where. No I/O.

Errors name the field and never the value: somebody may have put a secret where its name should be.
"""

import re
from datetime import timedelta
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_core import to_json

from ostinato.durations import parse_duration
from ostinato_worker.builtin.secret import SecretName
from ostinato_worker.builtin.url import Url

LONGEST: Final = timedelta(minutes=10)
HEADER: Final = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+", re.ASCII)
VALUE: Final = re.compile(r"([!-~]([\t -~]*[!-~])?)?", re.ASCII)
OURS: Final = {"host", "content-length", "webhook-id", "webhook-timestamp", "webhook-signature"}
# They speak about one connection, and could make the receiver see another request than we signed.
OF_THE_CONNECTION: Final = {
    "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
}  # fmt: skip
SECRET: Final = {"authorization", "cookie", "proxy-authorization"}
WITHOUT_BODY: Final = ("GET", "HEAD")


def _timeout(value: object) -> timedelta:
    timeout = parse_duration("timeout", value)  # type: ignore[arg-type]
    if not timedelta(0) < timeout <= LONGEST:
        raise ValueError("it must be more than 0 and at most 10m")
    return timeout


class Delivery(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: str
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: dict[str, str] = Field({}, max_length=50)
    secret_headers: dict[str, SecretName] = Field(
        {}, max_length=10, description="headers whose whole value, such as 'Bearer …', is the secret of this name"
    )
    body: Any = Field(None, description="a text is sent as it is, everything else as JSON")
    secret: SecretName | None = Field(None, description="the name of the secret to sign with, never the secret")
    timeout: Annotated[timedelta, BeforeValidator(_timeout, json_schema_input_type=str | float)] = timedelta(seconds=30)
    accept: list[Annotated[int, Field(ge=300, le=599)]] = Field(
        [], max_length=50, description="statuses that are a success too, beside 2xx"
    )

    @field_validator("url")
    @classmethod
    def _url_can_be_used(cls, url: str) -> str:
        Url.parse(url)
        return url

    @field_validator("headers")
    @classmethod
    def _headers_can_be_sent(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            _check_name(name)
            if name.lower() in SECRET:
                raise ValueError(f"{name} is a secret: put it into a file, and the file's name into secret_headers")
            if not VALUE.fullmatch(value):
                raise ValueError(f"the value of {name} must be printable ASCII, without line breaks or space around it")
        return headers

    @field_validator("secret_headers")
    @classmethod
    def _secret_headers_can_be_sent(cls, headers: dict[str, str]) -> dict[str, str]:
        for name in headers:
            _check_name(name)
        return headers

    @model_validator(mode="after")
    def _is_one_request(self) -> Self:
        names = [name.lower() for name in (*self.headers, *self.secret_headers)]
        if len(names) != len(set(names)):
            raise ValueError("a header is given twice; upper and lower case are the same")
        if self.body is not None and self.method in WITHOUT_BODY:
            raise ValueError(f"a {self.method} has no body: leave it out, or use POST")
        return self

    @property
    def content(self) -> bytes:
        """What is sent and signed."""
        if self.body is None:
            return b""
        return self.body.encode() if isinstance(self.body, str) else to_json(self.body)

    @property
    def content_type(self) -> str:
        return "text/plain; charset=utf-8" if isinstance(self.body, str) else "application/json"


def _check_name(name: str) -> None:
    if not HEADER.fullmatch(name):
        raise ValueError("a header's name must be letters, digits and '-'")
    if name.lower() in OURS:
        raise ValueError(f"{name} is written by the handler: leave it out")
    if name.lower() in OF_THE_CONNECTION:
        raise ValueError(f"{name} belongs to the connection: leave it out")
